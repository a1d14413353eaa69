"""Fakes for your own tests: an embedder with known vectors, one that counts, and metric inputs from plain lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from coherence.core.protocols import Embedder, MaybeAwaitable
from coherence.core.readings import MetricInput, Tick
from coherence.core.vectors import Matrix, Rows, to_half, to_unit


class TableEmbedder:
    """Looks vectors up; a text that is not in the table raises ``KeyError``.

    Parameters
    ----------
    table : mapping
        Text -> vector of any length, all of one dimension.

    Examples
    --------
    >>> TableEmbedder({"up": [0, 1], "right": [1, 0]}).embed("up")
    array([0., 1.])
    """

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        self.table = {text: np.asarray(vector, np.float64) for text, vector in table.items()}
        self.dimensions = next((vector.size for vector in self.table.values()), 1)

    def embed(self, text: str) -> npt.NDArray[np.float64]:
        """Return the text's vector."""
        return self.table[text]

    def embed_batch(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the texts' vectors."""
        return np.array([self.table[text] for text in texts])


class CountingEmbedder:
    """Passes on to another embedder and remembers which texts it was asked for.

    Parameters
    ----------
    embedder : Embedder
        What makes the vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.texts: list[str] = []

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self.embedder.dimensions

    def embed(self, text: str) -> MaybeAwaitable[npt.ArrayLike]:
        """Count one text."""
        self.texts.append(text)
        return self.embedder.embed(text)

    def embed_batch(self, texts: Sequence[str]) -> MaybeAwaitable[npt.ArrayLike]:
        """Count every text."""
        self.texts += texts
        return self.embedder.embed_batch(list(texts))


def metric_input(
    *,
    goals: Rows = (),
    context: Rows = (),
    memories: Rows = (),
    all_memories: Rows | None = None,
    tick: Tick | None = None,
) -> MetricInput:
    """Return what a metric would be given for these vectors (of any length); texts are named ``goals 0`` and so on.

    Examples
    --------
    >>> metric_input(goals=[[1, 0]], context=[[3, 4]]).cosines("goals", "context")
    array([[0.6]], dtype=float32)
    """
    sources = {"goals": goals, "context": context, "memories": memories, "all_memories": all_memories}
    width = max((len(row) for rows in sources.values() if rows is not None for row in rows), default=0)
    fields: dict[str, Matrix] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for kind, rows in sources.items():
        if rows is not None:
            matrix = np.zeros((len(rows), width), np.float32)
            for i, row in enumerate(rows):
                if np.any(row):
                    matrix[i] = to_unit(to_half(row))
            matrix.flags.writeable = False
            fields[kind] = matrix
            texts[f"{kind}_texts"] = tuple(f"{kind} {i}" for i in range(len(rows)))
    return MetricInput(tick=tick or Tick(1), **fields, **texts)  # type: ignore[arg-type]  # keys are the parameters
