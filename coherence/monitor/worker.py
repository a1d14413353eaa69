"""Driver of a pipeline: one lock, and a thread that folds and writes off the caller's path."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING

import msgspec

import coherence.core.events as events
from coherence.core.config import MonitorConfig
from coherence.core.events import Event, is_success, make_fault
from coherence.core.redact import prepare
from coherence.core.reentrancy import Entered, do_later, is_inside
from coherence.monitor.background import BACKGROUND, FORK_WAIT_S
from coherence.monitor.deferred import Deferred
from coherence.monitor.folding import BEHIND_S, KEPT_BYTES, SNAPSHOT_EVERY, Folding, Peers
from coherence.monitor.known_state import KnownState
from coherence.monitor.loading import MODELS
from coherence.monitor.pipeline import ENDING, AgentPipeline
from coherence.monitor.session import OpenSession
from coherence.monitor.snapshots import pack, read_carry_over
from coherence.monitor.tick_result import TickResult
from coherence.policy.corrections import Corrections
from coherence.store.errors import StoreError

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.monitor.lesson_recall import LessonRecall
    from coherence.monitor.recorder import Recorder
    from coherence.monitor.second_stage import SecondStage

LOG = logging.getLogger("coherence")

SMALL = 20_000
"""Bytes of an event that is folded before it is written where the host waits for the write."""

YIELD_S = 0.001
"""Seconds for which the background thread leaves the lock to others that wait for it."""

TURN_S = 0.25
"""Seconds for which the background thread folds before it writes."""

QUIET_S = 0.05
"""Seconds without an event after which is measured where the host waits for each write."""

VIEW_WAIT_S = 10.0
"""Seconds that whoever looks at a monitor waits at most for its events to be folded."""

LESSONS_WAIT_S = 10.0
"""Seconds that a flush, and the end, wait at most for another thread that writes lessons."""

RETAIN_S = 3_600.0
"""Seconds between two looks for events that are too old or too many, besides the one at the end."""

DOWN_WAIT_S = 0.05
"""Seconds that a call of the host waits for a store that could not be written a moment ago."""

RETRY_S = 5.0
"""Seconds between two attempts to write to a store that cannot be written."""


class Worker(Folding):
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
        super().__init__(opened, config, peers, lesson_recall)
        self.closed = False
        self.deferred = Deferred()
        self._reopen = opened.reopen
        self._full = full and opened.recorder is not None
        self._second_stage = second_stage
        self._lock = RLock()
        self._forker: int | None = None
        self._holds_deferred = False
        self._called = False
        self._retry_at = 0.0
        self._posted_at = 0.0
        self._put_off_at: float | None = None
        self._saying = RLock()
        self._reported_loss = 0
        self._retain_at = monotonic() + RETAIN_S
        self._is_late = False
        self._has_asked_for_model = False
        BACKGROUND.known.add(self)
        BACKGROUND.start()

    def post(self, event: Event) -> None:
        """Take an event; it is folded soon, or when something is asked.

        Raises
        ------
        StoreError
            With full durability, if it could not be written in time; it is written later.
        """
        self.deferred.settle()
        now = self.deferred.added_at() or time.time()
        if is_inside():  # of a finalizer or a signal: locks may be held, and data half changed
            self._inbox.put_aside(now, event)
            do_later(self._wake)
            do_later(lambda: self._posted(event, raising=False))
            return
        self._posted_at = monotonic()
        with Entered():
            self._inbox.put(now, event)
            self._wake()
        self._posted(event, raising=True)

    def post_later(self, read: Callable[[], None], *, size: int) -> None:
        """Have something of a size in bytes be read soon, and before anything else is posted or asked; it may post."""
        if self._full or self.closed or is_inside():
            with self.deferred.alone():
                read()
            return
        self.deferred.add(read, size=size)
        self._wake()

    def _posted(self, event: Event, *, raising: bool) -> None:
        if type(event) is events.Outcome and self._peers is not None:
            success = is_success(event)
            if success is not None:
                self._peers.learn(success=success)
        if self._full:
            with Entered():
                self._write_through(raising=raising)

    def _wake(self) -> None:
        """Have the background thread work soon."""
        if not self._called:
            self._called = True
            BACKGROUND.call(self)

    def _write_through(self, *, raising: bool) -> None:
        """Give what waits its number and write it; only what is small is folded first."""
        now = monotonic()
        # A store that could not be written a moment ago is tried, and hardly waited for again.
        down = self._store_down and now < self._retry_at
        until = now + (min(DOWN_WAIT_S, self._config.wait_s) if down else self._config.wait_s)
        if not self._acquire(until):
            self._cannot_write(StoreError(self._path, "a measurement keeps the events waiting"), raising=raising)
            return
        try:
            for _ in range(len(self._inbox)):  # not what comes meanwhile: that might never end
                self._take_next(until, measures=True)
                if self._ahead_bytes < SMALL:
                    while self._ahead:
                        self._fold_next()
        finally:
            self._lock.release()
        self._save(raising=raising, wait_s=max(until - monotonic(), 0.0))
        # what has no text in the store cannot be read back
        if self._ahead_bytes > KEPT_BYTES and self._keeps_text and self._lock.acquire(blocking=False):
            try:
                self._lighten()
            finally:
                self._lock.release()

    @property
    def _path(self) -> Path:
        assert self.recorder is not None
        return self.recorder.store.path

    def _acquire(self, until: float) -> bool:
        """Take the lock, in time."""
        if self._lock.acquire(blocking=False):
            return True
        self._others.add(get_ident())
        try:
            return self._lock.acquire(timeout=max(until - monotonic(), 0.0))
        finally:
            self._others.discard(get_ident())

    @contextmanager
    def settled(self, until: float | None = None) -> Iterator[AgentPipeline]:
        """Give the pipeline with everything folded that was posted before, and hold it still.

        A thread that interrupts itself gets it as it is; so does one that cannot have it alone by a time (monotonic;
        ``None`` = ten seconds from now).
        """
        self.deferred.settle()
        inside = is_inside()
        until = monotonic() + VIEW_WAIT_S if until is None else until
        with Entered():
            held = self._lock.acquire(blocking=False) if inside else self._acquire(until)
            try:
                if held and not inside:
                    self._advance(until)
                yield self.pipeline
            finally:
                if held:
                    self._lock.release()

    def decide(self, reason: str) -> TickResult | None:
        """Measure if anything has happened since the newest measurement; return the newest, in time."""
        if is_inside():
            return self._newest
        self.deferred.settle()
        until = monotonic() + self._config.timeout_s
        # Before the lock: a peer takes its own, and two agents that look at each other would wait for ever.
        around = self._look_around(until)
        with Entered():
            opinion = self._second_opinion(until)
            if not self._acquire(until):
                return self._late(reason)
            try:
                if not self._advance(until):
                    return self._late(reason)
                now = time.time()
                pipeline = self.pipeline
                asked = opinion is not None or (reason == "decide" and pipeline.unjudged)
                if pipeline.changed or asked or around != self._last_around or pipeline.time_is_up(now):
                    self._tick(now, reason, around, opinion, until=until)
                self._is_late = False
                return self.pipeline.with_guidance()
            finally:
                self._lock.release()

    def known(self) -> TickResult | None:
        """Return the newest result; guidance that waits for delivery is there unless another thread works now."""
        if is_inside() or not self._lock.acquire(blocking=False):
            return self._newest
        try:
            return self.pipeline.with_guidance()
        finally:
            self._lock.release()

    def check(self, call: events.ToolCall, *, measures: bool = True) -> TickResult | None:
        """Judge whether a call may run; the question is recorded. ``None`` = there was no time to judge it.

        Without ``measures``, the step before the call is measured afterwards.
        """
        if is_inside():
            return None
        self.deferred.settle()
        until = monotonic() + self._config.timeout_s
        around = self._look_around(until)
        with Entered():
            asked = prepare(call, hide_secrets=self._config.redact)
            assert isinstance(asked, events.ToolCall)
            opinion = self._second_opinion(until, asked)
            if not self._acquire(until):
                self._late("check")
                return None
            try:
                if not self._advance(until, measures=measures) and self._waits:
                    self._late("check")
                    return None
                ticked = events.Ticked(
                    "check", asked.tool_name, asked.arguments, around.tree, around.received, opinion=opinion
                )
                self.pipeline.limit(until)
                return self._apply(time.time(), ticked)
            finally:
                self.pipeline.limit(None)
                self._lock.release()
                if self._due is not None:
                    self._wake()

    def _late(self, reason: str) -> TickResult | None:
        """Return the newest result, for what came since could not be folded in time; say so once."""
        if not self._is_late:
            self._is_late = True
            waiting = len(self._inbox) + len(self._ahead)
            LOG.warning("coherence: %s: %d events are not read yet; the newest result is returned", reason, waiting)
            self._inbox.put(time.time(), make_fault(reason, f"timeout: {waiting} events were not read yet"))
        self._wake()
        return self._newest

    def _second_opinion(self, until: float, call: events.ToolCall | None = None) -> events.Opinion | None:
        """Ask the judge of a call that may run, else of the one that stands out; no lock is held while it thinks."""
        if self._second_stage is None or not self._acquire(until):
            return None
        try:
            question = self.pipeline.open_question(call) if self._advance(until) else None
        finally:
            self._lock.release()
        return None if question is None else self._second_stage.ask(question)

    def flush(self, *, raising: bool) -> None:
        """Fold and write everything now, lessons too."""
        if is_inside():
            do_later(lambda: self.flush(raising=False))
            return
        self.deferred.settle()
        with Entered():
            with self._lock:
                self._advance()
            self._save(raising=raising)
            self._save_lessons(wait_s=LESSONS_WAIT_S)

    def close(self, *, raising: bool) -> None:
        """Fold and write everything, the state too, and end."""
        self.deferred.settle()
        with Entered():
            with self._lock:
                self._advance()
                if self.pipeline.regulator.data.ended is not None:  # guidance of this task learns how it ended
                    self._apply(time.time(), events.Ticked(ENDING))
                self.closed = True
                self._add_snapshot(self._seq)
                if self.recorder is not None:
                    # the run under way too: nobody else will tell how far its metrics rose
                    self.recorder.add_runs([self.pipeline.runs.row()])
            try:
                self._save(raising=raising, last=True)
            finally:
                self._save_lessons(wait_s=LESSONS_WAIT_S)

    @property
    def _waits(self) -> bool:
        """True if events wait to be folded."""
        return bool(self._inbox or self._ahead)

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
        if self._full and not is_inside():
            with Entered():
                self._write_through(raising=True)
        if self._waiting or self._taught:
            self._wake()

    def spent(self, until: float | None = None) -> events.Spent:
        """Return what the agent has used, as far as it can be known by a time (see :meth:`settled`)."""
        with self.settled(until) as pipeline:
            return pipeline.state.spent

    def pressure(self, until: float | None = None) -> float:
        """Return the agent's own pressure, as far as it can be known by a time (see :meth:`settled`)."""
        with self.settled(until) as pipeline:
            return pipeline.appraiser.mood.pressure

    def received(self) -> float:
        """Return the most pressure that comes from another agent now."""
        received = self._look_around(None if is_inside() else monotonic() + VIEW_WAIT_S).received
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
        learned, waited = None, recorder.pending > 0
        # What tests and replays did must not become what is normal for the agent.
        if last and recorder.session.source not in ("test", "replay"):
            learned = self._legacy(recorder)
        try:
            try:
                saved = recorder.save(baselines=learned, wait_s=wait_s)
            except StoreError:
                if not recorder.is_outdated:
                    raise
                self._begin_again(recorder)
                saved = recorder.save(baselines=learned, wait_s=wait_s)
            if not saved:
                if raising or self._full:
                    raise StoreError(recorder.store.path, "another thread is writing")
                return
            if recorder.behind:
                self._rejoin(recorder)
                # what rejoining has added; no later write will take it
                if self.closed:
                    recorder.save(wait_s=wait_s)
        except Exception as error:  # what this package could not write must not stop the host
            if not self.closed or last:  # else another thread writes, or has written, the rest
                self._cannot_write(error, raising=raising)
            return
        if waited:  # else nothing was tried
            self._store_down = False
        if recorder.lost > self._reported_loss:
            self._inbox.put(time.time(), make_fault("store", f"{recorder.lost} events were lost"))
            self._reported_loss = recorder.lost

    def _cannot_write(self, error: Exception, *, raising: bool) -> None:
        """Say once that events wait in memory, and leave the store alone for a while."""
        with self._saying:
            is_new, self._store_down = not self._store_down, True
        self._retry_at = monotonic() + RETRY_S
        if is_new:
            LOG.warning("coherence: %s; events wait in memory", error)
            self._inbox.put(time.time(), make_fault("store", error))
        if raising:
            raise error

    def _legacy(self, recorder: Recorder) -> bytes:
        """Return what the agent's next session begins with: what others have left of corrections is kept."""
        legacy = self.pipeline.carry_over()
        if not self._keeps_text:
            legacy.corrections = Corrections()
        # of another version, or of another embedder, or in a file that is damaged
        with suppress(msgspec.DecodeError, ValueError, StoreError):
            kept = recorder.store.baselines(recorder.session.agent)
            if kept is not None:
                legacy.corrections = legacy.corrections.merge(read_carry_over(kept).corrections)
        return msgspec.msgpack.encode(legacy)

    def _begin_again(self, recorder: Recorder) -> None:
        """Go on in the file that has taken the place of one that is gone, with what is still held."""
        with self._lock, recorder.writing:
            if not recorder.is_outdated:
                return
            snapshot = None
            with suppress(TypeError, ValueError, OverflowError):
                folded = self._ahead[0].seq - 1 if self._ahead else self._seq
                snapshot = (folded, pack(self.pipeline.snapshot())) if self._keeps_text else None
            recorder.begin_again(self.events, snapshot)
            fault = make_fault("store", recorder.store.begun_anew)
            if self.closed:  # nobody will fold what is posted
                self._apply(time.time(), fault)
            else:
                self._inbox.put(time.time(), fault)

    def _rejoin(self, recorder: Recorder) -> None:
        """Fold anew what the store holds: another process wrote to this session."""
        # In this order: who writes never asks for the lock, so the two cannot wait for each other.
        with self._lock, recorder.writing:
            if not recorder.behind or self._reopen is None:
                return
            pipeline, seq = self._reopen(recorder.session)
            waiting = recorder.rejoin(seq)
            # A process that tells only a few events never comes to the hundredth itself.
            if seq - recorder.snapshot_seq >= SNAPSHOT_EVERY:
                recorder.add_snapshot(seq, pack(pipeline.snapshot()))
            for record in waiting:
                # not folded anew: the host has been told these decisions
                pipeline.apply(record.seq, record.ts, record.event, record.result)
                seq = record.seq
            self._ahead.clear()  # all of it is in the store, or was among what waited
            self._ahead_bytes = 0
            self.pipeline, self._seq = pipeline, seq
            self.known_state = KnownState.of(pipeline)
            recorder.run = pipeline.runs.run.number
            recorder.add_runs([*pipeline.runs.pop_finished(), pipeline.runs.row()])

    def work(self) -> float | None:
        """Fold and write what is due; for the background thread."""
        # first: what is posted from here on has to call again
        self._called = False
        if is_inside():  # reading records as the host does: outside
            do_later(self.deferred.settle)
        if self.closed:
            return None
        if not self._has_asked_for_model:
            self._has_asked_for_model = True
            MODELS.add(self.pipeline.semantics.cache, self)
        done, pause = self._fold_what_is_due()
        recorder = self.recorder
        due_in = recorder.due_in if recorder is not None else None
        if due_in == 0.0 and (not self._store_down or monotonic() >= self._retry_at):
            self._save(raising=False)
            due_in = recorder.due_in if recorder is not None else None
        self._save_lessons()
        if monotonic() >= self._retain_at:
            with suppress(StoreError):  # tried again in an hour
                self.retain()
        if not done:
            return pause
        return RETRY_S if self._store_down or self._taught else due_in

    def _fold_what_is_due(self) -> tuple[bool, float]:
        """Fold and measure for one turn; return whether nothing is left, and for how long none may be measured."""
        end = monotonic() + TURN_S
        while True:
            if self._others:
                sleep(YIELD_S)
            with self._lock:
                pause = self._quiet_in()
                done = self._advance(end, hurries=False, measures=not pause)
                if done and not self._others:
                    with suppress(Exception):  # the tick that needs it will say
                        self.pipeline.foresee()
                step = self._due if self._awaits_vectors else None
                texts = self.pipeline.unembedded() if step is not None and self._lacks_vectors(step) else []
            if not texts:
                return done, pause
            # Without the lock: a question about a call must not wait for a model.
            self.pipeline.embed(texts, monotonic() + self._config.timeout_s)
            self._embedded_for = step
            if monotonic() > end:  # others wait for this thread, too
                return False, pause

    def _quiet_in(self) -> float:
        """Return for how long no measurement may begin: with full durability, the host's next call would wait for it.

        A burst is measured at its end, or once it has gone on for :data:`BEHIND_S`.
        """
        now = monotonic()
        self._put_off_at = self._put_off_at or now
        left = min(self._posted_at + QUIET_S, self._put_off_at + BEHIND_S) - now
        if not self._full or self._due is None or left <= 0.0:
            self._put_off_at = None
            return 0.0
        return left

    def retain(self) -> None:
        """Remove what is older, or more, than the store is to keep.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        self._retain_at = monotonic() + RETAIN_S
        retention = self._config.retention
        if retention is not None and self.recorder is not None:
            self.recorder.store.prune(max_events=retention.max_events, max_age_s=retention.age_s)

    def finish(self) -> None:
        """Write what waits; at the end of the process."""
        if not self.closed:
            self.flush(raising=False)

    def before_fork(self) -> None:
        """Hold everything still: a child must not inherit an event that is half folded, or a measurement's locks."""
        self._holds_deferred = self.deferred.hold(FORK_WAIT_S)
        if self._lock.acquire(timeout=FORK_WAIT_S):
            self._forker = get_ident()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._forker == get_ident():
            self._forker = None
            self._lock.release()
        if self._holds_deferred:
            self.deferred.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: what waits is the parent's to write."""
        self._lock, self._forker = RLock(), None
        self.deferred.begin_anew()
        self._inbox.clear()
        self._ahead.clear()
        self._ahead_bytes = 0
        self._due, self._awaits_vectors = None, False
        self._others.clear()
        self._called = False
        if self._lesson_recall is not None:
            self._lesson_recall.forget()
        if self.recorder is not None:
            self.recorder.forget()
