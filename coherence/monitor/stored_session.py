"""An agent's session in a store: begun, or gone on with where it stopped."""

from __future__ import annotations

from base64 import b64encode

import msgspec
import numpy as np

from coherence.baseline.calibration import Calibration
from coherence.baseline.calibration_store import read_calibration
from coherence.baseline.own_scale import NEEDED, learn_own_scale
from coherence.core.events import UNCOUNTED, decode_event
from coherence.core.registry import installed, is_scalar
from coherence.monitor.arguments import FIRST, LOG
from coherence.monitor.codec import decode_result
from coherence.monitor.no_text import NoText, read_key
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.recorder import Recorder, StoreBook
from coherence.monitor.session import (
    OpenSession,
    SessionSpec,
    make_pipeline,
    plugin_detectors,
    plugin_metrics,
    plugin_rules,
    silence_replay,
)
from coherence.monitor.session_header import (
    NOTHING,
    MetricSpec,
    SessionHeader,
    Settings,
    add_session,
    find_place,
    is_without_text,
    read_beginning,
)
from coherence.monitor.snapshots import pack, read_carry_over, unpack
from coherence.policy.experiment import policies as pattern_policies
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.rows import SessionRow
from coherence.store.runs import count_learnable, labelled_runs, relabelled
from coherence.store.store import Store


def open_stored_session(spec: SessionSpec, store: Store) -> OpenSession:
    """Return an agent that stands where the store left it, and what writes its events.

    The agent begins a new session, goes on with the one named, or resumes its newest. Where the settings differ from
    the recorded ones it goes on in a new session that begins with the state of the old; a new session of another name
    begins with the agent's baselines.
    """
    spec = silence_replay(spec)
    embedder = spec.embedder if spec.embedder is not None else default_embedder()
    book = StoreBook(store)
    private = spec.config.privacy == "no-text"
    # Not a cache that was given: what is embedded here has to reach this store's book.
    inner = embedder.embedder if isinstance(embedder, EmbeddingCache) else embedder
    cache = None if inner is False else EmbeddingCache(inner, book=None if private else book)
    fingerprint = getattr(inner, "fingerprint", None)
    settings = Settings(
        config=spec.config,
        budget=spec.budget,
        tree_budget=spec.tree_budget,
        fingerprint=fingerprint if isinstance(fingerprint, str) else NOTHING if inner is False else None,
        version=installed("coherence-sensor"),
        metrics=tuple(MetricSpec(metric.name, metric.inverted, is_scalar(metric)) for metric in plugin_metrics(spec)),
        rules=(*(rule.name for rule in plugin_rules(spec)), *(make().name for make in plugin_detectors(spec))),
    )
    while True:
        row, name = find_place(store, spec.agent, spec.session, spec.source, resume=spec.resume)
        if row is not None and (private or is_without_text(row)):  # there is no state to go on from
            row = None
        beginning = read_beginning(row) if row is not None else None
        calibration = _calibration(spec, store, cache)
        if (
            beginning is None
            or beginning.settings != settings
            or (row is not None and row.source != spec.source)
            or _outdated(store, spec.agent, beginning.calibration, calibration)
        ):
            beginning, row = _begin(spec, store, cache, settings, row, name, calibration)
        if row is not None:  # else another process has just begun a session of this name
            return _opened(spec, beginning, cache, store, row, book)


def _begin(
    spec: SessionSpec,
    store: Store,
    cache: EmbeddingCache | None,
    settings: Settings,
    row: SessionRow | None,
    name: str,
    calibration: Calibration,
) -> tuple[SessionHeader, SessionRow | None]:
    """Begin a session with the state of another, or else with the agent's baselines."""
    pipeline = make_pipeline(spec, spec.config, cache, name)
    if row is not None:
        load(pipeline, store, row)
        pipeline.renumber()
    else:
        _inherit(pipeline, spec, store)
    beginning = SessionHeader(
        settings=settings,
        effective=spec.config,
        numpy=np.__version__,
        onnxruntime=installed("onnxruntime"),
        start=b64encode(pack(pipeline.snapshot())).decode() if spec.config.privacy == "full" else "",
        continues=row.session if row is not None else "",
        policies=dict(pattern_policies(store)) if spec.config.guidance.learn else {},
        calibration=calibration,
    )
    return beginning, add_session(store, spec.agent, name, spec.source, beginning, spec.parent)


