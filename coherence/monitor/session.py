"""Making an agent's column: new, or going on from what the store holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from coherence.baseline.calibration_store import Calibration, read_calibrator
from coherence.baseline.learned_pressure import learn_pressure
from coherence.baseline.vitals import VITALS
from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import Appraisal, Policy
from coherence.core.events import Source, decode_event
from coherence.core.protocols import Detector, Embedder, MetricFn, Rule, ScalarMetricFn
from coherence.core.registry import create_detector, create_metric, create_rule, installed, is_scalar
from coherence.monitor.codec import decode_told, decode_verdict
from coherence.monitor.pipeline import AgentPipeline, Plugins
from coherence.monitor.recorder import Recorder, StoreBook
from coherence.monitor.session_header import (
    FIRST,
    NOTHING,
    MetricSpec,
    SessionHeader,
    Settings,
    add_session,
    find_place,
    make_beginning,
    read_beginning,
)
from coherence.monitor.snapshots import CarryOver, pack, unpack
from coherence.policy.danger.danger import Danger
from coherence.policy.experiment import policies as pattern_policies
from coherence.policy.rules import reserved_names
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState
from coherence.store.rows import SessionRow
from coherence.store.runs import UNCOUNTED, relabelled
from coherence.store.store import Store

HISTORY = 5_000
"""Newest ticks from which an agent's thresholds are learned."""


class SessionSpec(NamedTuple):
    """What a user asked for."""

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


class OpenSession(NamedTuple):
    """A column that stands where the agent stopped."""

    column: AgentPipeline
    session: str
    seq: int
    """Number of the newest event."""
    recorder: Recorder | None = None
    reopen: Callable[[], tuple[AgentPipeline, int]] | None = None
    """Makes the column anew from the store, with the number of the newest event there."""


def open_column(wanted: SessionSpec, store: Store | None) -> OpenSession:
    """Return an agent's column, and what writes its events if there is a store.

    With a store, the agent goes on with its newest session (or the one named). Where the settings differ from the
    recorded ones it goes on in a new session that begins with the state of the old; a new session of another name
    begins with the agent's baselines.
    """
    embedder = wanted.embedder if wanted.embedder is not None else default_embedder()
    if wanted.source == "replay":  # nobody can be told anything, so that no firing may count
        quiet = msgspec.structs.replace(wanted.config.guidance, enabled=False)
        wanted = wanted._replace(config=msgspec.structs.replace(wanted.config, guidance=quiet))
    if store is None:
        cache = _cache(embedder)
        session = wanted.session or FIRST
        return OpenSession(_column(wanted, wanted.config, cache, session), session, 0)
    book = StoreBook(store)
    inner = embedder.embedder if isinstance(embedder, EmbeddingCache) else embedder
    cache = _cache(inner, book)
    fingerprint = getattr(inner, "fingerprint", None)
    settings = Settings(
        config=wanted.config,
        budget=wanted.budget,
        tree_budget=wanted.tree_budget,
        fingerprint=fingerprint if isinstance(fingerprint, str) else NOTHING if inner is False else None,
        version=installed("coherence-sensor"),
        metrics=tuple(MetricSpec(metric.name, metric.inverted, is_scalar(metric)) for metric in _metrics(wanted)),
        rules=(*(rule.name for rule in _rules(wanted)), *(make().name for make in _detectors(wanted))),
    )
    while True:
        row, name = find_place(store, wanted.agent, wanted.session, wanted.source)
        beginning = read_beginning(row) if row is not None else None
        calibration = _calibration(wanted, store, cache)
        if (
            beginning is None
            or beginning.settings != settings
            or (row is not None and row.source != wanted.source)
            or _outdated(store, wanted.agent, beginning.calibration, calibration)
        ):
            beginning, row = _begin(wanted, store, cache, settings, row, name, calibration)
        if row is not None:  # else another process has just begun a session of this name
            return _opened(wanted, beginning, cache, store, row, book)


def _cache(
    embedder: Embedder | EmbeddingCache | Literal[False], book: StoreBook | None = None
) -> EmbeddingCache | None:
    if embedder is False:
        return None
    return embedder if isinstance(embedder, EmbeddingCache) else EmbeddingCache(embedder, book=book)


def _begin(
    wanted: SessionSpec,
    store: Store,
    cache: EmbeddingCache | None,
    settings: Settings,
    row: SessionRow | None,
    name: str,
    calibration: Calibration,
) -> tuple[SessionHeader, SessionRow | None]:
    """Begin a session with the state of another, or else with the agent's baselines."""
    effective = _learned(wanted, store)
    column = _column(wanted, effective, cache, name)
    if row is not None:
        load(column, store, row)
        column.renumber()
    elif wanted.source != "replay":  # a recorded run is scored by itself, however often it was scored before
        _take_baselines(column, store, wanted.agent)
        column.regulator.data.fired = store.firing_counts(wanted.agent)
    policies = pattern_policies(store) if effective.guidance.learn else {}
    continues = row.session if row is not None else ""
    beginning = make_beginning(settings, effective, pack(column.snapshot()), continues, policies, calibration)
    return beginning, add_session(store, wanted.agent, name, wanted.source, beginning, wanted.parent)


