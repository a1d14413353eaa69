"""The coherence index, its bands, and the weights behind them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from numbers import Real
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from coherence.core.readings import Band

Missing: TypeAlias = Literal["unknown", "zero"]
"""Effect of an unknown value: ``unknown`` leaves the index and lowers coverage, ``zero`` counts as 0 (classic)."""

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "goal_drift": 0.25,
    "memory_retention": 0.25,
    "contradiction_pressure": 0.25,
    "semantic_diffusion": 0.25,
}
"""The classic weights, which a sensor of one's own has too."""

INDEX_WEIGHTS: Mapping[str, float] = {
    "goal_hijack": 0.55,
    "outcome_risk": 0.3,
    "unsupported_assumption": 0.1,
    **dict.fromkeys(DEFAULT_WEIGHTS, 0.0125),
}
"""A monitor's weights, chosen on labelled runs by ``tests/bench/index_weights.py``."""

OTHER_WEIGHT = 0.25
"""The weight of a metric or vital that is asked for by name and stands in no table."""

MAX_WEIGHT = 1e9
DEFAULT_INVERTED = frozenset({"goal_drift", "contradiction_pressure", "semantic_diffusion"})


class BandEdges(NamedTuple):
    """Lowest index of each band; below ``orange`` it is red."""

    green: float = 0.8
    yellow: float = 0.6
    orange: float = 0.4


class Score(msgspec.Struct, frozen=True):
    """The index and what it is made of."""

    index: float
    coverage: float
    losses: dict[str, float]


def score(
    metrics: Mapping[str, float | None], weights: Mapping[str, float], inverted: Collection[str], missing: Missing
) -> Score:
    """Combine metric values: ``sum(w * c) / sum(w)`` over weighted, known metrics, ``c = 1 - value`` where inverted.

    Each value is clamped to [0, 1] first. ``losses`` sum to ``1 - index``. With nothing weighted known the index is 1
    and the coverage 0.
    """
    if not weights:
        return Score(1.0, 0.0, {})
    known: dict[str, tuple[float, float]] = {}
    seen = total = 0.0
    largest = max(weights.values())
    for name, absolute in weights.items():
        weight = absolute / largest if largest > 0 else 0.0  # so that extreme weights neither overflow nor vanish
        value = metrics.get(name)
        total += weight
        if value is not None and not math.isnan(value):
            seen += weight
        elif missing == "zero":
            value = 0.0
        else:
            continue
        value = min(max(value, 0.0), 1.0)
        known[name] = (weight, 1.0 - value if name in inverted else value)
    mass = sum(weight for weight, _ in known.values())
    if mass <= 0:
        return Score(1.0, 0.0, {})
    index = sum(weight * part for weight, part in known.values()) / mass
    losses = {name: weight * (1.0 - part) / mass for name, (weight, part) in known.items() if weight > 0}
    return Score(min(max(index, 0.0), 1.0), seen / total, losses)


def compute_coherence_index(
    metrics: Mapping[str, float | None],
    weights: Mapping[str, float] = DEFAULT_WEIGHTS,
    inverted: Collection[str] = DEFAULT_INVERTED,
    missing: Missing = "unknown",
) -> float:
    """Return the coherence index in [0, 1], 1 = coherent: the weighted mean of the known metrics.

    Parameters
    ----------
    metrics : mapping
        Name -> value in [0, 1]; ``None`` or NaN = unknown.
    weights : mapping
        Name -> weight, 0 or more; metrics without a weight do not count.
    inverted : collection of str
        Names of the metrics whose high values are bad.
    missing : {"unknown", "zero"}
        Whether an unknown value is left out or counts as 0.

    References
    ----------
    The formula and its test values are those of the ``interoception`` package (TypeScript, version 0.1.0, 2026).

    Examples
    --------
    >>> compute_coherence_index({"goal_drift": 0.2, "semantic_diffusion": 0.4})
    0.7
    """
    return score(metrics, weights, inverted, missing).index


def classify_band(index: float, thresholds: BandEdges | Iterable[float] | Mapping[str, float] | None = None) -> Band:
    """Return the band of an index; each threshold belongs to the better band.

    Raises
    ------
    ValueError
        If the index is NaN or outside [0, 1].

    Examples
    --------
    >>> classify_band(0.8), classify_band(0.7999999)
    (<Band.GREEN: 'green'>, <Band.YELLOW: 'yellow'>)
    """
    limits = check_thresholds(thresholds)
    if not 0.0 <= index <= 1.0:
        raise ValueError(f"index must be in [0, 1], not {index}")
    return band_of(index, limits)


def band_of(index: float, limits: BandEdges) -> Band:
    """Return the band of an index by thresholds that were checked before."""
    if index >= limits.green:
        return Band.GREEN
    if index >= limits.yellow:
        return Band.YELLOW
    return Band.ORANGE if index >= limits.orange else Band.RED


def is_number(value: object) -> bool:
    """Tell whether a value is a real number of any library; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_thresholds(thresholds: BandEdges | Iterable[float] | Mapping[str, float] | None) -> BandEdges:
    """Return thresholds from a mapping (missing ones keep their default) or three numbers; ValueError if unusable."""
    if isinstance(thresholds, BandEdges):
        limits = thresholds
    elif thresholds is None:
        limits = BandEdges()
    elif isinstance(thresholds, Mapping):
        strange = [name for name in thresholds if name not in BandEdges._fields]
        if strange:
            raise ValueError(f"thresholds: unknown band {strange[0]!r}; known: green, yellow, orange")
        limits = BandEdges(**{str(name): limit for name, limit in thresholds.items()})
    else:
        if not isinstance(thresholds, Iterable):
            raise TypeError(f"thresholds must be three numbers or a mapping, not {thresholds!r}")
        values = tuple(thresholds)
        if len(values) != 3:
            raise ValueError(f"thresholds must be three numbers (green, yellow, orange), not {values}")
        limits = BandEdges(*values)
    for name, value in zip(limits._fields, limits, strict=True):
        if not is_number(value):
            raise TypeError(f"thresholds: {name} must be a number, not {value!r}")
    if not 1.0 >= limits.green > limits.yellow > limits.orange >= 0.0:
        raise ValueError(f"thresholds must fall from green to orange within [0, 1], not {tuple(limits)}")
    return limits


def check_weights(weights: Mapping[str, float] | None, names: Collection[str]) -> dict[str, float]:
    """Return the weights to use for metrics of these names.

    ``None``: every metric passed gets the mean of the default weights, which is 0.25, the weight of each of them.

    Raises
    ------
    TypeError, ValueError
        If a weight is not a number, negative, NaN or infinite, or names no metric.
    """
    if weights is None:
        mean = sum(DEFAULT_WEIGHTS.values()) / len(DEFAULT_WEIGHTS)
        return {name: DEFAULT_WEIGHTS.get(name, mean) for name in names}
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights must be a mapping of metric names to numbers, not {weights!r}")
    for name, weight in weights.items():
        if name not in names:
            raise ValueError(f"weights: {name!r} names no metric; metrics: {', '.join(names) or 'none'}")
        if not is_number(weight):
            raise TypeError(f"weights: {name!r} must be a number, not {weight!r}")
        # "not >=" refuses NaN too
        if not weight >= 0 or weight > MAX_WEIGHT:
            raise ValueError(f"weights: {name!r} must be 0 or more and at most {MAX_WEIGHT:g}, not {weight}")
    return {name: float(weight) for name, weight in weights.items()}
