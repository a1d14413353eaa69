"""Driver of a pipeline: an inbox, one lock, and a thread that folds and writes off the caller's path."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Protocol

import msgspec

import coherence.core.events as events
from coherence.core.config import MonitorConfig
from coherence.core.events import Event, FleetContext, is_success, make_fault
from coherence.core.readings import Reading
from coherence.core.redact import Redactor, prepare
from coherence.core.ring import Ring
from coherence.monitor.background import BACKGROUND
from coherence.monitor.pipeline import ENDING, AgentPipeline
from coherence.monitor.session import OpenSession
from coherence.monitor.snapshots import pack, read_carry_over
from coherence.monitor.tick_result import Record, TickResult

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.monitor.lesson_recall import LessonRecall
    from coherence.monitor.recorder import Recorder
    from coherence.monitor.second_stage import SecondStage

NOBODY = FleetContext()
"""There is no other agent that matters."""

LOG = logging.getLogger("coherence")

MAX_PENDING = 100
"""Events that may wait; whoever records the next one writes them first."""

MAX_EVENTS = 10_000
MAX_READINGS = 256
SNAPSHOT_EVERY = 1_000
FORK_WAIT_S = 3.0
"""Seconds that a fork waits at most for a measurement under way."""

PATIENCE_S = 1.0
"""Seconds that whoever records waits at most for a write under way, once 100 events wait; then they go on waiting."""

LESSONS_WAIT_S = 10.0
"""Seconds that a flush, and the end, wait at most for another thread that writes lessons."""

RETRY_S = 5.0
"""Seconds between two attempts to write to a store that cannot be written."""


class Peers(Protocol):
    """The other agents that matter to one."""

    def look(self, *, fold: bool) -> FleetContext:
        """Return what comes from them; with ``fold`` after folding what they have posted, never holding a lock."""
        ...

    def learn(self, *, success: bool) -> None:
        """Take in how a task of the agent ended; never called while a lock is held."""
        ...


class Worker:
    """Fold what is posted, in order, once; measure where the policy says so; write it.

    Parameters
    ----------
    opened : OpenSession
        The pipeline and where it stands.
    config : MonitorConfig
        Tick policy and redaction.
    full : bool
        Whether every post is written before it returns.
    peers : Peers, optional
        The other agents that matter to this one.
    lesson_recall : LessonRecall, optional
        What is known of errors.
    second_stage : SecondStage, optional
        Who is asked for a second opinion on calls.
    """

    def __init__(
        self,
        opened: OpenSession,
        config: MonitorConfig,
        *,
        full: bool = False,
        peers: Peers | None = None,
        lesson_recall: LessonRecall | None = None,
        second_stage: SecondStage | None = None,
    ) -> None:
        self.pipeline: AgentPipeline = opened.pipeline
        self.readings = Ring[Reading](MAX_READINGS)
        self.events: deque[Record] = deque(maxlen=MAX_EVENTS)
        self.recorder: Recorder | None = opened.recorder
        self.closed = False
        self._reopen = opened.reopen
        self._config = config
        self._redactor = Redactor(hide_secrets=config.redact)
        self._full = full
        self._peers = peers
        self._lesson_recall = lesson_recall
        self._second_stage = second_stage
        self._seq = opened.seq
        self._inbox: deque[tuple[float, Event]] = deque()
        self._lock = RLock()
        self._forker: int | None = None
        self._called = False
        self._store_down = False
        self._reported_loss = 0
        self._last_around = NOBODY
        BACKGROUND.known.add(self)

    def post(self, event: Event) -> None:
        """Take an event; it is folded soon, or when something is asked."""
        self._inbox.append((time.time(), event))
        if type(event) is events.Outcome and self._peers is not None:
            success = is_success(event)
            if success is not None:
                self._peers.learn(success=success)
        if self._full:
            self.settle_accounts(raising=True)
            self.after()
        elif len(self._inbox) + self._waiting >= MAX_PENDING and not self._store_down:
            self.settle_accounts(raising=False, wait_s=PATIENCE_S)
        else:
            self._wake()

    def _wake(self) -> None:
        """Have the background thread work soon."""
        if not self._called:
            self._called = True
            BACKGROUND.call(self)

    @contextmanager
    def settled(self) -> Iterator[AgentPipeline]:
        """Give the pipeline with everything folded that was posted before, and hold it still."""
        with self._lock:
            self._advance()
            yield self.pipeline

    def decide(self, reason: str) -> TickResult | None:
        """Measure if anything has happened since the newest measurement; return the newest."""
        around = self._look_around(fold=True)
        opinion = self._second_opinion()
        with self._lock:
            self._advance()
            now = time.time()
            pipeline = self.pipeline
            asked = opinion is not None or (reason == "decide" and pipeline.unjudged)
            if pipeline.changed or asked or around != self._last_around or pipeline.time_is_up(now):
                self._tick(now, reason, around, opinion)
            return self.pipeline.with_guidance()

    def check(self, call: events.ToolCall) -> TickResult | None:
        """Judge whether a call may run; the question is recorded."""
        around = self._look_around(fold=True)
        asked = prepare(call, hide_secrets=self._config.redact)
        assert isinstance(asked, events.ToolCall)
        opinion = self._second_opinion(asked)
        with self._lock:
            self._advance()
            ticked = events.Ticked(
                "check", asked.tool_name, asked.arguments, around.tree, around.received, opinion=opinion
            )
            return self._apply(time.time(), ticked)

    def _second_opinion(self, call: events.ToolCall | None = None) -> events.Opinion | None:
        """Ask the judge of a call that may run, else of the one that stands out; no lock is held while it thinks."""
        if self._second_stage is None:
            return None
        with self._lock:
            self._advance()
            question = self.pipeline.open_question(call)
        return None if question is None else self._second_stage.ask(question)

    def settle_accounts(self, *, raising: bool, wait_s: float = -1.0) -> None:
        """Fold and write all events now; wait so long for another thread that is writing, below 0 for ever."""
        with self._lock:
            self._advance()
        self._save(raising=raising, wait_s=wait_s)

    def flush(self, *, raising: bool) -> None:
        """Fold and write everything now, lessons too."""
        self.settle_accounts(raising=raising)
        self._save_lessons(wait_s=LESSONS_WAIT_S)

    def close(self, *, raising: bool) -> None:
        """Fold and write everything, the state too, and end."""
        with self._lock:
            self._advance()
            if self.pipeline.regulator.data.ended is not None:  # guidance given in this task learns how it ended
                self._apply(time.time(), events.Ticked(ENDING))
            self.closed = True
            self._add_snapshot()
            if self.recorder is not None:
                self.recorder.add_runs([self.pipeline.runs.row()])
        try:
            self._save(raising=raising, last=True)
        finally:
            self._save_lessons(wait_s=LESSONS_WAIT_S)

    @property
    def _waiting(self) -> int:
        return self.recorder.pending if self.recorder is not None else 0

    def after(self) -> None:
        """End a call of the host: with full durability everything is safe before it returns.

        Raises
        ------
        StoreError
            With full durability, if it cannot be written.
        """
        if self._full:
            self._save(raising=True)
        if self._waiting or self._taught:
            self._wake()

    def _advance(self) -> None:
        """Fold what has been posted; the caller holds the lock."""
        policy = self._config.tick
        while self._inbox:
            ts, event = self._inbox.popleft()
            try:
                event = self._redactor.prepare(event)
            except Exception as error:  # a secret must not slip through because a rule failed
                event = make_fault("prepare", error)
            self._apply(ts, event)
            if policy == "event" or (policy == "step" and events.ends_step(event)):
                around = self._look_around()
                self._tick(ts, str(policy), around)

    def _tick(self, ts: float, reason: str, around: FleetContext, opinion: events.Opinion | None = None) -> None:
        """Measure, with what comes from outside of the agent; the caller holds the lock."""
        recalled = self._lesson_recall.recall(self.pipeline) if self._lesson_recall is not None else None
        tree, received = around.tree, around.received
        self._apply(ts, events.Ticked(reason, tree=tree, received=received, recalled=recalled, opinion=opinion))

    def _apply(self, ts: float, event: Event) -> TickResult | None:
        """Fold one event and hand it to the recorder; the caller holds the lock."""
        seq = self._seq = self._seq + 1
        result: TickResult | None = None
        try:
            result = self.pipeline.fold(seq, ts, event)
        except Exception as error:  # a fault of this package must not reach the host
            LOG.exception("coherence: event %d could not be folded", seq)
            if type(event) is not events.Fault:
                self._inbox.append((ts, make_fault(f"fold of event {seq}", error)))
        if self._lesson_recall is not None:
            self._lesson_recall.collect(self.pipeline)
        record = Record(seq, ts, event, result)
        self.events.append(record)
        if result is not None and result.reading is not None:
            self.readings.add(seq, result.reading)
        if type(event) is events.Ticked and event.tool_name is None:
            self._last_around = events.FleetContext(event.tree, event.received)
        if self.recorder is not None:
            self.recorder.run = self.pipeline.runs.run.number
            self.recorder.add(record)
            self.recorder.add_runs(self.pipeline.runs.pop_finished())
            if seq % SNAPSHOT_EVERY == 0:
                self._add_snapshot()
        return result

    def _add_snapshot(self) -> None:
        if self.recorder is None:
            return
        try:
            self.recorder.add_snapshot(self._seq, pack(self.pipeline.snapshot()))
        except (TypeError, ValueError, OverflowError):  # without it the events are folded again
            LOG.exception("coherence: the state after event %d could not be kept", self._seq)

    def _look_around(self, *, fold: bool = False) -> FleetContext:
        return self._peers.look(fold=fold) if self._peers is not None else NOBODY

    def received(self) -> float:
        """Return the most pressure that comes from another agent now."""
        received = self._look_around(fold=True).received
        return received.pressure if received is not None else 0.0

    @property
    def _taught(self) -> bool:
        """True if lessons wait to be written."""
        return self._lesson_recall is not None and self._lesson_recall.waiting

    def _save_lessons(self, wait_s: float = 0.0) -> None:
        if self._lesson_recall is not None:
            self._lesson_recall.save(wait_s=wait_s)

    def _save(self, *, raising: bool, last: bool = False, wait_s: float = -1.0) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        learned = None
        if last and recorder.session.source not in ("test", "replay"):
            learned = self._legacy(recorder)
        try:
            if not recorder.save(baselines=learned, wait_s=wait_s):
                self._store_down = True  # until that write has ended, nobody waits for it again
                return
            if recorder.behind:
                self._rejoin(recorder)
                if self.closed:
                    recorder.save(wait_s=wait_s)
        except Exception as error:  # what this package could not write must not stop the host
            if self.closed and not last:  # another thread writes, or has written, the rest
                return
            if not self._store_down:
                LOG.warning("coherence: %s; events wait in memory", error)
                self._inbox.append((time.time(), make_fault("store", error)))
            self._store_down = True
            if raising:
                raise
            return
        self._store_down = False
        if recorder.lost > self._reported_loss:
            self._inbox.append((time.time(), make_fault("store", f"{recorder.lost} events were lost")))
            self._reported_loss = recorder.lost

    def _legacy(self, recorder: Recorder) -> bytes:
        """Return what the agent's next session begins with: what others have left of corrections is kept."""
        legacy = self.pipeline.carry_over()
        kept = recorder.store.baselines(recorder.session.agent)
        if kept is not None:
            with suppress(msgspec.DecodeError, ValueError):  # of another version, or of another embedder
                legacy.corrections = legacy.corrections.merge(read_carry_over(kept).corrections)
        return msgspec.msgpack.encode(legacy)

    def _rejoin(self, recorder: Recorder) -> None:
        """Fold anew what the store holds: another process wrote to this session."""
        with self._lock, recorder.writing:
            if not recorder.behind or self._reopen is None:
                return
            pipeline, seq = self._reopen()
            waiting = recorder.rejoin(seq)
            if seq - recorder.snapshot_seq >= SNAPSHOT_EVERY:
                recorder.add_snapshot(seq, pack(pipeline.snapshot()))
            for record in waiting:
                pipeline.apply(record.seq, record.ts, record.event, record.result)
                seq = record.seq
            self.pipeline, self._seq = pipeline, seq
            recorder.run = pipeline.runs.run.number
            recorder.add_runs([*pipeline.runs.pop_finished(), pipeline.runs.row()])

    def work(self) -> float | None:
        """Fold and write what is due; for the background thread."""
        self._called = False
        if self.closed:
            return None
        with self._lock:
            self._advance()
        recorder = self.recorder
        if recorder is not None and recorder.due_in == 0.0:
            self._save(raising=False)
        self._save_lessons()
        due_in = recorder.due_in if recorder is not None else None
        return RETRY_S if self._store_down or self._taught else due_in

    def finish(self) -> None:
        """Write what waits; at the end of the process."""
        if not self.closed:
            self.flush(raising=False)

    def before_fork(self) -> None:
        """Hold everything still: a child must not inherit an event that is half folded, or a measurement's locks."""
        if self._lock.acquire(timeout=FORK_WAIT_S):
            self._forker = get_ident()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._forker == get_ident():
            self._forker = None
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: what waits is the parent's to write."""
        self._lock, self._forker = RLock(), None
        self._inbox.clear()
        self._called = False
        if self._lesson_recall is not None:
            self._lesson_recall.forget()
        if self.recorder is not None:
            self.recorder.forget()
