"""Queries of the faces: what is asked of a whole store, or of a few rows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coherence.core.decisions import refusal_id
from coherence.store.queries import EVENTS_AT, event_row
from coherence.store.rows import GUARD_SESSION, PURGE_AGENT, PURGED_SESSION, EventRow, SessionRow
from coherence.store.store import Store
from coherence.store.tallies import decode_tally
from coherence.store.tally import MarkRow, Tally
from coherence.store.told import ToldRefusal

_NEWEST = (
    "SELECT (SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM sessions), c.first_id, "
    "coalesce((SELECT h.last_seq FROM heads AS h JOIN sessions AS s ON s.id = h.session_id "
    "WHERE s.agent = :purge AND s.session = :purge), 0) FROM chain AS c"
)
# without the settings, which hold the state in which a session began
_SESSIONS = (
    "SELECT s.id, s.session, s.agent, s.parent, s.source, s.started, "
    "(SELECT min(seq) FROM events WHERE session_id = s.id), (SELECT last_seq FROM heads WHERE session_id = s.id) "
    "FROM sessions AS s WHERE s.id > :after AND s.agent <> :purge AND s.session <> :guard AND s.config <> :purged "
    "ORDER BY s.id"
)
_CHANGED = (
    "SELECT s.agent, s.session FROM sessions AS s WHERE s.id IN "
    "(SELECT DISTINCT session_id FROM events WHERE id > ? AND id <= ? LIMIT ?)"
)
_TALLIES = "SELECT session_id, data FROM tallies WHERE event_id > ?"
_POINTS = "SELECT data FROM points WHERE session_id = ? AND seq > ? ORDER BY seq"
_MARKS = (
    "SELECT kind, seq, name, ts FROM marks WHERE session_id = ? AND kind = ? AND seq BETWEEN ? AND ? "
    "ORDER BY seq DESC LIMIT ?"
)
_WINDOWS = (
    "SELECT s.id, json_extract(s.config, '$.effective.context_tokens') FROM json_each(?) AS j "
    "CROSS JOIN sessions AS s ON s.id = j.value"
)
_TEXTS = " || char(10) || ".join(
    f"coalesce(json_extract(e.data, '$.{name}'), '')"
    for name in (
        "text",
        "content",
        "summary",
        "message",
        '"gen_ai.tool.name"',
        '"gen_ai.tool.call.result"',
        '"gen_ai.tool.call.arguments"',
    )
)
# the first condition needs no reading of JSON, and seldom holds
_HOLDS = f"e.data LIKE :text ESCAPE '\\' AND (({_TEXTS}) LIKE :plain ESCAPE '\\' OR ({_TEXTS}) LIKE :text ESCAPE '\\')"
_HOLDING = f"SELECT 1 FROM events AS e WHERE e.session_id = :session AND {_HOLDS} LIMIT 1"  # noqa: S608 - constants
_FOUND = (
    "SELECT e.seq, e.ts, e.kind, e.data FROM events AS e WHERE e.session_id = :session AND e.seq > :after "  # noqa: S608 - constants
    f"AND (:kind IS NULL OR e.kind = :kind) AND (:plain IS NULL OR ({_HOLDS})) ORDER BY e.seq LIMIT :limit"
)
_SPAN = (
    "SELECT (SELECT min(seq) FROM events WHERE session_id = :id), (SELECT max(seq) FROM events WHERE session_id = :id)"
)
_LABELS = (
    "SELECT e.data FROM sessions AS s CROSS JOIN marks AS m ON m.session_id = s.id AND m.kind = 'feedback' "
    "JOIN events AS e ON e.session_id = m.session_id AND e.seq = m.seq WHERE s.agent = ? ORDER BY e.id"
)
_RUN_LABELS = "SELECT agent, session, min(label) FROM runs WHERE label IS NOT NULL GROUP BY agent, session"


class Newest(NamedTuple):
    """Positions that tell what has changed in a store."""

    event: int
    session: int
    first_event: int
    purges: int


class SessionHead(NamedTuple):
    """A session without its settings, and the events of it that are kept."""

    row: SessionRow
    """``config`` is empty."""
    first: int | None
    """Number of the first event that is kept; ``None`` = none is."""
    last: int
    """Number of the newest event that there ever was."""


def changed_sessions(store: Store, after: int, until: int, limit: int) -> tuple[tuple[str, str], ...]:
    """Return (agent, session) of the events with an id above ``after``, up to and including ``until``.

    At most ``limit`` sessions are returned.
    """
    return tuple(store.fetch(_CHANGED, (after, until, limit)))


def newest_event(store: Store) -> int:
    """Return the position of the newest event of a store, 0 if there is none."""
    return int(store.fetch("SELECT coalesce(max(id), 0) FROM events")[0][0])


def newest_of(store: Store) -> Newest:
    """Return the positions of the newest event and session, of the first kept event, and the number of purges."""
    return Newest(*store.fetch(_NEWEST, {"purge": PURGE_AGENT})[0])


def session_heads(store: Store, after: int) -> list[SessionHead]:
    """Return the sessions whose ids are above one, oldest first, as :meth:`Store.sessions` chooses them."""
    values: dict[str, object] = {"after": after, "purge": PURGE_AGENT, "guard": GUARD_SESSION, "purged": PURGED_SESSION}
    found = store.fetch(_SESSIONS, values)
    return [
        SessionHead(SessionRow(id, session, agent, parent, source, started, ""), first, last)
        for id, session, agent, parent, source, started, first, last in found
    ]


def tallies_after(store: Store, event: int) -> dict[int, Tally]:
    """Return session -> what it comes to, of those with an event behind a position."""
    found = ((number, decode_tally(data)) for number, data in store.fetch(_TALLIES, (event,)))
    return {number: tally for number, tally in found if tally is not None}


def points_after(store: Store, session_id: int, seq: int) -> bytes:
    """Return the measured ticks of a session after an event, packed, and maybe some before it."""
    return b"".join(data for (data,) in store.fetch(_POINTS, (session_id, seq)))


def marks_between(
    store: Store, session_id: int, kinds: Sequence[str], first: int, last: int, limit: int
) -> list[MarkRow]:
    """Return the newest marks of each of some kinds between two events, oldest first."""
    rows = [row for kind in kinds for row in store.fetch(_MARKS, (session_id, kind, first, last, limit))]
    return sorted((MarkRow(*row) for row in rows), key=lambda mark: (mark.seq, mark.kind))


def session_span(store: Store, session_id: int) -> tuple[int, int]:
    """Return the numbers of the first and the newest event of a session that are kept; zeros if none is."""
    first, last = store.fetch(_SPAN, {"id": session_id})[0]
    return (int(first), int(last)) if first is not None else (0, 0)


def events_at(store: Store, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], EventRow]:
    """Return (session, number) -> event, of those that are kept."""
    rows = store.fetch(EVENTS_AT, (_json(places),)) if places else []
    return {(session_id, row[0]): event_row(row) for session_id, *row in rows}


def events_numbered(store: Store, session_id: int, seqs: Sequence[int]) -> dict[int, EventRow]:
    """Return number -> event, of those of a session that are kept."""
    return {seq: event for (_, seq), event in events_at(store, [(session_id, seq) for seq in seqs]).items()}


def context_windows(store: Store, ids: Sequence[int]) -> dict[int, int | None]:
    """Return session -> size of the context window that its settings name, in tokens; ``None`` = unknown."""
    found = dict(store.fetch(_WINDOWS, (_json(ids),))) if ids else {}
    return {id: size if isinstance(size := found.get(id), int) and size > 0 else None for id in ids}


def metric_directions(store: Store, session_id: int) -> dict[str, bool]:
    """Return metric -> whether a high value is bad, of those that somebody else wrote, by a session's settings."""
    sql = (
        "SELECT json_extract(m.value, '$.name'), json_extract(m.value, '$.inverted') "
        "FROM sessions AS s, json_each(s.config, '$.settings.metrics') AS m WHERE s.id = ?"
    )
    return {str(name): bool(inverted) for name, inverted in store.fetch(sql, (session_id,))}