def _opened(
    wanted: SessionSpec,
    beginning: SessionHeader,
    cache: EmbeddingCache | None,
    store: Store,
    row: SessionRow,
    book: StoreBook,
) -> OpenSession:
    def reopen() -> tuple[AgentPipeline, int]:
        column = _column(wanted, beginning.effective, cache, row.session, beginning.policies, beginning.calibration)
        return column, load(column, store, row)

    column, seq = reopen()
    column.runs.pop_finished()  # which are in the store
    return OpenSession(column, row.session, seq, Recorder(store, row, book, seq), reopen)


def _metrics(wanted: SessionSpec, state: AgentState | None = None) -> list[MetricFn | ScalarMetricFn]:
    state = state or AgentState(wanted.config)
    named = [create_metric(name, state) for name in wanted.config.metrics if name not in VITALS]
    return [*named, *wanted.metrics]


def _rules(wanted: SessionSpec) -> list[Rule]:
    """Return the rules of others: those given, and those that the configuration names."""
    given = {rule.name for rule in wanted.rules}
    reserved = reserved_names()
    _refuse_reserved("rules", given)
    known = reserved | given | {make().name for make in _detectors(wanted)}
    named = [name for name in wanted.config.rules if name.partition(".")[0] not in known and name not in given]
    return [*wanted.rules, *(create_rule(name, known) for name in named)]


def _detectors(wanted: SessionSpec) -> list[Callable[[], Detector]]:
    """Return what makes the detectors of others: those given, and those that the configuration names."""
    _refuse_reserved("detectors", [make().name for make in wanted.detectors])
    return [*wanted.detectors, *(create_detector(name) for name in wanted.config.detectors)]


def _refuse_reserved(field: str, names: Iterable[str]) -> None:
    reserved = reserved_names()
    taken = sorted(name for name in names if name.partition(".")[0] in reserved)
    if taken:
        raise ValueError(f"{field}: the name {taken[0]!r} is one of this package's own; call yours otherwise")


def _column(
    wanted: SessionSpec,
    config: MonitorConfig,
    cache: EmbeddingCache | None,
    session: str,
    policies: Mapping[str, Policy] | None = None,
    calibration: Calibration | None = None,
) -> AgentPipeline:
    state = AgentState(config)
    return AgentPipeline(
        config,
        cache,
        budget=wanted.budget,
        tree_budget=wanted.tree_budget,
        plugins=Plugins(_metrics(wanted, state), _rules(wanted), _detectors(wanted), wanted.dangers),
        policies=policies,
        calibration=calibration,
        name=(wanted.agent, session),
        state=state,
    )


def load(column: AgentPipeline, store: Store, row: SessionRow, until: int | None = None) -> int:
    """Bring a fresh column to where a session stands: the newest snapshot, then the events after it.

    Returns
    -------
    int
        Number of the newest event.
    """
    found = store.snapshot(row.id, until=until)
    seq = 0
    if found is not None:
        seq = found[0]
        column.restore(unpack(found[1]))
    else:
        start = read_beginning(row).start_data()
        if start is not None:
            column.restore(unpack(start))
    measured = None
    for event in store.events(row.id, after=seq, until=until):
        seq = event.seq
        column.apply(seq, event.ts, decode_event(event.data), decode_told(event))
        measured = event if event.reading is not None else measured
    if measured is not None:
        column.measured = decode_verdict(measured)
    return seq


def _take_baselines(column: AgentPipeline, store: Store, agent: str) -> None:
    data = store.baselines(agent)
    if data is not None:
        column.inherit(msgspec.msgpack.decode(data, type=CarryOver))


def _calibration(wanted: SessionSpec, store: Store, cache: EmbeddingCache | None) -> Calibration:
    """Return what the agent's labelled runs have taught; recorded runs and tests take what is shipped."""
    alarms = wanted.config.alarms
    if not alarms.learn or wanted.source in UNCOUNTED:
        return Calibration()
    column = _column(wanted, wanted.config, cache, FIRST)
    watched = [metric.name for metric in _metrics(wanted)]
    return read_calibrator(
        store, wanted.agent, alarms, column.runs.versions, column.sensor.weights, watched
    ).calibration()


def _outdated(store: Store, agent: str, old: Calibration, new: Calibration) -> bool:
    return old.outdated(new, relabelled=relabelled(store, agent, old.through, old.relabels))


def _learned(wanted: SessionSpec, store: Store) -> MonitorConfig:
    config = wanted.config
    if not config.learn_pressure:
        return config
    history: list[Appraisal] = []
    for row in reversed(store.sessions(agent=wanted.agent)):
        if row.source == "test" or len(history) >= HISTORY:
            continue
        last = store.last_seq(row.id)
        for event in store.events(row.id, after=max(last - 2 * HISTORY, 0)):
            verdict = decode_verdict(event) if event.reading is not None else None
            if verdict is not None:
                history.append(verdict.appraisal)
    pressure = learn_pressure(config.pressure, history[:HISTORY], f"agent {wanted.agent}")
    return msgspec.structs.replace(config, pressure=pressure)
