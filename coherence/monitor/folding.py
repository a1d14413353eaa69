"""Folding: what one agent has recorded, in order, once; measured where the policy says so; the caller has the lock."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import coherence.core.events as events
from coherence.core.config import MonitorConfig
from coherence.core.events import Event, FleetContext, make_fault
from coherence.core.readings import Reading
from coherence.core.redact import Redactor
from coherence.core.ring import Ring
from coherence.monitor.inbox import Inbox, size_of
from coherence.monitor.known_state import KnownState
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.session import OpenSession
from coherence.monitor.sinks import Sinks
from coherence.monitor.snapshots import pack
from coherence.monitor.tick_result import Record, TickResult
from coherence.store.errors import StoreError

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.monitor.lesson_recall import LessonRecall
    from coherence.monitor.recorder import Recorder

NOBODY = FleetContext()
"""There is no other agent that matters."""

LOG = logging.getLogger("coherence")

MAX_EVENTS = 10_000
MAX_READINGS = 256

SNAPSHOT_EVERY = 100
"""Events after which the state is kept, so that going on with a session folds about so many at most.

Keeping it takes about as long as folding five.
"""

KEPT_BYTES = 8_000_000
"""Bytes of the newest events that are held in memory, and of those that wait to be folded but are written."""

BEHIND_EVENTS, BEHIND_BYTES, BEHIND_S = 1_000, 2_000_000, 5.0
"""Events, bytes and seconds of waiting above which what waits is written first and measured once, at its end."""

LIMIT_EVENTS = 5_000
"""Events that wait to be written before somebody who asks for a decision writes them: half of what may wait at all."""

ENDS_RUN = (events.Outcome, events.Goal)
"""Events after which what came before counts for another run."""

STORED = events.Fault("stored", "", "")
"""In place of an event that is read from the store when its turn comes."""


class Peers(Protocol):
    """The other agents that matter to one."""

    def look(self, *, until: float | None) -> FleetContext:
        """Return what comes from them, as far as it is known.

        With a time (monotonic), after folding by then what they have posted; then no lock may be held.
        """
        ...

    def learn(self, *, success: bool) -> None:
        """Take in how a task of the agent ended; never called while a lock is held."""
        ...


class Folding(ABC):
    """The inbox, the pipeline and what it has made; a :class:`~coherence.monitor.worker.Worker` says when.

    Parameters
    ----------
    opened : OpenSession
        The pipeline and where it stands.
    config : MonitorConfig
        Tick policy and redaction.
    peers : Peers, optional
        The other agents that matter to this one.
    lesson_recall : LessonRecall, optional
        What is known of errors.
    """

    def __init__(
        self,
        opened: OpenSession,
        config: MonitorConfig,
        peers: Peers | None = None,
        lesson_recall: LessonRecall | None = None,
    ) -> None:
        self.pipeline: AgentPipeline = opened.pipeline
        self.readings = Ring[Reading](MAX_READINGS)
        self.events: deque[Record] = deque()
        self.recorder: Recorder | None = opened.recorder
        self._config = config
        self._redactor = Redactor(hide_secrets=config.redact)
        self._keeps_text = config.privacy == "full"
        self._peers = peers
        self._lesson_recall = lesson_recall
        self._seq = opened.seq
        self._inbox = Inbox(opened.recorder.store.path.parent if opened.recorder is not None else None)
        self._ahead: deque[Record] = deque()
        """Records that have their number, and are not folded yet; of those that are written, perhaps without event."""
        self._ahead_bytes = self._kept_bytes = 0
        self._due: float | None = None
        """Time of the newest step that is to be measured as soon as nothing waits."""
        self._awaits_vectors = False
        """True if that step is measured as soon as its texts have vectors."""
        self._embedded_for: float | None = None
        """Time of the newest step whose texts were embedded ahead, as far as that worked."""
        self._others: set[int] = set()
        """Threads that wait for the lock; the background thread lets them in."""
        self._store_down = False
        self._newest = opened.pipeline.measured
        self.known_state = KnownState.of(opened.pipeline)
        """State after the newest event; another one takes its place, so that it can be read without the lock."""
        self._last_around = NOBODY
        self.sinks: Sinks | None = None
        """Receivers of the records besides the store."""

    @abstractmethod
    def _save(self, *, raising: bool, last: bool = False, wait_s: float = -1.0) -> None:
        """Write what waits to be written."""

    def _advance(self, until: float | None = None, *, hurries: bool = True, measures: bool = True) -> bool:
        """Fold what has been posted, as long as there is time; the caller holds the lock.

        Where too much waits, it is written first and measured once, at its end; so is, for who hurries, what waits
        when three quarters of the time are over. Who does not measure leaves the newest step for later. Who does not
        hurry leaves a step until its texts have vectors.

        Returns
        -------
        bool
            Whether nothing waits any more.
        """
        begun = monotonic()
        late = None if until is None or not hurries else until - (until - begun) / 4
        limit = until if hurries else None
        while self._inbox or self._ahead or self._due is not None or self._inbox.has_losses:
            now = monotonic()
            if until is not None and now > until:
                return False
            if not hurries and self._others:
                return False
            if not measures and not (self._inbox or self._ahead or self._inbox.has_losses):
                return False
            if self._holds_much(most=LIMIT_EVENTS if hurries else BEHIND_EVENTS) and not self._store_down:
                self._save(raising=False, wait_s=-1.0 if limit is None else max(limit - now, 0.0))
            if self._ahead:
                self._fold_next()
            elif self._inbox and not self._awaits_vectors and ((late is not None and now > late) or self._is_behind()):
                self._take_many(limit)
            elif self._due is not None and (measures or (hurries and self._inbox)):
                self._awaits_vectors = not hurries and self._lacks_vectors(self._due)
                if self._awaits_vectors:
                    return False
                self._tick(self._due, self._reason, self._look_around(), until=limit)
            elif not self._inbox:
                self._report_losses()
            elif (taken := self._inbox.pop()) is not None:
                ts, event = taken
                if not self._is_asked(event):
                    event = self._prepared(event)
                    self._apply(ts, event)
                    if not self._is_measured_after(event):
                        continue
                elif not self.pipeline.changed and not self.pipeline.unjudged:
                    continue
                self._awaits_vectors = measures and not hurries and self._lacks_vectors(ts)
                if self._awaits_vectors or not measures:
                    self._due = ts
                else:
                    self._tick(ts, self._reason, self._look_around(), until=limit)
        return True

    def _lacks_vectors(self, ts: float) -> bool:
        return ts != self._embedded_for and bool(self.pipeline.unembedded())

    def _holds_much(self, most: int) -> bool:
        """Return whether so much waits to be written, or so many events, that it is written before more is taken."""
        recorder = self.recorder
        return recorder is not None and (recorder.pending > most or recorder.pending_bytes > KEPT_BYTES)

    def _is_behind(self) -> bool:
        inbox = self._inbox
        return len(inbox) > BEHIND_EVENTS or inbox.bytes > BEHIND_BYTES or inbox.age(time.time()) > BEHIND_S

    @property
    def _reason(self) -> str:
        """Reason of a step that is due: where the policy says nothing of steps, the host has asked for it."""
        policy = self._config.tick
        return policy if policy in ("step", "event") else "decide"

    def _is_asked(self, event: Event) -> bool:
        """Tell whether this is no event: the host asks in its place that what came before is measured."""
        return type(event) is events.Ticked

    def _is_measured_after(self, event: Event) -> bool:
        policy = self._config.tick
        return policy == "event" or (policy == "step" and events.ends_step(event))

    def _take_many(self, until: float | None) -> None:
        """Give many events their numbers at once, so that they can be written before they are folded, unmeasured."""
        for _ in range(BEHIND_EVENTS):
            if not self._take_next(until, measures=False) or self._ahead_bytes > KEPT_BYTES:
                return

    def _take_next(self, until: float | None, *, measures: bool) -> bool:
        """Give the oldest event its number; return whether there was one.

        A task does not end before its last step is measured, or nothing would be known of a run that ends at once.
        """
        taken = self._inbox.pop()
        if taken is None:
            return False
        if self._is_asked(taken[1]):
            self._due = taken[0]
            return True
        if type(taken[1]) in ENDS_RUN:
            while self._ahead:
                self._fold_next()
            if self._due is not None:
                self._tick(self._due, self._reason, self._look_around(), until=until)
        elif not measures and self._due is not None:
            waiting = len(self._inbox) + 1
            dropped = events.Fault("measurement", "dropped", f"no measurement of this step: {waiting} events wait")
            self._take(self._due, dropped)
            self._due = None
        self._take(*taken)
        if not measures and self._is_measured_after(self._ahead[-1].event):
            self._due = taken[0]
        return True

    def _prepared(self, event: Event) -> Event:
        try:
            return self._redactor.prepare(event)
        except Exception as error:  # a secret must not slip through because a rule failed
            return make_fault("prepare", error)

    def _take(self, ts: float, event: Event) -> None:
        """Give an event its number and hand it to the recorder, before it is folded."""
        self._seq += 1
        record = Record(self._seq, ts, self._prepared(event))
        self._ahead.append(record)
        self._ahead_bytes += size_of(record.event)
        self._keep(record)
        if self.recorder is not None:
            self.recorder.add(record)

    def _fold_next(self) -> None:
        """Fold the next record that has its number."""
        record = self._ahead.popleft()
        self._ahead_bytes -= size_of(record.event)
        event = self._read_back(record.seq) if record.event is STORED else record.event
        self._fold(record.seq, record.ts, event)
        if self._is_measured_after(event):
            self._due = record.ts
        self._hand_over(record.seq)

    def _read_back(self, seq: int) -> Event:
        assert self.recorder is not None
        number = seq + self.recorder.moved
        try:
            rows = self.recorder.store.events(self.recorder.session.id, after=number - 1, until=number)
            return events.decode_event(next(iter(rows)).data)
        except (StoreError, StopIteration):  # the store's file is gone
            return make_fault("store", f"event {seq} cannot be read any more")

    def _lighten(self) -> None:
        """Let go of what is written and waits to be folded: it is read from the store when its turn comes."""
        assert self.recorder is not None
        for at, record in enumerate(self._ahead):
            if record.seq <= self.recorder.saved and record.event is not STORED:
                self._ahead_bytes += size_of(STORED) - size_of(record.event)
                self._ahead[at] = Record(record.seq, record.ts, STORED)

    def _report_losses(self) -> None:
        """Record how much came too fast to be held."""
        texts, lost = self._inbox.losses()
        if texts or lost:
            LOG.warning("coherence: %d texts and %d events were dropped: they came too fast", texts, lost)
            self._inbox.put(time.time(), make_fault("inbox", f"{texts} texts and {lost} events were dropped"))

    def _tick(
        self,
        ts: float,
        reason: str,
        around: FleetContext,
        opinion: events.Opinion | None = None,
        *,
        until: float | None = None,
    ) -> None:
        """Measure, with what comes from outside of the agent; the caller holds the lock, and nothing is ahead."""
        recalled = self._lesson_recall.recall(self.pipeline) if self._lesson_recall is not None else None
        tree, received = around.tree, around.received
        self._due, self._awaits_vectors = None, False
        self.pipeline.limit(until)
        self._apply(ts, events.Ticked(reason, tree=tree, received=received, recalled=recalled, opinion=opinion))
        self.pipeline.limit(None)

    def _fold(self, seq: int, ts: float, event: Event) -> TickResult | None:
        try:
            result = self.pipeline.fold(seq, ts, event)
        except Exception as error:  # a fault of this package must not reach the host
            LOG.exception("coherence: event %d could not be folded", seq)
            # a fault that cannot be folded would make faults for ever
            if type(event) is not events.Fault:
                self._inbox.put(ts, make_fault(f"fold of event {seq}", error))
            return None
        finally:
            self.known_state = KnownState.of(self.pipeline)
            if self._lesson_recall is not None:
                self._lesson_recall.collect(self.pipeline)
        return result

    def _apply(self, ts: float, event: Event) -> TickResult | None:
        """Fold one event and hand it to the recorder; the caller holds the lock, and nothing is ahead."""
        seq = self._seq = self._seq + 1
        result = self._fold(seq, ts, event)
        record = Record(seq, ts, event, result)
        self._keep(record)
        if result is not None:
            self._newest = self.pipeline.measured
            if result.reading is not None:
                self.readings.add(seq, result.reading)
        if type(event) is events.Ticked and event.tool_name is None:
            self._last_around = events.FleetContext(event.tree, event.received)
        self._hand_over(seq, record)
        return result

    def _hand_over(self, seq: int, record: Record | None = None) -> None:
        """Tell the recorder what came of an event that was just folded, with its record if it has none yet."""
        if self.recorder is None:
            return
        # before the record, which may be written at once, with this number
        self.recorder.run = self.pipeline.runs.run.number
        if record is not None:
            self.recorder.add(record)
        self.recorder.add_runs(self.pipeline.runs.pop_finished())
        if seq % SNAPSHOT_EVERY == 0:
            self._add_snapshot(seq)

    def _keep(self, record: Record) -> None:
        """Hold a record for who looks at the newest events; the oldest go when their texts take too much."""
        self.events.append(record)
        if self.sinks is not None:
            self.sinks.emit(record)
        self._kept_bytes += size_of(record.event)
        while len(self.events) > MAX_EVENTS or (self._kept_bytes > KEPT_BYTES and len(self.events) > 1):
            self._kept_bytes -= size_of(self.events.popleft().event)

    def _add_snapshot(self, seq: int) -> None:
        if self.recorder is None or not self._keeps_text:
            return
        try:
            self.recorder.add_snapshot(seq, pack(self.pipeline.snapshot()))
        except (TypeError, ValueError, OverflowError):  # without it the events are folded again
            LOG.exception("coherence: the state after event %d could not be kept", seq)

    def _look_around(self, until: float | None = None) -> FleetContext:
        return self._peers.look(until=until) if self._peers is not None else NOBODY
