"""Interoception for LLM agents: report whether an agent is still on course.

Public names are loaded on first use, so that importing this package costs nothing.

PYTEST_DONT_REWRITE: pytest, of which this package has a plug-in, would warn where it was imported before pytest began.
"""

from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_names

if TYPE_CHECKING:
    from coherence.core.clock import IntervalClock
    from coherence.core.config import Budget, GuidanceConfig, MonitorConfig, PressureConfig, RuleConfig
    from coherence.core.decisions import Appraisal, Decision, Finding, Guidance, Mode
    from coherence.core.errors import CoherenceBlocked, CoherenceError
    from coherence.core.protocols import Embedder, MetricFn, Rule, ScalarMetricFn, StateProvider
    from coherence.core.readings import Band, Counters, Evidence, Failure, MetricInput, Reading, Tick
    from coherence.core.registry import metric, register
    from coherence.core.settings import load_settings
    from coherence.evaluation.blame import Blame, blame
    from coherence.fleet.fleet import Fleet
    from coherence.frameworks.trace import current_monitor, trace
    from coherence.integrations.wrap import monitor_of, unwrap, wrap
    from coherence.monitor.monitor import Monitor
    from coherence.pytest_plugin.assertion import assert_coherent
    from coherence.report.plot import plot
    from coherence.report.runs import Runs, read_runs
    from coherence.report.score import ScoredRun
    from coherence.sensor.embedding_cache import EmbeddingCache
    from coherence.sensor.index import BandEdges, classify_band, compute_coherence_index
    from coherence.sensor.sensor import CoherenceSensor
    from coherence.state.reducer import AgentState
    from coherence.store.store import Store

__version__ = "0.1.0"

_HOME = {
    "AgentState": "coherence.state.reducer",
    "Appraisal": "coherence.core.decisions",
    "Band": "coherence.core.readings",
    "BandEdges": "coherence.sensor.index",
    "Blame": "coherence.evaluation.blame",
    "Budget": "coherence.core.config",
    "CoherenceBlocked": "coherence.core.errors",
    "CoherenceError": "coherence.core.errors",
    "CoherenceSensor": "coherence.sensor.sensor",
    "Counters": "coherence.core.readings",
    "Decision": "coherence.core.decisions",
    "Embedder": "coherence.core.protocols",
    "EmbeddingCache": "coherence.sensor.embedding_cache",
    "Evidence": "coherence.core.readings",
    "Failure": "coherence.core.readings",
    "Finding": "coherence.core.decisions",
    "Fleet": "coherence.fleet.fleet",
    "Guidance": "coherence.core.decisions",
    "GuidanceConfig": "coherence.core.config",
    "IntervalClock": "coherence.core.clock",
    "MetricFn": "coherence.core.protocols",
    "MetricInput": "coherence.core.readings",
    "Mode": "coherence.core.decisions",
    "Monitor": "coherence.monitor.monitor",
    "MonitorConfig": "coherence.core.config",
    "PressureConfig": "coherence.core.config",
    "Reading": "coherence.core.readings",
    "Rule": "coherence.core.protocols",
    "RuleConfig": "coherence.core.config",
    "Runs": "coherence.report.runs",
    "ScalarMetricFn": "coherence.core.protocols",
    "ScoredRun": "coherence.report.score",
    "StateProvider": "coherence.core.protocols",
    "Store": "coherence.store.store",
    "Tick": "coherence.core.readings",
    "assert_coherent": "coherence.pytest_plugin.assertion",
    "blame": "coherence.evaluation.blame",
    "classify_band": "coherence.sensor.index",
    "current_monitor": "coherence.frameworks.trace",
    "compute_coherence_index": "coherence.sensor.index",
    "load_settings": "coherence.core.settings",
    "metric": "coherence.core.registry",
    "monitor_of": "coherence.integrations.wrap",
    "plot": "coherence.report.plot",
    "read_runs": "coherence.report.runs",
    "register": "coherence.core.registry",
    "trace": "coherence.frameworks.trace",
    "unwrap": "coherence.integrations.wrap",
    "wrap": "coherence.integrations.wrap",
}

__all__ = [
    "AgentState",
    "Appraisal",
    "Band",
    "BandEdges",
    "Blame",
    "Budget",
    "CoherenceBlocked",
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
    "MetricFn",
    "MetricInput",
    "Mode",
    "Monitor",
    "MonitorConfig",
    "PressureConfig",
    "Reading",
    "Rule",
    "RuleConfig",
    "Runs",
    "ScalarMetricFn",
    "ScoredRun",
    "StateProvider",
    "Store",
    "Tick",
    "assert_coherent",
    "blame",
    "classify_band",
    "compute_coherence_index",
    "current_monitor",
    "load_settings",
    "metric",
    "monitor_of",
    "plot",
    "read_runs",
    "register",
    "trace",
    "unwrap",
    "wrap",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
