"""Embeddings over HTTP from a server that speaks the OpenAI embeddings API, such as llama.cpp, Ollama or vLLM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.core.errors import VectorError
from coherence.providers.clip import head_and_tail
from coherence.providers.json_server import JsonServer, ServerError


class OpenAICompatibleEmbedder:
    """Ask ``POST {base_url}/embeddings`` for the vectors.

    Nothing is sent anywhere but to ``base_url``, and nothing before the first text is embedded.

    Parameters
    ----------
    base_url : str
        Such as ``http://127.0.0.1:8080/v1``.
    model : str
        The server's name of the model.
    api_key : str, optional
        Sent as a bearer token.
    dimensions : int, optional
        Length of the vectors; default: whatever the first answer has.
    batch_size : int
        Texts a request, 1 or more.
    timeout_s : float
        Seconds a request may take, above 0. The sensor's own ``timeout_s`` bounds the tick whatever this is.
    max_chars : int
        Of a longer text only head and tail are sent.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        dimensions: int | None = None,
        batch_size: int = 32,
        timeout_s: float = 30.0,
        max_chars: int = 16_000,
    ) -> None:
        self._server = JsonServer(base_url, model, api_key, timeout_s)
        if batch_size < 1 or max_chars < 2:
            raise ValueError("batch_size must be 1 or more, max_chars 2 or more")
        self.base_url = self._server.base_url
        self.model = model
        self.batch_size = batch_size
        self.timeout_s = timeout_s
        self.max_chars = max_chars
        self._dimensions = dimensions

    @property
    def fingerprint(self) -> str:
        """Address and model; the server is trusted to keep serving the same weights."""
        return f"openai:{self.base_url}:{self.model}"

    @property
    def dimensions(self) -> int:
        """Length of the vectors; asks the server once if it was not given."""
        if self._dimensions is None:
            return self.embed("dimensions").size
        return self._dimensions

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        """Return the vector of one text, shape ``(dimensions,)``."""
        vector: npt.NDArray[np.float32] = self.embed_batch([text])[0]
        return vector

    def embed_batch(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one vector a text, shape ``(len(texts), dimensions)``.

        Raises
        ------
        VectorError
            If the server cannot be reached, refuses, or answers with something else.
        """
        if not texts:
            return np.empty((0, self._dimensions or 0), np.float32)
        body = {"input": [head_and_tail(text, self.max_chars) for text in texts]}
        try:
            content = self._server.post("/embeddings", body)
        except ServerError as error:
            raise VectorError(f"{self.base_url}/embeddings{error}") from error
        return self._vectors(content, len(texts))

    def _vectors(self, content: Any, count: int) -> npt.NDArray[np.float32]:
        try:
            # the index says whose a vector is, not the order
            rows = sorted(content["data"], key=lambda row: row["index"])
            vectors = np.array([row["embedding"] for row in rows], np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise VectorError(f"{self.base_url} answered without usable data: {str(content)[:200]}") from error
        if vectors.ndim != 2 or len(vectors) != count:
            raise VectorError(f"{self.base_url} returned {len(vectors)} vectors for {count} texts")
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
        return vectors