def told_refusal(row: SessionRow, event: EventRow, tool: str) -> ToldRefusal:
    """Return the refusal that an event of a session was."""
    data = "{}" if event.decision is None else event.decision.data
    id = refusal_id(row.agent, row.session, event.ts)
    return ToldRefusal(id, row.session, row.agent, row.id, row.source, event.seq, event.ts, tool or None, data)


def agent_feedback(store: Store, agent: str) -> list[str]:
    """Return the judgements that the sessions of an agent hold, as JSON, the oldest first."""
    return [data for (data,) in store.fetch(_LABELS, (agent,))]


def run_labels(store: Store) -> dict[tuple[str, str], bool]:
    """Return (agent, session) -> whether all of its labelled runs were good, of those with a label."""
    return {(agent, session): bool(label) for agent, session, label in store.fetch(_RUN_LABELS)}


def like(text: str) -> str:
    """Return the pattern of texts that hold another one."""
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return f"%{text}%"


def holds(store: Store, session_id: int, text: str) -> bool:
    """Tell whether an event of a session holds a text."""
    return bool(store.fetch(_HOLDING, {"session": session_id, **_patterns(text)}))


def found_events(
    store: Store, session_id: int, *, after: int, limit: int, kind: str | None, text: str | None
) -> list[EventRow]:
    """Return events of a session in order, without what was measured: of one kind, or with a text in them."""
    values: dict[str, object] = {"session": session_id, "after": after, "limit": limit, "kind": kind}
    return [EventRow(*row) for row in store.fetch(_FOUND, {**values, **_patterns(text)})]


def _patterns(text: str | None) -> dict[str, object]:
    """Return the patterns of a text as it is, and as JSON has it."""
    return {"plain": like(text) if text else None, "text": like(_json(text)[1:-1]) if text else None}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
