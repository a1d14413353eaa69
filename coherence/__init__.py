"""Interoception for LLM agents: tell whether an agent is still thinking straight.

Public names are loaded on first use, so that importing this package costs nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coherence.clock import IntervalClock, ManualClock
    from coherence.errors import CoherenceError
    from coherence.protocols import Embedder, MetricFn, ScalarMetricFn, StateProvider
    from coherence.records import Band, Counters, Evidence, Failure, MetricInput, Reading, Tick
    from coherence.registry import metric, register
    from coherence.sensor.core import CoherenceSensor
    from coherence.sensor.embedding import EmbeddingCache
    from coherence.sensor.index import Thresholds, classify_band, compute_coherence_index

__version__ = "0.1.0"

_HOME = {
    "Band": "coherence.records",
    "CoherenceError": "coherence.errors",
    "CoherenceSensor": "coherence.sensor.core",
    "Counters": "coherence.records",
    "Embedder": "coherence.protocols",
    "EmbeddingCache": "coherence.sensor.embedding",
    "Evidence": "coherence.records",
    "Failure": "coherence.records",
    "IntervalClock": "coherence.clock",
    "ManualClock": "coherence.clock",
    "MetricFn": "coherence.protocols",
    "MetricInput": "coherence.records",
    "Reading": "coherence.records",
    "ScalarMetricFn": "coherence.protocols",
    "StateProvider": "coherence.protocols",
    "Thresholds": "coherence.sensor.index",
    "Tick": "coherence.records",
    "classify_band": "coherence.sensor.index",
    "compute_coherence_index": "coherence.sensor.index",
    "metric": "coherence.registry",
    "register": "coherence.registry",
}

__all__ = [
    "Band",
    "CoherenceError",
    "CoherenceSensor",
    "Counters",
    "Embedder",
    "EmbeddingCache",
    "Evidence",
    "Failure",
    "IntervalClock",
    "ManualClock",
    "MetricFn",
    "MetricInput",
    "Reading",
    "ScalarMetricFn",
    "StateProvider",
    "Thresholds",
    "Tick",
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
