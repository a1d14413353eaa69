"""Asking a metric for its value, and then for the evidence of it, whether it takes an input or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from coherence.core.errors import UnknownSourceError
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.core.readings import Evidence, Failure, MetricInput
from coherence.sensor.calls import failed
from coherence.sensor.values import as_evidence, as_value

Given: TypeAlias = Sequence[MetricInput] | None
"""A metric's input, none if it could not be prepared; ``None`` for a metric that takes no input."""


class Result(NamedTuple):
    """What came of one metric."""

    value: float | None
    evidence: Evidence | None = None
    reason: str = ""
    """Why there is no value, where the metric says so."""


def compute_from(metric: Any, data: Given) -> Any:
    """Return what a metric gives for its input; a value that must be awaited too."""
    if data is None:
        return metric.compute()
    if not data:
        raise UnknownSourceError("the state could not be prepared")
    return metric.compute(data[0])


def explain_from(metric: MetricFn | ScalarMetricFn, data: Given, *, own: bool) -> Evidence | None:
    """Return what a metric whose value is known points at, ``None`` if nothing.

    Parameters
    ----------
    metric : MetricFn or ScalarMetricFn
        The metric.
    data : sequence of MetricInput or None
        What its value was made of.
    own : bool
        Whether the metric is this package's own, whose evidence is taken as it is.
    """
    explain = getattr(metric, "explain", None)
    found = explain(*data or ()) if callable(explain) else None
    return found if own or found is None else as_evidence(found)


def unexplained(failure: Failure) -> Failure:
    """Return the failure of an explanation, as a reading shows it: the value stands."""
    return Failure(failure.source, failure.kind, f"explain failed: {failure.message}")


def tried(metric: MetricFn | ScalarMetricFn, data: Given, errors: list[Failure]) -> Result:
    """Ask one of this package's own metrics; a failure is reported, and costs the value or the evidence only."""
    source = f"metric {metric.name}"
    try:
        value = as_value(compute_from(metric, data))
    except UnknownSourceError as error:
        return Result(None, reason=str(error))
    except Exception as error:
        errors.append(Failure(source, type(error).__name__, failed(error).message))
        return Result(None, reason=f"failed: {type(error).__name__}")
    if value is None:
        return Result(None)
    try:
        return Result(value, explain_from(metric, data, own=True))
    except Exception as error:
        errors.append(unexplained(Failure(source, type(error).__name__, failed(error).message)))
        return Result(value)
