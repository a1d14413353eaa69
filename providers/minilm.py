"""The default embedder: all-MiniLM-L6-v2, int8 per channel, on ONNX Runtime."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.core.errors import ModelError

MODEL = "all-MiniLM-L6-v2-int8-per-channel.onnx"
TOKENIZER = "all-MiniLM-L6-v2-tokenizer.json"
SHA256 = {
    MODEL: "61b6e9f6958b54411b72efcbb9e9a4457fe88aa2ede221304e3f116154c949a6",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Hashes of the files that vectors of this fingerprint are made with."""
MODELS = Path(__file__).resolve().parent / "models"

MAX_TOKENS = 256
"""As the original model; two of them are its start and end marks."""

MAX_CHARS = 4_096
"""Of a longer text only so many characters are tokenised, half of its beginning and half of its end."""


class MiniLMEmbedder:
    """Sentence vectors of 384 dimensions from the model shipped with this package. No network, no torch.

    The model is loaded on first use (0.2 s), or by a monitor while its first events arrive, and runs on one thread.
    Of a text above 256 tokens the head and the tail are read, half each, so that the cost of a text is bounded (about
    30 ms). Text such as ``[SEP]`` is read as text, never as a control token. Both files are compared with their SHA-256
    when they are loaded.

    Raises
    ------
    ModelError
        On first use: a file is missing, or is not the one that this version ships.

    Examples
    --------
    >>> MiniLMEmbedder().embed("hello world").shape
    (384,)
    """

    in_place = True

    dimensions = 384
    fingerprint = "all-MiniLM-L6-v2-int8-per-channel-256-head-tail-v1"

    def __init__(self) -> None:
        self._lock = Lock()
        self._loaded: tuple[Any, Any] | None = None

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        """Return the vector of one text, shape ``(384,)``, unit length."""
        session, tokenizer = self._load()
        ids = np.array([self._ids(text, tokenizer)], np.int64)
        vector: npt.NDArray[np.float32] = session.run(None, {"input_ids": ids})[0][0]  # from any threads at a time
        return vector

    def embed_batch(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, shape ``(len(texts), 384)``; run singly, or a vector would depend on the rest."""
        return np.array([self.embed(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    @property
    def is_loaded(self) -> bool:
        """True once the model is in memory."""
        return self._loaded is not None

    def load(self) -> None:
        """Load the model now, which the first use does otherwise."""
        self._load()

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                self._loaded = (_session(), _tokenizer())
            return self._loaded

    @staticmethod
    def _ids(text: str, tokenizer: Any) -> list[int]:
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be tokenised
        room = MAX_TOKENS - 2
        if len(text) <= MAX_CHARS:
            inner = tokenizer.encode(text, add_special_tokens=False).ids
            if len(inner) > room:
                inner = inner[: room // 2] + inner[-(room // 2) :]
        else:
            head = tokenizer.encode(text[: MAX_CHARS // 2], add_special_tokens=False).ids
            tail = tokenizer.encode(text[-(MAX_CHARS // 2) :], add_special_tokens=False).ids
            inner = head[: room // 2] + tail[-(room // 2) :]
        return [tokenizer.token_to_id("[CLS]"), *inner, tokenizer.token_to_id("[SEP]")]


@cache
def default_embedder() -> MiniLMEmbedder:
    """Return the embedder that sensors of this process share by default."""
    return MiniLMEmbedder()


def has_vnni() -> bool:
    """Tell whether the CPU is known to multiply int8 without saturating (x86 VNNI; 64-bit Arm never saturates)."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags


def _read(name: str) -> bytes:
    """Return the content of a shipped file; what is loaded is what was checked."""
    path = MODELS / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(path, f"it cannot be read ({error.strerror})") from error
    found = sha256(data).hexdigest()
    if found != SHA256[name]:
        raise ModelError(path, f"its SHA-256 is {found}, not {SHA256[name]}: it is damaged or was altered")
    return data


def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # errors only: the runtime's warnings would stand in the host's output
    options.log_severity_level = 3
    if not has_vnni():
        # Without VNNI the 8-bit products of x86 saturate at 16 bits; this trades speed for the right sums.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(_read(MODEL), options, providers=["CPUExecutionProvider"])


def _tokenizer() -> Any:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(_read(TOKENIZER).decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer
