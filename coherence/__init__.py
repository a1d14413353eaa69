"""Interoception for LLM agents: tell whether an agent is still thinking straight.

Public names are loaded on first use, so that importing this package costs nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coherence.blaming import Blame, blame
    from coherence.clock import IntervalClock, ManualClock
    from coherence.config import Budget, GuidanceConfig, MonitorConfig, PressureConfig, RuleConfig
    from coherence.errors import CoherenceError
    from coherence.findings import Appraisal, Decision, Finding, Guidance, Mode
    from coherence.fleet import Fleet
    from coherence.monitor import Monitor
    from coherence.protocols import Embedder, MetricFn, Rule, ScalarMetricFn, StateProvider
    from coherence.records import Band, Counters, Evidence, Failure, MetricInput, Reading, Tick
    from coherence.registry import metric, register
    from coherence.sensor.core import CoherenceSensor
    from coherence.sensor.embedding import EmbeddingCache
    from coherence.sensor.index import Thresholds, classify_band, compute_coherence_index
    from coherence.state import AgentState
    from coherence.store.store import Store

__version__ = "0.1.0"

_HOME = {
    "AgentState": "coherence.state",
    "Appraisal": "coherence.findings",
    "Band": "coherence.records",
    "Blame": "coherence.blaming",
    "Budget": "coherence.config",
    "CoherenceError": "coherence.errors",
    "CoherenceSensor": "coherence.sensor.core",
    "Counters": "coherence.records",
    "Decision": "coherence.findings",
    "Embedder": "coherence.protocols",
    "EmbeddingCache": "coherence.sensor.embedding",
    "Evidence": "coherence.records",
    "Failure": "coherence.records",
    "Finding": "coherence.findings",
    "Fleet": "coherence.fleet",
    "Guidance": "coherence.findings",
    "GuidanceConfig": "coherence.config",
    "IntervalClock": "coherence.clock",
    "ManualClock": "coherence.clock",
    "MetricFn": "coherence.protocols",
    "MetricInput": "coherence.records",
    "Mode": "coherence.findings",
    "Monitor": "coherence.monitor",
    "MonitorConfig": "coherence.config",
    "PressureConfig": "coherence.config",
    "Reading": "coherence.records",
    "Rule": "coherence.protocols",
    "RuleConfig": "coherence.config",
    "ScalarMetricFn": "coherence.protocols",
    "StateProvider": "coherence.protocols",
    "Store": "coherence.store.store",
    "Thresholds": "coherence.sensor.index",
    "Tick": "coherence.records",
    "blame": "coherence.blaming",
    "classify_band": "coherence.sensor.index",
    "compute_coherence_index": "coherence.sensor.index",
    "metric": "coherence.registry",
    "register": "coherence.registry",
}

__all__ = [
    "AgentState",
    "Appraisal",
    "Band",
    "Blame",
    "Budget",
    "CoherenceError",
    "CoherenceSensor",
    "Counters",
    "Decision",
    "Embedder",
    "EmbeddingCache",
    "Evidence",
    "Failure",
    "Finding",
    "Fleet",
    "Guidance",
    "GuidanceConfig",
    "IntervalClock",
    "ManualClock",
    "MetricFn",
    "MetricInput",
    "Mode",
    "Monitor",
    "MonitorConfig",
    "PressureConfig",
    "Reading",
    "Rule",
    "RuleConfig",
    "ScalarMetricFn",
    "StateProvider",
    "Store",
    "Thresholds",
    "Tick",
    "blame",
    "classify_band",
    "compute_coherence_index",
    "metric",
    "register",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
