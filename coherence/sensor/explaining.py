"""Calling a metric, then asking it for the evidence of its value, whether it takes an input or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any

from coherence.errors import UnknownSourceError
from coherence.protocols import MetricFn, ScalarMetricFn
from coherence.records import Evidence, Failure, MetricInput
from coherence.sensor.calls import failed
from coherence.sensor.values import as_evidence


def explained(
    metric: MetricFn, data: list[MetricInput], evidence: dict[str, Evidence], errors: list[Failure], *, own: bool
) -> float | None:
    """Compute, then put what the metric points at into ``evidence``.

    Parameters
    ----------
    metric : MetricFn
        The metric.
    data : list of MetricInput
        Its input; empty if it could not be prepared.
    evidence, errors
        Where the evidence, and the failure to give it, are put: it costs the explanation only.
    own : bool
        Whether the metric is this package's own, whose evidence is taken as it is.
    """
    if not data:
        raise UnknownSourceError("the state could not be prepared")
    value = metric.compute(data[0])
    explain = getattr(metric, "explain", None)
    if callable(explain):
        _explain(metric.name, value, partial(explain, data[0]), evidence, errors, own=own)
    return value


def computed(scalar: ScalarMetricFn, evidence: dict[str, Evidence], errors: list[Failure], *, own: bool) -> Any:
    """Do the same for a metric without an input; after waiting, if its value must be waited for."""
    value = scalar.compute()
    explain = getattr(scalar, "explain", None)
    if not callable(explain):
        return value
    put = partial(_explain, scalar.name, explain=explain, evidence=evidence, errors=errors, own=own)
    if not own and isawaitable(value):
        return _awaited(value, put)
    put(value)
    return value


async def _awaited(value: Awaitable[float | None], put: Callable[[float | None], None]) -> float | None:
    known = await value
    put(known)
    return known


def _explain(
    name: str,
    value: object,
    explain: Callable[[], Any],
    evidence: dict[str, Evidence],
    errors: list[Failure],
    *,
    own: bool,
) -> None:
    if value is None:
        return
    try:
        found = explain()
        if found is not None:
            evidence[name] = found if own else as_evidence(found)
    except Exception as error:
        errors.append(Failure(f"metric {name}", type(error).__name__, f"explain failed: {failed(error).message}"))
