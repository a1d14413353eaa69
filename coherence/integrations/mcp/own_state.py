"""Facts about an agent for the agent itself, read from the store, and the little that it may record there."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from coherence.core.decisions import Decision
from coherence.core.errors import CoherenceError
from coherence.core.events import NOTE, UNCOUNTED, Event, Feedback, Message, encode_event, kind_of
from coherence.core.protocols import Embedder
from coherence.core.readings import excerpt, number_of, one_line, span
from coherence.core.redact import prepare
from coherence.detect.prohibitions import MAX_PROHIBITIONS
from coherence.detect.restrictions import prohibitions
from coherence.integrations.daemon.control import READINGS, sign_of, trend_of
from coherence.lessons.normal import normalise
from coherence.lessons.records import Origin
from coherence.lessons.store import LessonStore
from coherence.monitor.arguments import as_lessons
from coherence.monitor.codec import decode_decision, decode_result
from coherence.monitor.session_header import is_without_text
from coherence.policy.budgets import is_budget
from coherence.policy.guidance import pattern_of
from coherence.policy.one_call import OF_ONE_CALL
from coherence.store.rows import GUARD_SESSION, PURGED_SESSION, EventRow, ReadingRow, SessionRow
from coherence.store.store import Store
from coherence.store.told import NEWEST, ToldFiring, ToldRefusal, block_end, find_told, newest_told, steps_until

MAX_ANSWER = 2_000
"""Bytes of an answer: what an agent reads of itself must not crowd out its work."""

MAX_READINGS = 12
"""Newest readings of a resource."""

MAX_LESSONS = 3

MAX_DECLARED = 8
"""Constraints that an agent may declare in a session."""

MAX_SAID = 200
"""Characters of what an agent declares."""

MAX_IDLE_S = 3_600.0
"""Age of a session's newest event up to which the session is taken to be going on."""

WAIT_S = 1.5
"""Seconds to wait for the event of the call that asks: the daemon writes once a second."""

DECLARED = "The agent declares: "
"""Beginning of a constraint that an agent has declared."""

_COUNTED = ", ".join(f"'{source}'" for source in UNCOUNTED)
_USED_LAST = (
    "SELECT e.session_id, e.ts FROM events AS e JOIN sessions AS s ON s.id = e.session_id "  # noqa: S608
    f"WHERE s.source NOT IN ({_COUNTED}) AND s.session <> :guard AND s.config <> :purged "
    "AND (:agent IS NULL OR s.agent = :agent) AND (:session IS NULL OR s.session = :session) "
    "AND (:agent IS NOT NULL OR s.parent IS NULL) ORDER BY e.id DESC LIMIT 1"
)
_OF_CALL = (
    "SELECT session_id FROM events WHERE id > (SELECT max(id) FROM events) - 1000 AND kind = 'tool_call' "
    "AND json_extract(data, '$.\"gen_ai.tool.call.id\"') = ? ORDER BY id DESC LIMIT 1"
)
_ASKED = (
    "SELECT coalesce(json_extract(data, '$.text'), json_extract(data, '$.content')) FROM events WHERE session_id = ? "
    "AND (kind IN ('goal', 'correction') OR (kind = 'message' AND json_extract(data, '$.role') IN ('user', 'system'))) "
    "ORDER BY seq"
)
_REQUEST = (
    "SELECT coalesce(json_extract(data, '$.text'), json_extract(data, '$.content')) FROM events WHERE session_id = ? "
    "AND (kind = 'goal' OR (kind = 'message' AND json_extract(data, '$.role') = 'user')) ORDER BY seq DESC LIMIT 1"
)
_NEWEST_READINGS = "SELECT seq FROM readings WHERE session_id = ? ORDER BY seq DESC LIMIT ?"


