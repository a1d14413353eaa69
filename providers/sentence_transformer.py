"""Any sentence-transformers model, through the extra of that name."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.core.errors import MissingExtraError
from coherence.providers.clip import head_and_tail

INSTALL = """  pip install "coherence-sensor[sentence-transformers]"
On Linux without a GPU, install the CPU build of torch first; it saves about 3 GB of CUDA packages:
  pip install torch --index-url https://download.pytorch.org/whl/cpu"""

CHARS_PER_TOKEN = 16
"""Of a text longer than the model's token limit times this, only head and tail are handed to the model."""


def load_model(kind: str, name_or_path: str, device: str | None) -> Any:
    """Return a model of this class of the library; a MissingExtraError says how to install it."""
    try:
        import sentence_transformers
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", INSTALL) from error
    return getattr(sentence_transformers, kind)(name_or_path, device=device)


class SentenceTransformerEmbedder:
    """A model of the sentence-transformers library, loaded on first use.

    Parameters
    ----------
    name_or_path : str
        A local folder, or a model name; loading a name that is not cached downloads it, as you asked.
    device : str, optional
        ``"cpu"``, ``"cuda"``, …; default: the library's choice.

    Raises
    ------
    MissingExtraError
        On first use, if the library is not installed; the message holds the install line.
    """

    def __init__(self, name_or_path: str, device: str | None = None) -> None:
        if not isinstance(name_or_path, str) or not name_or_path:
            raise TypeError(f"name_or_path must be a non-empty str, not {name_or_path!r}")
        self.name_or_path = name_or_path
        self.device = device
        self._lock = Lock()
        self._model: Any = None
        self._dimensions: int | None = None

    @property
    def fingerprint(self) -> str:
        """Name or path of the model."""
        return f"sentence-transformers:{self.name_or_path}"

    @property
    def dimensions(self) -> int:
        """Length of the model's vectors; loads it."""
        if self._dimensions is None:
            return self.embed("dimensions").size
        return self._dimensions

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        """Return the vector of one text, shape ``(dimensions,)``."""
        vector: npt.NDArray[np.float32] = self.embed_batch([text])[0]
        return vector

    def embed_batch(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, shape ``(len(texts), dimensions)``."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        model = self._load()
        limit = int(model.max_seq_length or 512) * CHARS_PER_TOKEN
        clipped = [head_and_tail(text, limit) for text in texts]
        vectors = np.asarray(model.encode(clipped, convert_to_numpy=True, show_progress_bar=False), np.float32)
        self._dimensions = vectors.shape[1]
        return vectors

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = load_model("SentenceTransformer", self.name_or_path, self.device)
            return self._model
