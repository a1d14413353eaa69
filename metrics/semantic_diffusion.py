"""Semantic diffusion: how far the recent messages are spread from one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from coherence.core.readings import Evidence, Kind, MetricInput, excerpt
from coherence.core.vectors import Rows, exact_cosines


def compute_semantic_diffusion(context: Rows) -> float | None:
    """Return ``mean over context pairs of (1 - cosine)``, in float64.

    Clipped to [0, 1], inverted: 0 = all messages say the same, 1 = they are unrelated on average. ``None`` for fewer
    than two messages.

    Parameters
    ----------
    context : array_like, shape (n, d)
        Vectors of any length; a zero vector has cosine 0 with everything.

    Raises
    ------
    ValueError
        If the dimensions differ.

    References
    ----------
    The formula and its test values are those of the ``interoception`` package (TypeScript, version 0.1.0, 2026).

    Examples
    --------
    >>> round(compute_semantic_diffusion([[1, 0], [1, 1], [0, 1]]), 12)
    0.528595479209
    """
    return _diffusion(exact_cosines(context, context))


def _diffusion(cosines: npt.NDArray[np.floating]) -> float | None:
    n = len(cosines)
    if n < 2:
        return None
    # each pair stands there twice, and each text beside itself
    both_ways = float(cosines.sum(dtype=np.float64)) - float(cosines.trace(dtype=np.float64))
    return min(max(1.0 - both_ways / (n * (n - 1)), 0.0), 1.0)


@dataclass(frozen=True)
class SemanticDiffusion:
    """Spread of recent messages, see :func:`compute_semantic_diffusion`."""

    name = "semantic_diffusion"
    inverted = True
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("context",)

    def compute(self, data: MetricInput) -> float | None:
        """Return the spread, ``None`` for fewer than two messages."""
        return _diffusion(data.cosines("context", "context"))

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the message that is farthest from the others on average."""
        cosines = data.cosines("context", "context")
        n = len(cosines)
        if n < 2:
            return None
        mean = (cosines.sum(axis=1) - cosines.diagonal()) / (n - 1)
        worst = int(mean.argmin())
        why = f"is farthest from the other messages (mean cosine {float(mean[worst]):.2f})"
        return Evidence(why, "context", (worst,), (excerpt(data.context_texts[worst]),))
