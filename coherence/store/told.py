"""Firings of guidance and refusals one by one: what each was, what came of it, and how people judged it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from coherence.core.decisions import refusal_id
from coherence.store.rows import FiringOutcomeRow
from coherence.store.store import Store

NEWEST = "last"
"""Name that means the newest firing or refused call."""

_COLUMNS = (
    "f.firing_id, f.session_id, s.session, f.agent, f.source, f.seq, f.ts, f.pattern, f.pair, f.arm, f.text, "
    "d.seq, d.ts, f.delivered_id"
)
_FROM = "FROM firings AS f JOIN sessions AS s ON s.id = f.session_id LEFT JOIN events AS d ON d.id = f.delivered_id"
_FIRINGS = f"SELECT {_COLUMNS} {_FROM}"
_NEWEST = f"{_FIRINGS} ORDER BY f.event_id DESC LIMIT ?"
_OF_AGENT = f"{_FIRINGS} WHERE f.agent = ? ORDER BY f.event_id DESC LIMIT ?"
_OF_SESSION = f"{_FIRINGS} WHERE f.session_id = ? ORDER BY f.seq DESC LIMIT ?"
# what follows the last dash is the part that tells firings of one pattern apart
_NAMED = (
    f"SELECT {_COLUMNS} {_FROM} WHERE substr(f.firing_id, 1, length(:name)) = :name "
    "OR substr(f.firing_id, length(f.pattern) + 2, length(:name)) = :name ORDER BY f.event_id DESC LIMIT :limit"
)
_STEPS = (
    "SELECT count(*) FROM events WHERE session_id = ? AND seq <= ? AND (kind = 'tool_result' "
    "OR (kind = 'message' AND json_extract(data, '$.role') = 'assistant'))"
)
_OUTCOMES = (
    "SELECT o.firing_id, o.horizon, o.pressure_change, o.error_resolved, o.tool_switched, o.task_success "
    "FROM json_each(?) AS j CROSS JOIN firing_outcomes AS o ON o.firing_id = j.value ORDER BY o.horizon = 0, o.horizon"
)
_LABELS = (
    "SELECT json_extract(data, '$.about'), json_extract(data, '$.score') FROM events WHERE kind = 'feedback' "
    "AND session_id IN (SELECT id FROM sessions WHERE agent IN (SELECT value FROM json_each(?))) ORDER BY id"
)
_TOOL = "json_extract(e.data, '$.\"gen_ai.tool.name\"')"
_REFUSALS = (
    f"SELECT s.session, s.agent, d.session_id, s.source, d.seq, d.ts, {_TOOL}, d.data "  # noqa: S608 - only constants
    "FROM decisions AS d JOIN sessions AS s ON s.id = d.session_id "
    "JOIN events AS e ON e.session_id = d.session_id AND e.seq = d.seq WHERE d.kind = 'block' ORDER BY e.id DESC"
)
_NEXT = (
    "SELECT min(e.seq) FROM events AS e "  # noqa: S608 - only constants
    "LEFT JOIN decisions AS d ON d.session_id = e.session_id AND d.seq = e.seq "
    f"WHERE e.session_id = ? AND e.seq > ? AND (e.kind = 'goal' OR (d.kind = 'block' AND {_TOOL} IS NOT NULL))"
)
_ENDS = (
    "SELECT seq, ts, json_extract(data, '$.text'), json_extract(data, '$.decision') FROM events "
    "WHERE session_id = ? AND seq > ? AND kind = 'feedback' AND json_extract(data, '$.about') = 'block' "
    "AND json_extract(data, '$.score') IS NULL ORDER BY seq"
)
_REFUSAL_LABELS = (
    "SELECT session_id, json_extract(data, '$.decision'), json_extract(data, '$.score') FROM events "
    "WHERE kind = 'feedback' AND json_extract(data, '$.about') = 'block' "
    "AND json_extract(data, '$.decision') IS NOT NULL "
    "AND session_id IN (SELECT id FROM sessions WHERE agent IN (SELECT value FROM json_each(?))) ORDER BY id"
)
_OF_PATTERN = "SELECT firing_id, agent, delivered FROM firings WHERE pattern = ? AND source <> 'test'"


class ToldFiring(msgspec.Struct, frozen=True):
    """A firing and its delivery."""

    id: str
    session_id: int
    session: str
    agent: str
    source: str
    seq: int
    """Number of its tick within the session."""
    ts: float
    """Unix time in seconds."""
    pattern: str
    pair: int | None
    arm: str
    """``treatment`` = sent, ``control`` = withheld."""
    text: str
    """Words for the agent; empty where they are not kept."""
    delivered_seq: int | None
    """Number of the event that confirmed its delivery, within its session; ``None`` if that event is not kept."""
    delivered_ts: float | None
    delivered_id: int | None
    """Position of that event in the store; ``None`` = not confirmed."""

    @property
    def delivered(self) -> bool:
        """True if it is confirmed that the words reached the agent."""
        return self.delivered_id is not None


class ToldRefusal(msgspec.Struct, frozen=True):
    """A decision that refused something."""

    id: str
    session: str
    agent: str
    session_id: int
    source: str
    seq: int
    """Number of the decision within the session."""
    ts: float
    """Unix time in seconds."""
    tool: str | None
    """Tool of the call that was refused; ``None`` = a step was measured, after which calls are refused."""
    decision: str
    """JSON text."""


class BlockEnd(msgspec.Struct, frozen=True):
    """The end of a block."""

    seq: int
    ts: float
    text: str | None
    """Reason."""
    decision: int | None
    """Number of the refusal that was answered; ``None`` = the newest one, and every block."""


class PatternCounts(msgspec.Struct, frozen=True):
    """Counts of all firings of a pattern, without those of tests."""

    firings: int
    delivered: int
    good: int
    """Firings that somebody called right."""
    bad: int
    """Firings that somebody called a false alarm."""


def newest_firings(
    store: Store, limit: int, *, agent: str | None = None, session_id: int | None = None
) -> list[ToldFiring]:
    """Return the newest firings of a store, of an agent or of a session, the newest first."""
    if session_id is not None:
        rows = store.fetch(_OF_SESSION, (session_id, limit))
    elif agent is not None:
        rows = store.fetch(_OF_AGENT, (agent, limit))
    else:
        rows = store.fetch(_NEWEST, (limit,))
    return [ToldFiring(*row) for row in rows]


def named_firings(store: Store, name: str, limit: int) -> list[ToldFiring]:
    """Return the firings whose id, or the part of it behind the pattern, begins with a name, the newest first.

    A firing that is called exactly so is returned alone.
    """
    found = [ToldFiring(*row) for row in store.fetch(_NAMED, {"name": name, "limit": limit})]
    return [each for each in found if each.id == name] or found


def all_refusals(store: Store) -> list[ToldRefusal]:
    """Return all decisions of a store that refused something, the newest first."""
    rows = store.fetch(_REFUSALS)
    return [ToldRefusal(refusal_id(row[1], row[0], row[5]), *row) for row in rows]  # of agent, session, time


def newest_refusals(store: Store, limit: int) -> list[ToldRefusal]:
    """Return the newest refused calls of a store, the newest first."""
    return [each for each in all_refusals(store) if each.tool is not None][:limit]


def named_refusals(store: Store, name: str, limit: int) -> list[ToldRefusal]:
    """Return the refusals whose id, or the digits of it, begin with a name, the newest first."""
    found = (each for each in all_refusals(store) if each.id.startswith(name) or _digits(each.id).startswith(name))
    return list(itertools.islice(found, limit))


def find_told(store: Store, name: str, limit: int) -> list[ToldFiring | ToldRefusal]:
    """Return the firings and refusals that a name means, the newest first."""
    if name == NEWEST:
        return newest_told(store, 1)
    return [*named_firings(store, name, limit), *named_refusals(store, name, limit)]


def newest_told(store: Store, limit: int) -> list[ToldFiring | ToldRefusal]:
    """Return the newest firings and refused calls, the newest first."""
    found: list[ToldFiring | ToldRefusal] = [*newest_firings(store, limit), *newest_refusals(store, limit)]
    return sorted(found, key=lambda each: -each.ts)[:limit]


def _digits(id: str) -> str:
    return id.rpartition("-")[2]


def block_ends(store: Store, refusal: ToldRefusal) -> list[BlockEnd]:
    """Return what has ended blocks since a refusal, the oldest first."""
    return [BlockEnd(*row) for row in store.fetch(_ENDS, (refusal.session_id, refusal.seq))]


def block_end(store: Store, refusal: ToldRefusal, *, stands: bool) -> BlockEnd | None:
    """Return what has ended the block of a refusal.

    Parameters
    ----------
    store : Store
        Holds the refusal.
    refusal : ToldRefusal
        Which.
    stands : bool
        True if it was not for what the call is itself: whatever ends a block ends it.
    """
    until = newest_until(store, refusal)
    for end in block_ends(store, refusal):
        if end.decision == refusal.seq if end.decision is not None else stands or until is None or end.seq < until:
            return end
    return None


def newest_until(store: Store, refusal: ToldRefusal) -> int | None:
    """Return the number of the refused call, or goal, after which a refusal is not the newest; ``None``: it is."""
    found: int | None = store.fetch(_NEXT, (refusal.session_id, refusal.seq))[0][0]
    return found


def refusal_labels(store: Store, agents: list[str]) -> dict[tuple[int, int], bool]:
    """Return session and number of a refusal -> whether its newest judgement calls it right.

    Who lets the refused call through calls it a false alarm. One whose label was taken back has none.
    """
    found: dict[tuple[int, int], bool] = {}
    for session_id, seq, score in store.fetch(_REFUSAL_LABELS, (msgspec.json.encode(agents).decode(),)):
        if score == 0:
            found.pop((session_id, seq), None)
        else:
            found[session_id, seq] = score is not None and score > 0
    return found


def steps_until(store: Store, session_id: int, seq: int) -> int:
    """Return how many steps of a session were complete at an event, of those that are kept."""
    return int(store.fetch(_STEPS, (session_id, seq))[0][0])


def outcomes_of(store: Store, firing: str) -> list[FiringOutcomeRow]:
    """Return what came of a firing, the nearest horizon first, the end of the task last."""
    return outcomes_of_firings(store, [firing]).get(firing, [])


def outcomes_of_firings(store: Store, ids: Sequence[str]) -> dict[str, list[FiringOutcomeRow]]:
    """Return firing -> what came of it, in the order of :func:`outcomes_of`, of those of which something is known."""
    found: dict[str, list[FiringOutcomeRow]] = {}
    for firing, horizon, change, *known in store.fetch(_OUTCOMES, (msgspec.json.encode(ids).decode(),)):
        error, tool, task = (None if each is None else bool(each) for each in known)
        outcome = FiringOutcomeRow(
            firing=firing,
            horizon=horizon,
            pressure_change=change,
            error_resolved=error,
            tool_switched=tool,
            task_success=task,
        )
        found.setdefault(firing, []).append(outcome)
    return found


def firing_labels(store: Store, agents: list[str]) -> dict[str, bool]:
    """Return firing -> whether its newest label calls it right; one whose label was taken back has none."""
    found: dict[str, bool] = {}
    for firing, score in store.fetch(_LABELS, (msgspec.json.encode(agents).decode(),)):
        if firing is not None and score is not None:
            found[firing] = score > 0
        elif firing is not None:
            found.pop(firing, None)
    return found


def count_pattern(store: Store, pattern: str) -> PatternCounts:
    """Return how often a pattern has fired, and how its firings were judged."""
    rows = store.fetch(_OF_PATTERN, (pattern,))
    labels = firing_labels(store, sorted({agent for _, agent, _ in rows}))
    judged = [labels[firing] for firing, _, _ in rows if firing in labels]
    return PatternCounts(len(rows), sum(delivered for _, _, delivered in rows), sum(judged), len(judged) - sum(judged))
