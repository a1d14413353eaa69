"""Prometheus: light, pressure, decisions and spending of agents as metrics that it scrapes."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from coherence.core.errors import MissingExtraError
from coherence.core.readings import Band
from coherence.export.agent_totals import MAX_AGENTS, AgentTotals, Totals, bounded, budget_use
from coherence.monitor.sinks import AgentRecord

INSTALL = '  pip install "coherence-sensor[prometheus]"'

LIGHTS = {band: number for number, band in enumerate((Band.UNKNOWN, Band.GREEN, Band.YELLOW, Band.ORANGE, Band.RED))}
"""Band -> its number: higher is worse, and 0 is unknown."""

Kind: TypeAlias = Literal["gauge", "counter", "histogram"]

Values: TypeAlias = Iterable[tuple[str, float | None]]
"""Value of the label beside the agent, with the value; ``None`` = unknown, so there is no sample."""


class Family(NamedTuple):
    """One metric."""

    name: str
    """As it is exposed; of a histogram without ``_bucket``, ``_sum`` and ``_count``."""
    kind: Kind
    help: str
    values: Callable[[AgentTotals], Any]
    """Takes an agent's amounts and returns the value or, with a label, pairs of its values and the values."""
    label: str = ""
    """Name of the label beside ``agent``; empty = none."""


def _index(found: AgentTotals) -> float | None:
    reading = None if found.result is None else found.result.reading
    return None if reading is None else reading.coherence_index


def _coverage(found: AgentTotals) -> float | None:
    reading = None if found.result is None else found.result.reading
    return None if reading is None else reading.coverage


def _band(found: AgentTotals) -> Band:
    reading = None if found.result is None else found.result.reading
    return Band.UNKNOWN if reading is None else Band(reading.band)


def _bands(found: AgentTotals) -> Values:
    band = _band(found)
    return [(str(each), float(each is band)) for each in LIGHTS]


def _metrics(found: AgentTotals) -> Values:
    reading = None if found.result is None else found.result.reading
    kept: dict[str, float] = {}
    for name, value in () if reading is None else reading.metrics.items():
        if value is not None:
            kept.setdefault(bounded(kept, name), value)
    return kept.items()


def _budgets(found: AgentTotals) -> Values:
    kept: dict[str, float] = {}
    for name, share in () if found.result is None else budget_use(found.result.decision).items():
        kept.setdefault(bounded(kept, name), share)
    return kept.items()


FAMILIES = (
    Family("coherence_index_ratio", "gauge", "Chance that the agent is on course, 0 to 1.", _index),
    Family(
        "coherence_pressure_ratio",
        "gauge",
        "Pressure of the agent, 0 = calm, to 1.",
        lambda found: None if found.result is None else found.result.appraisal.effective,
    ),
    Family(
        "coherence_light",
        "gauge",
        "Light of the agent: 0 = unknown, 1 = green, 2 = yellow, 3 = orange, 4 = red.",
        lambda found: float(LIGHTS[_band(found)]),
    ),
    Family("coherence_band", "gauge", "1 for the band that the index is in, 0 for the others.", _bands, "band"),
    Family("coherence_coverage_ratio", "gauge", "Share of the weight that is known, 0 to 1.", _coverage),
    Family("coherence_metric_ratio", "gauge", "Value of each known metric, 0 to 1.", _metrics, "metric"),
    Family("coherence_budget_used_ratio", "gauge", "Used share of each limit, 0 to 1.", _budgets, "limit"),
    Family(
        "coherence_last_event_timestamp_seconds",
        "gauge",
        "Unix time of the agent's newest event.",
        lambda found: found.last_ts,
    ),
    Family(
        "coherence_steps_total", "counter", "Steps: answers and results of tools.", lambda found: float(found.steps)
    ),
    Family("coherence_calls_total", "counter", "Results of tools.", lambda found: float(found.calls)),
    Family(
        "coherence_call_failures_total",
        "counter",
        "Results of tools that are errors.",
        lambda found: float(found.failures),
    ),
    Family(
        "coherence_refused_calls_total",
        "counter",
        "Calls that were asked about and refused.",
        lambda found: float(found.refused),
    ),
    Family(
        "coherence_tokens_total",
        "counter",
        "Tokens that models read (input) and wrote (output).",
        lambda found: found.tokens.items(),
        "type",
    ),
    Family(
        "coherence_cached_tokens_total",
        "counter",
        "Tokens that models read from a cache; they are among the input.",
        lambda found: float(found.cached),
    ),
    Family(
        "coherence_cost_usd_total",
        "counter",
        "US dollars, of the model calls whose cost is known.",
        lambda found: found.cost_usd,
    ),
    Family(
        "coherence_unpriced_model_calls_total",
        "counter",
        "Model calls whose cost is unknown.",
        lambda found: float(found.unpriced),
    ),
    Family(
        "coherence_decisions_total",
        "counter",
        "Decisions by kind: continue, guide, warn, block.",
        lambda found: found.decisions.items(),
        "decision",
    ),
    Family(
        "coherence_findings_total",
        "counter",
        "Findings by rule: times that a rule became active.",
        lambda found: found.findings.items(),
        "rule",
    ),
    Family(
        "coherence_outcomes_total",
        "counter",
        "Ends of tasks: success, failure, unknown.",
        lambda found: found.outcomes.items(),
        "result",
    ),
    Family(
        "coherence_faults_total",
        "counter",
        "Failures inside the host or the sensor that were not raised.",
        lambda found: float(found.faults),
    ),
    Family(
        "coherence_call_duration_seconds",
        "histogram",
        "Durations of tools, where known.",
        lambda found: found.durations,
    ),
    Family(
        "coherence_model_call_tokens",
        "histogram",
        "Tokens of a model call.",
        lambda found: found.call_tokens.items(),
        "type",
    ),
)
"""All metrics of an agent."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Type of :meth:`PrometheusSink.exposition`."""

