"""An embedder without a model: hashed character n-grams. For tests, and machines that cannot run the model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from coherence.providers.clip import head_and_tail

MAX_CHARS = 16_000
"""Of a longer text only so many characters are read, half of its beginning and half of its end."""

MAX_KEPT = 40
"""Characters of a word whose n-grams are kept."""


class HashingEmbedder:
    """Counts of the words' character n-grams (3 to 5), hashed into ``dimensions`` signed buckets, square-rooted.

    Deterministic across processes and machines. It sees spelling, not meaning: of paraphrases it finds a quarter of
    what MiniLM finds.

    Parameters
    ----------
    dimensions : int
        8 or more; fewer make more collisions.

    Examples
    --------
    >>> HashingEmbedder(64).embed("hello world").shape
    (64,)
    """

    in_place = True

    def __init__(self, dimensions: int = 384) -> None:
        if isinstance(dimensions, bool) or not isinstance(dimensions, int):
            raise TypeError(f"dimensions must be an int, not {dimensions!r}")
        if dimensions < 8:
            raise ValueError(f"dimensions must be 8 or more, not {dimensions}")
        self.dimensions = dimensions
        self.fingerprint = f"hashing-3-5-{dimensions}-v1"

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        """Return the vector of one text, shape ``(dimensions,)``, unit length."""
        found: list[int] = []
        for word in re.findall(r"\w+|[^\w\s]", head_and_tail(text, MAX_CHARS).casefold()):
            found += _codes(word) if len(word) <= MAX_KEPT else _codes.__wrapped__(word)
        codes = np.array(found, np.int64)
        signs = np.where(codes & 1, 1.0, -1.0)  # whole numbers: their sum is the same in any order
        vector = np.bincount((codes >> 1) % self.dimensions, signs, self.dimensions)
        vector = np.sign(vector) * np.sqrt(np.abs(vector))
        length = float(np.linalg.norm(vector))
        if length == 0.0:  # all grams cancelled out, or there were none: a fixed direction, not a zero vector
            vector[zlib.crc32(text.encode("utf-8", "surrogatepass")) % self.dimensions] = length = 1.0
        return (vector / length).astype(np.float32)

    def embed_batch(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, shape ``(len(texts), dimensions)``."""
        return np.array([self.embed(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)


@lru_cache(maxsize=5_000)  # a run uses few words, again and again
def _codes(word: str) -> tuple[int, ...]:
    """Return the checksums of a word's n-grams."""
    padded = f"<{word}>"
    if padded.isascii():
        data = padded.encode()
        return tuple([zlib.crc32(data[i : i + n]) for n in (3, 4, 5) for i in range(len(data) - n + 1)])
    grams = [padded[i : i + n] for n in (3, 4, 5) for i in range(len(padded) - n + 1)]
    return tuple([zlib.crc32(gram.encode("utf-8", "surrogatepass")) for gram in grams])
