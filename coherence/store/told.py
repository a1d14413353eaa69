"""Firings of guidance one by one: what each was, whether it arrived, what came of it, and how people judged it."""

from __future__ import annotations

import msgspec

from coherence.store.rows import FiringOutcomeRow
from coherence.store.store import Store

_COLUMNS = (
    "f.firing_id, f.session_id, s.session, f.agent, f.source, f.seq, f.ts, f.pattern, f.pair, f.arm, f.text, "
    "d.seq, d.ts, f.delivered_id"
)
_FROM = "FROM firings AS f JOIN sessions AS s ON s.id = f.session_id LEFT JOIN events AS d ON d.id = f.delivered_id"
_NEWEST = f"SELECT {_COLUMNS} {_FROM} ORDER BY f.event_id DESC LIMIT ?"
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
    "SELECT horizon, pressure_change, error_resolved, tool_switched, task_success FROM firing_outcomes "
    "WHERE firing_id = ? ORDER BY horizon = 0, horizon"
)
_LABELS = (
    "SELECT json_extract(data, '$.about'), json_extract(data, '$.score') FROM events WHERE kind = 'feedback' "
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


class PatternCounts(msgspec.Struct, frozen=True):
    """Counts of all firings of a pattern, without those of tests."""

    firings: int
    delivered: int
    good: int
    """Firings that somebody called right."""
    bad: int
    """Firings that somebody called a false alarm."""


def newest_firings(store: Store, limit: int) -> list[ToldFiring]:
    """Return the newest firings of a store, the newest first."""
    return [ToldFiring(*row) for row in store.fetch(_NEWEST, (limit,))]


def named_firings(store: Store, name: str, limit: int) -> list[ToldFiring]:
    """Return the firings whose id, or the part of it behind the pattern, begins with a name, the newest first.

    A firing that is called exactly so is returned alone.
    """
    found = [ToldFiring(*row) for row in store.fetch(_NAMED, {"name": name, "limit": limit})]
    return [each for each in found if each.id == name] or found


def steps_until(store: Store, session_id: int, seq: int) -> int:
    """Return how many steps of a session were complete at an event, of those that are kept."""
    return int(store.fetch(_STEPS, (session_id, seq))[0][0])


def outcomes_of(store: Store, firing: str) -> list[FiringOutcomeRow]:
    """Return what came of a firing, the nearest horizon first, the end of the task last."""

    def known(value: int | None) -> bool | None:
        return None if value is None else bool(value)

    return [
        FiringOutcomeRow(
            firing=firing,
            horizon=horizon,
            pressure_change=change,
            error_resolved=known(error),
            tool_switched=known(tool),
            task_success=known(task),
        )
        for horizon, change, error, tool, task in store.fetch(_OUTCOMES, (firing,))
    ]


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
