"""An agent's pipeline, made as its user asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from coherence.baseline.calibration import Calibration
from coherence.baseline.vitals import VITALS
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import Policy
from coherence.core.events import Source
from coherence.core.protocols import Detector, Embedder, MetricFn, Rule, ScalarMetricFn
from coherence.core.registry import create_detector, create_metric, create_rule
from coherence.monitor.arguments import FIRST
from coherence.monitor.pipeline import AgentPipeline, Plugins
from coherence.policy.danger.danger import Danger
from coherence.policy.rules import reserved_names
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.monitor.recorder import Recorder
    from coherence.store.rows import SessionRow


class SessionSpec(NamedTuple):
    """Session that a user asked for."""

    agent: str
    session: str | None
    source: Source
    config: MonitorConfig
    budget: Budget | None
    tree_budget: Budget | None
    embedder: Embedder | EmbeddingCache | Literal[False] | None
    metrics: Sequence[MetricFn | ScalarMetricFn]
    rules: Sequence[Rule]
    detectors: Sequence[Callable[[], Detector]]
    dangers: Sequence[Danger] | None
    parent: str | None
    resume: bool = False


class OpenSession(NamedTuple):
    """A pipeline that stands where the agent stopped."""

    pipeline: AgentPipeline
    session: str
    seq: int
    """Number of the newest event."""
    recorder: Recorder | None = None
    reopen: Callable[[SessionRow], tuple[AgentPipeline, int]] | None = None
    """Makes the pipeline anew from the session's events in the store, with the number of the newest one there."""


def open_session(spec: SessionSpec) -> OpenSession:
    """Return an agent that begins with nothing, and is kept nowhere."""
    spec = silence_replay(spec)
    inner = spec.embedder if spec.embedder is not None else default_embedder()
    cache = None if inner is False else inner if isinstance(inner, EmbeddingCache) else EmbeddingCache(inner)
    session = spec.session or FIRST
    return OpenSession(make_pipeline(spec, spec.config, cache, session), session, 0)


def silence_replay(spec: SessionSpec) -> SessionSpec:
    """Return what is asked for; of a replay without guidance, since it would reach nobody and no firing may count."""
    if spec.source != "replay":
        return spec
    quiet = msgspec.structs.replace(spec.config.guidance, enabled=False)
    return spec._replace(config=msgspec.structs.replace(spec.config, guidance=quiet))


def make_pipeline(
    spec: SessionSpec,
    config: MonitorConfig,
    cache: EmbeddingCache | None,
    session: str,
    policies: Mapping[str, Policy] | None = None,
    calibration: Calibration | None = None,
) -> AgentPipeline:
    """Return a fresh pipeline of a session, with the plug-ins that its user asked for."""
    state = AgentState(config)
    return AgentPipeline(
        config,
        cache,
        budget=spec.budget,
        tree_budget=spec.tree_budget,
        plugins=Plugins(plugin_metrics(spec, state), plugin_rules(spec), plugin_detectors(spec), spec.dangers),
        policies=policies,
        calibration=calibration,
        name=(spec.agent, session),
        state=state,
    )


def plugin_metrics(spec: SessionSpec, state: AgentState | None = None) -> list[MetricFn | ScalarMetricFn]:
    """Return the metrics of others: those that the configuration names, and those given."""
    state = state or AgentState(spec.config)
    named = [create_metric(name, state) for name in spec.config.metrics if name not in VITALS]
    return [*named, *spec.metrics]


def plugin_rules(spec: SessionSpec) -> list[Rule]:
    """Return the rules of others: those given, and those that the configuration names."""
    given = {rule.name for rule in spec.rules}
    reserved = reserved_names()
    _refuse_reserved("rules", given)
    known = reserved | given | {make().name for make in plugin_detectors(spec)}
    named = [name for name in spec.config.rules if name.partition(".")[0] not in known and name not in given]
    return [*spec.rules, *(create_rule(name, known) for name in named)]


def plugin_detectors(spec: SessionSpec) -> list[Callable[[], Detector]]:
    """Return what makes the detectors of others: those given, and those that the configuration names."""
    _refuse_reserved("detectors", [make().name for make in spec.detectors])
    return [*spec.detectors, *(create_detector(name) for name in spec.config.detectors)]


def _refuse_reserved(field: str, names: Iterable[str]) -> None:
    reserved = reserved_names()
    taken = sorted(name for name in names if name.partition(".")[0] in reserved)
    if taken:
        raise ValueError(f"{field}: the name {taken[0]!r} is one of this package's own; call yours otherwise")