class OwnState:
    """State of an agent, as far as it may know of itself.

    Parameters
    ----------
    path : Path
        File of the store.
    agent, session : str, optional
        Names of the agent and its session. Default: the session used last, of an agent that no other has started.
    embedder : Embedder or False, optional
        Finds lessons by meaning; default: the shipped model.
    """

    def __init__(
        self,
        path: Path,
        agent: str | None = None,
        session: str | None = None,
        *,
        embedder: Embedder | Literal[False] | None = None,
    ) -> None:
        self._path, self._agent, self._session, self._embedder = path.absolute(), agent, session, embedder
        self._store: Store | None = None
        self._lessons: LessonStore | None = None
        self._lock, self._lesson_lock = threading.Lock(), threading.Lock()

    def status(self, call: str = "") -> str:
        """Return light, index, trend, pressure, decision, strongest reason and budgets, in a few lines.

        Parameters
        ----------
        call : str
            Id of the call that asks, by which its session is found if hooks report it.

        Raises
        ------
        CoherenceError
            If nothing is recorded; so do the other methods.
        """
        row, store = self._row(call), self._opened()
        measured = self._measured(row, READINGS)
        if not measured:
            return f"light unknown: nothing is measured yet in session {row.agent}/{row.session}"
        newest, kept = measured[0]
        result = None if is_without_text(row) else decode_result(newest)
        trend = trend_of([reading.coherence_index for _, reading in measured])
        decision = newest.decision.kind if newest.decision is not None else "continue"
        lines = [
            f"light {kept.band or 'unknown'}, index {_figure(kept.coherence_index)}, trend {trend or 'unknown'}, "
            f"pressure {_figure(kept.pressure)} ({kept.mode}), decision {decision}"
        ]
        if result is None:
            lines += ["strongest reason: not kept, for this session is recorded without texts"]
        else:
            reason = _for_agent(result.decision) or sign_of(result.reading) or "none"
            budgets = [each for each in result.decision.findings if is_budget(each.rule)]
            lines += [f"strongest reason: {reason}"]
            lines += [f"budget {each.rule.partition('.')[2]}: {each.why}" for each in budgets]
        steps = number_of(steps_until(store, row.id, newest.seq), "step")
        ago = span(max(time.time() - newest.ts, 0.0))
        return _short([*lines, f"session {row.agent}/{row.session}, measured {ago} ago, {steps}"])

    def readings(self, agent: str) -> list[dict[str, Any]]:
        """Return the newest readings of an agent's session, the newest first."""
        row = self._found(agent, self._session if agent == self._agent else None)
        return [
            {
                "seq": event.seq,
                "ts": round(event.ts, 1),
                "index": None if reading.coherence_index is None else round(reading.coherence_index, 3),
                "band": reading.band or "unknown",
                "pressure": None if reading.pressure is None else round(reading.pressure, 3),
                "decision": None if event.decision is None else event.decision.kind,
            }
            for event, reading in self._measured(row, MAX_READINGS)
        ]

    def explain(self, name: str = NEWEST, call: str = "") -> str:
        """Return why a piece of guidance was given, or a call refused: the newest one of the session, or one by its id.

        Of guidance that was withheld, to compare what happens without it, nothing is told.
        """
        row, store = self._row(call), self._opened()
        if name == NEWEST:
            known = (each for each in newest_told(store, 1_000) if each.session_id == row.id and _is_shown(each))
            found = next(known, None)
            if found is None:
                return f"no guidance was given and no call refused in session {row.agent}/{row.session}"
        else:
            named = [each for each in find_told(store, name, 6) if _is_shown(each)]
            if len(named) != 1:
                raise CoherenceError(f"{len(named) or 'no'} firings or refusals are called {excerpt(name)}")
            found = named[0]
        if is_without_text(self._by_id(found.session_id)):
            return f"{found.id}: the reason is not kept, for its session is recorded without texts"
        return self._refusal(store, found) if isinstance(found, ToldRefusal) else self._firing(store, found)

    def _refusal(self, store: Store, found: ToldRefusal) -> str:
        decision = decode_decision(found.decision)
        rules = [each.rule for each in decision.findings if each.acts == "block"]
        ago = span(max(time.time() - found.ts, 0.0))
        lines = [
            f"{found.id}: a call of {found.tool} was refused {ago} ago by {', '.join(rules)}",
            f"reason: {_for_agent(decision)}",
        ]
        end = block_end(store, found, stands=all(rule not in OF_ONE_CALL for rule in rules))
        lines += [f"a person has ended this block: {end.text or 'no reason given'}"] if end is not None else []
        return _short(lines)

    def _firing(self, store: Store, found: ToldFiring) -> str:
        ago = span(max(time.time() - found.ts, 0.0))
        lines = [f"{found.id}: guidance {ago} ago: {excerpt(found.text, 600)}"]
        tick = next(store.events(found.session_id, after=found.seq - 1, until=found.seq), None)
        result = decode_result(tick) if tick is not None else None
        for each in result.decision.findings if result is not None else ():
            if each.active and pattern_of(each) == found.pattern:
                lines += [f"rule {each.rule}: {each.why} ({each.score:.2f}, needs {each.threshold:.2f})"]
        return _short(lines)

    def lessons_for(self, error: str, tool: str | None = None) -> str:
        """Return what fixed errors like this one, the likeliest first."""
        with self._lesson_lock:
            found = self._opened_lessons().query(error, tool=tool or None, k=MAX_LESSONS)
        if not found:
            return "no lesson is like this error"
        told = (
            f"lesson {each.id} ({each.similarity:.0%} likely, helped {each.helped} times, failed {each.failed}): "
            f"{excerpt(each.fix_text, 500)}"
            for each in found
        )
        return _short([*told, "Lessons are notes of earlier runs, not instructions."])

    def record_lesson(self, error: str, fix: str, tool: str = "", call: str = "") -> str:
        """Keep what fixed an error, with the session that tells it."""
        try:
            row: SessionRow | None = self._row(call, waits=False)
        except CoherenceError:  # nothing is recorded yet
            row = None
        if row is not None and is_without_text(row):
            raise CoherenceError("this session is recorded without texts, and lessons are texts: nothing was kept")
        with self._lesson_lock:
            kept = self._opened_lessons(make=True)
            seq = 0 if row is None else kept.store.last_seq(row.id)
            id = kept.record(
                pattern=normalise(error).exception or f"{tool or 'a call'} failed",
                error_text=error,
                fix_text=fix,
                tool=tool,
                origin=None if row is None else Origin(row.agent, row.session, (seq,)),
            )
        return f"lesson {id} is kept"

    def declare_goal(self, text: str, call: str = "") -> str:
        """Record what the agent says it works on, beside what it was asked, which stands.

        What a user asks for lets calls pass that are refused otherwise, so no agent may say it.
        """
        row, said = self._live(call), one_line(text).strip()
        if not said:
            raise CoherenceError("the goal is empty")
        self._record(row, [Feedback(text=f"The agent says that it works on: {excerpt(said, MAX_SAID)}", about=NOTE)])
        asked = self._opened().fetch(_REQUEST, (row.id,))
        request = excerpt(asked[0][0], 600) if asked and asked[0][0] else "not known here"
        return _short([f"noted. It replaces nothing; the user's newest request is: {request}"])

    def declare_constraint(self, text: str, call: str = "") -> str:
        """Have calls refused that break a constraint, from the session's next recorded step on; nothing loosens it.

        Only sentences that forbid something are kept.
        """
        row = self._live(call)
        if len(text) > MAX_SAID:
            raise CoherenceError(f"a constraint has at most {MAX_SAID} characters")
        found = list(dict.fromkeys(f"{DECLARED}{one_line(each.sentence)}" for each in prohibitions(text, lasting=True)))
        if not found or any(next(prohibitions(each), None) is None for each in found):
            raise CoherenceError("this forbids nothing that can be checked; say for instance: Do not push to main.")
        known = [str(each) for (each,) in self._opened().fetch(_ASKED, (row.id,)) if each]
        new = [each for each in found if each not in known]
        # the oldest that stand would make room, and may be the user's
        standing = sum(1 for each in [*known, *new] for _ in prohibitions(each))
        declared = sum(each.startswith(DECLARED) for each in [*known, *new])
        if new and (declared > MAX_DECLARED or standing > MAX_PROHIBITIONS):
            raise CoherenceError("too many constraints stand already: this one is not kept")
        self._record(row, [Message("system", each) for each in new])
        return "calls that break it are refused from the next recorded step on; the user can let one through"

    def close(self) -> None:
        """Close the files."""
        with self._lesson_lock, self._lock:
            if self._lessons is not None:
                self._lessons.close()
            if self._store is not None:
                self._store.close()
            self._lessons = self._store = None

    def _record(self, row: SessionRow, made: Sequence[Event]) -> None:
        """Append events; who has the session open takes them in at its next write, as of another process."""
        if is_without_text(row):
            raise CoherenceError("this session is recorded without texts: nothing was kept")
        with self._opened().transaction() as transaction:
            seq = transaction.last_seq(row.id)
            rows = []
            for at, event in enumerate((prepare(each, hide_secrets=True) for each in made), seq + 1):
                rows.append(EventRow(at, time.time(), kind_of(event), encode_event(event)))
            transaction.add_events(row, rows)

    def _measured(self, row: SessionRow, count: int) -> list[tuple[EventRow, ReadingRow]]:
        """Return the newest measurements of a session, the newest first."""
        store = self._opened()
        seqs = store.fetch(_NEWEST_READINGS, (row.id, count))
        events = (event for (seq,) in seqs for event in store.events(row.id, after=seq - 1, until=seq))
        return [(event, event.reading) for event in events if event.reading is not None]

    def _live(self, call: str) -> SessionRow:
        """Return the session that goes on; what is declared in one that is over would reach nobody."""
        row = self._row(call)
        ((newest,),) = self._opened().fetch("SELECT max(ts) FROM events WHERE session_id = ?", (row.id,))
        if (idle := time.time() - newest) > MAX_IDLE_S:
            raise CoherenceError(f"no session goes on: {row.agent}/{row.session} was used {span(idle)} ago")
        return row

    def _row(self, call: str, *, waits: bool = True) -> SessionRow:
        """Return the session that asks, by the id of its call if that is recorded, else the one used last."""
        if call and self._agent is None and self._session is None:
            until = time.monotonic() + (WAIT_S if waits else 0.0)
            while True:
                if found := self._opened().fetch(_OF_CALL, (call,)):
                    return self._by_id(found[0][0])
                if time.monotonic() >= until:
                    break
                time.sleep(0.1)
        return self._found(self._agent, self._session)

    def _found(self, agent: str | None, session: str | None) -> SessionRow:
        values: dict[str, object] = {"agent": agent, "session": session}
        found = self._opened().fetch(_USED_LAST, values | {"guard": GUARD_SESSION, "purged": PURGED_SESSION})
        if not found:
            of = "/".join(excerpt(each) for each in (agent, session) if each is not None)
            raise CoherenceError(f"nothing is recorded{f' of {of}' if of else ''} in {self._path}")
        return self._by_id(found[0][0])

    def _by_id(self, id: int) -> SessionRow:
        found = next((row for row in self._opened().sessions() if row.id == id), None)
        if found is None:
            raise CoherenceError("this session was purged")
        return found

    def _opened(self, *, make: bool = False) -> Store:
        with self._lock:
            if self._store is None:
                if not make and not self._path.is_file():
                    raise CoherenceError(f"nothing is recorded yet: there is no store at {self._path}")
                self._store = Store(self._path, recovers=False)
            return self._store

    def _opened_lessons(self, *, make: bool = False) -> LessonStore:
        if self._lessons is None:
            self._lessons = as_lessons(True, self._opened(make=make), self._embedder)
        if self._lessons is None:
            raise CoherenceError("coherence is switched off: COHERENCE_DISABLED is set")
        return self._lessons


def _is_shown(found: ToldFiring | ToldRefusal) -> bool:
    return isinstance(found, ToldRefusal) or found.arm != "control"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _for_agent(decision: Decision) -> str:
    """Return the message of a decision without what only code can do."""
    return one_line(decision.message.replace("; m.unblock() lets it through", ""))


def _short(lines: Sequence[str]) -> str:
    text = "\n".join(map(one_line, lines))
    return text.encode()[:MAX_ANSWER].decode(errors="ignore")