FORGOTTEN = "coherence_forgotten_agents_total"
"""Name of the counter of agents that are no longer exposed because of the bound."""


class PrometheusSink:
    """Sink that a registry of ``prometheus_client`` reads. Needs the extra ``prometheus``.

    Every metric of :data:`FAMILIES` has the label ``agent``, which takes at most ``max_agents`` values at a time: the
    agents heard from last. An agent that comes back begins anew. Gauges are of the agent's newest measurement, counters
    of all its sessions in this process.

    Parameters
    ----------
    registry : optional
        A registry of ``prometheus_client``; default: its global one. One registry takes one sink; give that sink to all
        monitors.
    max_agents : int
        Agents that are exposed at most, 1 to 10,000.

    Raises
    ------
    MissingExtraError
        If prometheus_client is not installed.
    ValueError
        If the registry has such a sink already.
    """

    def __init__(self, registry: Any = None, *, max_agents: int = MAX_AGENTS) -> None:
        client = _client()
        self._totals = Totals(max_agents)
        self._lock = threading.Lock()
        self._registry = client.REGISTRY if registry is None else registry
        try:
            self._registry.register(self)
        except ValueError as error:
            raise ValueError("the registry has a PrometheusSink already: give that one to all monitors") from error
        _sinks.add(self)

    def __repr__(self) -> str:
        return f"PrometheusSink(max_agents={self._totals.max_agents})"

    def emit(self, record: AgentRecord) -> None:
        """Count a record."""
        with self._lock:
            self._totals.add(record)

    def close(self) -> None:
        """Take the metrics out of the registry."""
        self._registry.unregister(self)

    def describe(self) -> Iterator[Any]:
        """Yield the metrics without values, by which a registry refuses to have them twice."""
        return _families([], 0)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics, for a registry."""
        with self._lock:
            agents, forgotten = self._totals.agents(), self._totals.forgotten
        read = []
        for name, found in agents:
            with self._lock:  # for one agent at a time: the agents' hosts wait for it
                read.append((name, [_read(family, found) for family in FAMILIES]))
        return _families(read, forgotten)

    def exposition(self) -> bytes:
        """Return the metrics in Prometheus's text format, version 0.0.4."""
        text: bytes = _client().generate_latest(self)
        return text

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # the parent may have held it


def _read(family: Family, found: AgentTotals) -> list[tuple[str, Any]]:
    """Return the known values of a family, copied, each with that of its label."""
    values = family.values(found)
    pairs = list(values) if family.label else [("", values)]
    if family.kind == "histogram":
        return [(name, (each.buckets(), each.sum)) for name, each in pairs if each]
    return [(name, (float(value),)) for name, value in pairs if value is not None]


def _families(agents: list[tuple[str, list[list[tuple[str, Any]]]]], forgotten: int) -> Iterator[Any]:
    """Yield the metrics of some agents as ``prometheus_client`` has them."""
    core = _client().core
    kinds = {
        "gauge": core.GaugeMetricFamily,
        "counter": core.CounterMetricFamily,
        "histogram": core.HistogramMetricFamily,
    }
    for place, family in enumerate(FAMILIES):
        made = kinds[family.kind](family.name, family.help, labels=["agent", family.label][: 1 + bool(family.label)])
        for agent, values in agents:
            for name, value in values[place]:
                made.add_metric([agent, name][: 1 + bool(family.label)], *value)
        yield made
    told = "Agents that are no longer exposed, because more than the bound were heard from."
    yield core.CounterMetricFamily(FORGOTTEN, told, value=forgotten)


def _client() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError as error:
        raise MissingExtraError("prometheus_client", INSTALL) from error
    return prometheus_client


_sinks: weakref.WeakSet[PrometheusSink] = weakref.WeakSet()


def _after_fork() -> None:
    for sink in list(_sinks):
        sink._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
