"""Between an agent's events and the store of lessons: what is known of its errors, and what its fixes teach."""

from __future__ import annotations

import logging
import time
from collections import deque
from threading import Lock

from coherence.core.errors import CoherenceError
from coherence.core.events import Recalled
from coherence.core.validation import to_json
from coherence.lessons.records import Lesson, Origin
from coherence.lessons.store import LessonStore
from coherence.lessons.troubles import Solved
from coherence.monitor.pipeline import AgentPipeline
from coherence.policy.danger.classify import classify
from coherence.policy.known_errors import LEAST, LessonOutcome
from coherence.state.data import Action

LOG = logging.getLogger("coherence")

MAX_TOLD = 2
"""Largest number of lessons for one error."""

MAX_FIX = 400
"""Characters of a fix that are recorded with a tick."""

MAX_WAITING = 256  # while the store cannot take them

NEWEST_WAIT_S = 0.5
"""Seconds that a look-up waits at most for a lesson that is being written."""


class LessonRecall:
    """Looks up errors of one agent, and keeps what it learns. Nothing is raised into the host.

    Parameters
    ----------
    lessons : LessonStore
        What is known.
    name : tuple of str
        Agent and session, for the provenance of lessons.
    learns : bool
        Whether lessons are kept; tests only look.
    """

    def __init__(self, lessons: LessonStore, name: tuple[str, str], *, learns: bool) -> None:
        self.lessons = lessons
        self.name = name
        self.learns = learns
        self._waiting: deque[tuple[float, Solved | LessonOutcome]] = deque(maxlen=MAX_WAITING)
        self._writing = Lock()
        self._down = False

    def recall(self, pipeline: AgentPipeline) -> tuple[Recalled, ...] | None:
        """Return what is known of the newest errors, the newest error's first; ``None`` if there is none to look up."""
        actions = pipeline.regulator.unexplained
        if not actions:
            return None
        if not self._down:  # else whoever asks would wait for the store again
            self.save(wait_s=NEWEST_WAIT_S)  # what has just been learned may be what is needed now
        found: dict[int, Recalled] = {}
        for action in actions:
            try:
                text = _text(pipeline, action)
                known = self.lessons.query(text, tool=action.tool, k=MAX_TOLD, least=LEAST)
            except Exception as error:  # what is known must never stand in the way of what is done
                self._say(error)
                break  # the store would fail for the others too
            for lesson in known:
                if lesson.id not in found and not _destroys(lesson):
                    found[lesson.id] = _recalled(lesson, action.seq)
        return tuple(found.values())

    def collect(self, pipeline: AgentPipeline) -> None:
        """Note what the newest events have taught, to be written by :meth:`save`."""
        while pipeline.regulator.lessons:
            taught = pipeline.regulator.lessons.popleft()
            if self.learns:
                self._waiting.append((time.time(), taught))

    @property
    def waiting(self) -> bool:
        """True if anything is to be written."""
        return bool(self._waiting)

    def save(self, *, wait_s: float = 0.0) -> None:
        """Write what waits; what the store cannot take now goes on waiting.

        If another thread is writing, wait for it for so many seconds at most.
        """
        if not self._waiting and not self._writing.locked():  # what is being written waits no more
            return
        if not self._writing.acquire(timeout=wait_s):
            return
        try:
            while self._waiting:
                ts, taught = self._waiting.popleft()
                try:
                    self._write(ts, taught)
                except (TypeError, ValueError) as error:  # it could never be kept, and must not keep others from it
                    LOG.warning("coherence: a lesson cannot be kept: %s", error)
                except Exception:
                    self._waiting.appendleft((ts, taught))
                    raise
            self._down = False
        except Exception as error:
            self._say(error)
        finally:
            self._writing.release()

    def forget(self) -> None:
        """Begin anew in the child of a fork: what waits is the parent's to write."""
        self._waiting.clear()
        self._writing, self._down = Lock(), False

    def _write(self, ts: float, taught: Solved | LessonOutcome) -> None:
        if isinstance(taught, LessonOutcome):
            # The store counts one origin once, however often a session is folded again.
            origin = "\0".join((*self.name, taught.firing))
            try:
                self.lessons.outcome(taught.lesson, helped=taught.helped, origin=origin)
            except CoherenceError:
                # removed meanwhile: there is nothing to count for
                if self.lessons.get(taught.lesson) is not None:
                    raise
            return
        self.lessons.record(
            pattern=taught.pattern,
            error_text=taught.error_text,
            fix_text=taught.fix_text,
            tool=taught.tool,
            origin=Origin(*self.name, taught.seqs),
            ts=ts,
        )

    def _say(self, error: Exception) -> None:
        if not self._down:
            LOG.warning("coherence: lessons: %s", error)
        self._down = True


def _destroys(lesson: Lesson) -> bool:
    """Tell whether a fix, as a shell would read it, destroys something: that is no advice, whoever it helped."""
    return classify("Bash", to_json("fix", {"command": lesson.fix_text})) is not None


def _text(pipeline: AgentPipeline, action: Action) -> str:
    """Return what is kept of an error, the longest text of it first."""
    shown = (item.text for item in reversed(pipeline.state.context) if item.seq == action.seq)
    waiting = (
        open.error_text for open in pipeline.regulator.data.recollection.troubles.open if open.newest == action.seq
    )
    return next(shown, None) or next(waiting, action.came.first_line)


def _recalled(lesson: Lesson, error: int) -> Recalled:
    fix = lesson.fix_text if len(lesson.fix_text) <= MAX_FIX else f"{lesson.fix_text[: MAX_FIX - 1]}…"
    return Recalled(
        lesson=lesson.id,
        similarity=lesson.similarity,
        fix=fix,
        ts=lesson.seen,
        helped=lesson.helped,
        failed=lesson.failed,
        refilled=lesson.refilled,
        error=error,
    )
