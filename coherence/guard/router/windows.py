"""From an agent's newest calls to the measures of two windows, the newer one and the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean, median
from typing import Any

from coherence.guard.account import LEAST_LATENCY_S
from coherence.guard.router.lines import KNOWN

WINDOW = 20
"""Calls of a window at most; so many again make the one before."""

LEAST = 5
"""Calls that each window must have for the two to be compared."""

Window = dict[str, float | None]


def two_windows(traces: Sequence[Any]) -> tuple[Window, Window | None]:
    """Return the measures of the newer window and of the one before; ``None`` with fewer than ten calls.

    With fewer than ten calls the newer window has them all. Values that are no finite numbers are unknown. Calls
    shorter than a millisecond count as so long.

    Parameters
    ----------
    traces : sequence
        Calls, oldest first, of which the newest 40 count: mappings or objects with ``success`` (bool), ``duration_s``,
        ``cost``, ``index`` (the coherence index) and ``metrics`` (measure -> value), each of which may be missing.

    Examples
    --------
    >>> calls = [{"success": True, "duration_s": 1.0}] * 5 + [{"success": False, "duration_s": 1.5}] * 5
    >>> later, earlier = two_windows(calls)
    >>> later["success_rate"], later["latency_ratio"], earlier["success_rate"], earlier["latency_ratio"]
    (0.0, 1.5, 1.0, 1.0)
    """
    newest = list(traces[-2 * WINDOW :])
    half = len(newest) // 2 if len(newest) >= 2 * LEAST else 0
    before, after = newest[:half], newest[half:]
    later, earlier = _measures(after), _measures(before)
    for ratio, field, least in (("latency_ratio", "duration_s", LEAST_LATENCY_S), ("cost_ratio", "cost", 0.0)):
        old, new = (_median(calls, field) for calls in (before, after))
        if old is not None and new is not None and max(old, least):
            later[ratio], earlier[ratio] = min(max(new, least) / max(old, least), 1e6), 1.0
    return later, earlier if half else None


def _measures(calls: Sequence[Any]) -> Window:
    found: dict[str, list[float]] = {name: [] for name in sorted(KNOWN)}
    for call in calls:
        success = _field(call, "success")
        if isinstance(success, bool):
            found["success_rate"].append(float(success))
        _add(found["coherence_index"], _field(call, "index"))
        metrics = _field(call, "metrics")
        if isinstance(metrics, Mapping):
            for name in sorted(KNOWN - {"success_rate", "coherence_index", "latency_ratio", "cost_ratio"}):
                _add(found[name], metrics.get(name))
    return {name: fmean(values) if values else None for name, values in found.items()}


def _median(calls: Sequence[Any], field: str) -> float | None:
    values: list[float] = []
    for call in calls:
        _add(values, _field(call, field))
    return median(values) if values else None


def _add(values: list[float], value: object) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e18 and isfinite(value):
        values.append(max(float(value), 0.0))


def _field(call: Any, name: str) -> Any:
    return call.get(name) if isinstance(call, Mapping) else getattr(call, name, None)