def _inherit(pipeline: AgentPipeline, spec: SessionSpec, store: Store) -> None:
    """Let a session that begins now go on with what the agent's earlier ones have taught."""
    if spec.source == "replay":  # a recorded run is scored by itself, however often it was scored before
        return
    _inherit_baselines(pipeline, store, spec.agent)
    # pairs of firings go on over all sessions of an agent
    pipeline.regulator.data.fired = store.firing_counts(spec.agent)


def _opened(
    spec: SessionSpec,
    beginning: SessionHeader,
    cache: EmbeddingCache | None,
    store: Store,
    row: SessionRow,
    book: StoreBook,
) -> OpenSession:
    if is_without_text(row):
        pipeline = make_pipeline(
            spec, beginning.effective, cache, row.session, beginning.policies, beginning.calibration
        )
        _inherit(pipeline, spec, store)
        no_text = NoText(read_key(store.path), beginning.settings.rules)
        return OpenSession(pipeline, row.session, 0, Recorder(store, row, book, 0, no_text=no_text))

    newest: tuple[int, bytes] | None = None
    newest_of = row

    def fresh() -> AgentPipeline:
        return make_pipeline(spec, beginning.effective, cache, row.session, beginning.policies, beginning.calibration)

    def reopen(row: SessionRow) -> tuple[AgentPipeline, int]:
        nonlocal newest, newest_of
        pipeline = fresh()
        # A session that is in another file now may have other events under these numbers.
        seq = load(pipeline, store, row, known=newest if row == newest_of else None)
        # Two processes that take turns reopen at every turn: each folds only what is new since its last one.
        newest, newest_of = (seq, pack(pipeline.snapshot())), row
        return pipeline, seq

    pipeline = fresh()
    seq = load(pipeline, store, row)
    pipeline.runs.pop_finished()  # which are in the store
    return OpenSession(pipeline, row.session, seq, Recorder(store, row, book, seq, cache), reopen)


def load(
    pipeline: AgentPipeline,
    store: Store,
    row: SessionRow,
    until: int | None = None,
    known: tuple[int, bytes] | None = None,
) -> int:
    """Bring a fresh pipeline to where a session stands: the newest snapshot, then the events after it.

    ``known`` is a snapshot of this process, taken after the event of that number.

    Returns
    -------
    int
        Number of the newest event.
    """
    found = store.snapshot(row.id, until=until)
    if known is not None and (found is None or known[0] > found[0]):
        found = known
    seq = 0
    if found is not None:
        try:
            pipeline.restore(unpack(found[1]))
            seq = found[0]
        except ValueError as error:
            first = next(store.events(row.id, limit=1), None)
            if first is not None and first.seq > 1:
                raise
            LOG.warning("coherence: %s: state after event %d: %s; its events are folded", store.path, found[0], error)
            found = None
    if found is None:
        start = read_beginning(row).start_data()
        if start is not None:
            pipeline.restore(unpack(start))
    for event in store.events(row.id, after=seq, until=until):
        seq = event.seq
        try:
            pipeline.apply(seq, event.ts, decode_event(event.data), decode_result(event))
        except ValueError as error:
            store.refuse_altered(row.id, seq, error)
            raise
    return seq


def _inherit_baselines(pipeline: AgentPipeline, store: Store, agent: str) -> None:
    data = store.baselines(agent)
    if data is None:
        return
    try:
        inherited = read_carry_over(data)
    except ValueError as error:
        LOG.warning("coherence: %s: what is normal for agent %s cannot be read: %s", store.path, agent, error)
        return
    pipeline.inherit(inherited)


def _calibration(spec: SessionSpec, store: Store, cache: EmbeddingCache | None) -> Calibration:
    """Return what the agent's runs have taught; recorded runs and tests take what is shipped."""
    alarms = spec.config.alarms
    if not alarms.learn or spec.source in UNCOUNTED:
        return Calibration()
    # Only for the scale and for the versions of its metrics; it folds nothing.
    pipeline = make_pipeline(spec, spec.config, cache, FIRST)
    watched = [metric.name for metric in plugin_metrics(spec)]
    versions = pipeline.runs.versions
    found = read_calibration(store, spec.agent, alarms, versions, watched)
    if pipeline.scale is None or count_learnable(store, spec.agent) < 2 * NEEDED:
        return found
    own = learn_own_scale(labelled_runs(store, spec.agent), pipeline.scale, versions)
    return msgspec.structs.replace(found, own=own)


def _outdated(store: Store, agent: str, old: Calibration, new: Calibration) -> bool:
    return old.outdated(new, relabelled=relabelled(store, agent, old.through, old.relabels))
