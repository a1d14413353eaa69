"""Sessions of a store: as transcripts, to score anew with other settings, or as they were measured."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import msgspec

from coherence.baseline.vitals import metric_set
from coherence.core.errors import CoherenceError, TranscriptError
from coherence.core.events import Event, Goal, decode_event
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.core.readings import frozen_hook, number_of
from coherence.monitor.codec import decode_result
from coherence.monitor.session_header import NOTHING, began_as, is_without_text, read_beginning
from coherence.monitor.tick_result import Record
from coherence.providers.readers.recorded_events import transcript_of_events
from coherence.providers.transcript import Transcript
from coherence.report.run_of_records import run_of_records
from coherence.report.score import ScoredRun, ToldStep
from coherence.sensor.playback import RecordedMetric, RecordedScalar, Shown
from coherence.state.reducer import AgentState
from coherence.store.errors import StoreError
from coherence.store.extremes import worst_until
from coherence.store.faces import marks_between
from coherence.store.rows import EventRow, SessionRow
from coherence.store.runs import session_label
from coherence.store.store import Store
from coherence.store.told import newest_firings, outcomes_of, steps_until
from coherence.views.steps import ends
from coherence.views.told import effect_of

MAX_EVENTS = 5_000
"""Newest events of a session that are read; about 1,500 steps."""

MAX_FIRINGS = 200
"""Newest firings of guidance of a session that are read."""

_FIRST_GOAL = "SELECT seq FROM events WHERE session_id = ? AND kind = 'goal' ORDER BY seq LIMIT 1"
_FINGERPRINT = re.compile(rb"#[0-9a-f]{16}:(\d+)(?!\d)")


def read_recorded(path: str | Path) -> list[Transcript]:
    """Return each session of a store that has a step, oldest first, called ``agent/session``.

    Raises
    ------
    TranscriptError
        If the file is no store, or holds no session with a step.
    """
    try:
        with Store(path) as store:
            read = (
                _labelled(
                    transcript_of_events(f"{row.agent}/{row.session}", str(path), _events(store, row), format="store"),
                    store,
                    row,
                )
                for row in store.sessions()
                if not is_without_text(row)
            )
            found = [transcript for transcript in read if transcript is not None]
    except StoreError as error:
        raise TranscriptError(path, str(error)) from error
    if not found:
        raise TranscriptError(path, "a store without a session that has a step")
    return found


def scored_session(store: Store, row: SessionRow, *, events: int = MAX_EVENTS) -> ScoredRun | None:
    """Return a session as its monitor has measured it, as far as its newest events hold it; nothing is computed.

    Parameters
    ----------
    store : Store
        Holds the session.
    row : SessionRow
        The session.
    events : int
        Number of newest events that are read.

    Returns
    -------
    ScoredRun or None
        ``None`` if these events hold no step.
    """
    after = max(store.last_seq(row.id) - events, 0)
    rows = list(store.events(row.id, after=after))
    records = [record for record in map(_record, rows) if record is not None]
    earlier = steps_until(store, row.id, after) if after else 0
    run = run_of_records(
        f"{row.agent}/{row.session}",
        records,
        format="store",
        path=str(store.path),
        goal=_goal(store, row, after),
        inverted=_inverted(row),
        timed=row.source != "replay",
        complete=[each.seq for each in rows if ends(each)],
        earlier=earlier,
    )
    if run is None:
        return None
    run = msgspec.structs.replace(run, told=tuple(_told(store, row, run)))
    if is_without_text(row):
        run = without_fingerprints(run)
    notes = []
    if len(records) < len(rows):
        unread = number_of(len(rows) - len(records), "event")
        notes.append(f"{unread} could not be read: another version wrote them, or their content was purged")
    if after and rows:
        worst = worst_until(store, row.id, rows[0].seq - 1)
        refused = [mark for mark in marks_between(store, row.id, ("refusal",), 0, after, MAX_EVENTS) if mark.name]
        notes.append(
            f"only the newest {number_of(len(rows), 'event')} of {rows[-1].seq:,} are shown"
            f"{f'; the worst band before was {worst}' if worst else ''}"
            f"{f'; refused calls before: {len(refused):,}' if refused else ''}"
        )
    transcript = _labelled(msgspec.structs.replace(run.transcript, warnings=tuple(notes)), store, row)
    assert transcript is not None
    return msgspec.structs.replace(run, transcript=transcript)


def _told(store: Store, row: SessionRow, run: ScoredRun) -> Iterator[ToldStep]:
    """Yield the guidance that fired during the steps of a session, and what came of it."""
    for firing in reversed(newest_firings(store, MAX_FIRINGS, session_id=row.id)):
        step = bisect_right(run.first_events, firing.seq) - 1
        if step >= 0:
            arrived = "delivered" if firing.delivered else "not delivered"
            fate = "withheld, to compare" if firing.arm == "control" else arrived
            effect = effect_of(firing, outcomes_of(store, firing.id))
            yield ToldStep(step, firing.pattern, firing.text, fate, effect, firing.seq)


def without_fingerprints(run: ScoredRun) -> ScoredRun:
    """Return a run that was recorded without texts, with words in place of each fingerprint of a text."""
    plain = _FINGERPRINT.sub(lambda found: b"(%s characters, not recorded)" % found[1], msgspec.json.encode(run))
    return msgspec.json.decode(plain, type=ScoredRun, dec_hook=frozen_hook)


def _record(row: EventRow) -> Record | None:
    """Return an event as it was folded, ``None`` of one that this version cannot read."""
    try:
        return Record(row.seq, row.ts, decode_event(row.data), decode_result(row))
    except ValueError:  # msgspec's errors too
        return None


def _goal(store: Store, row: SessionRow, after: int) -> str:
    """Return the first goal of a session, if its event is not among those that are read."""
    for (seq,) in store.fetch(_FIRST_GOAL, (row.id,)):
        found = next(store.events(row.id, after=seq - 1, until=seq), None) if seq <= after else None
        record = _record(found) if found is not None else None
        if record is not None and isinstance(record.event, Goal):
            return record.event.text
    return ""


def _inverted(row: SessionRow) -> frozenset[str]:
    """Return the names of the metrics of a session whose high values are bad; none if its settings cannot be read."""
    try:
        beginning = read_beginning(row)
    except ValueError:
        return frozenset()
    settings, shown = beginning.settings, Shown()
    added: list[RecordedMetric | RecordedScalar] = [
        (RecordedScalar if spec.scalar else RecordedMetric)(spec.name, spec.inverted, shown)
        for spec in settings.metrics
    ]
    config, embeds = beginning.effective, settings.fingerprint != NOTHING
    try:
        found = metric_set(config, AgentState(config), settings.budget, added, embeds=embeds)
    except (CoherenceError, TypeError, ValueError):  # a weight of a metric that is not installed any more
        return frozenset(spec.name for spec in settings.metrics if spec.inverted)
    metrics: list[MetricFn | ScalarMetricFn] = [*found.vectors, *found.scalars]
    return frozenset(metric.name for metric in metrics if metric.inverted)


def _labelled(transcript: Transcript | None, store: Store, row: SessionRow) -> Transcript | None:
    """Return a session with what its labels say of it; they count more than its outcome."""
    good = session_label(store, row.agent, began_as(store, row.agent, row.session))
    if transcript is None or good is None:
        return transcript
    return msgspec.structs.replace(transcript, outcome="good" if good else "bad", went_wrong=not good)


def _events(store: Store, session: SessionRow) -> Iterator[tuple[float | None, Event]]:
    """Yield each event and when it was; a run that was played again has the times of the player, which say nothing."""
    for row in store.events(session.id):
        yield (None if session.source == "replay" else row.ts), decode_event(row.data)
