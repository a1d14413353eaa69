"""Contradiction pressure: how many pairs of recent messages have nothing to do with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from coherence.core.readings import Evidence, Kind, MetricInput, excerpt
from coherence.core.vectors import Rows, exact_cosines

RESOLUTION = 2.0**-11
"""Relative rounding of float16: cosines of recorded vectors are not told apart more finely."""


def compute_contradiction_pressure(context: Rows, threshold: float = 0.3) -> float | None:
    """Return the share of context pairs with ``cosine < threshold`` (strict), in float64.

    ``(number of pairs i < j with cosine(c_i, c_j) < threshold) / (n (n - 1) / 2)``

    Range [0, 1], inverted: 0 = all messages are related, 1 = no two are. ``None`` for fewer than two messages.

    Parameters
    ----------
    context : array_like, shape (n, d)
        Vectors of any length; a zero vector has cosine 0 with everything.
    threshold : float
        In [-1, 1]; a higher one calls more pairs contradictory.

    Raises
    ------
    ValueError
        If the dimensions differ, or the threshold is out of range.

    Notes
    -----
    The name is the classic one. A low cosine says *unrelated*, not *contradictory*: embeddings do not read negation.

    References
    ----------
    The formula and its test values are those of the ``interoception`` package (TypeScript, version 0.1.0, 2026).

    Examples
    --------
    >>> compute_contradiction_pressure([[1, 0], [1, 1], [0, 1]])
    0.3333333333333333
    """
    _check(threshold)
    return _pressure(exact_cosines(context, context), threshold)


def _check(threshold: float) -> None:
    if not -1.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be in [-1, 1], not {threshold}")


def _pressure(cosines: npt.NDArray[np.floating], below: float) -> float | None:
    n = len(cosines)
    if n < 2:
        return None
    apart = cosines < below
    # each pair stands there twice, and each text beside itself
    pairs = (np.count_nonzero(apart) - np.count_nonzero(apart.diagonal())) // 2
    return float(pairs / (n * (n - 1) // 2))


@dataclass(frozen=True)
class ContradictionPressure:
    """Share of unrelated pairs among recent messages, see :func:`compute_contradiction_pressure`.

    Recorded vectors are rounded to float16, so a pair counts only if its cosine is below the threshold by more than
    that rounding (``2**-11``).

    Parameters
    ----------
    threshold : float
        In [-1, 1]; a higher one calls more pairs contradictory.
    """

    threshold: float = 0.3
    name = "contradiction_pressure"
    inverted = True
    in_place = True
    pure = True
    reads: ClassVar[tuple[Kind, ...]] = ("context",)

    def __post_init__(self) -> None:
        _check(self.threshold)

    def compute(self, data: MetricInput) -> float | None:
        """Return the share, ``None`` for fewer than two messages."""
        return _pressure(data.cosines("context", "context"), self.threshold - RESOLUTION)

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the two most recent messages that are apart: the newest one with any, and its farthest partner."""
        cosines = data.cosines("context", "context")
        for newest in range(len(cosines) - 1, 0, -1):
            other = int(cosines[newest, :newest].argmin())
            cosine = cosines[newest, other]
            if cosine < self.threshold - RESOLUTION:
                why = f"have little to do with each other (cosine {float(cosine):.2f})"
                texts = (excerpt(data.context_texts[newest]), excerpt(data.context_texts[other]))
                return Evidence(why, "context", (newest, other), texts)
        return None
