"""The move of a guard's trail into the chain: version 1 of the schema kept it in tables of its own."""

from __future__ import annotations

import sqlite3

import msgspec

from coherence.store.hash_chain import digest
from coherence.store.rows import GUARD_SESSION, EventRow
from coherence.store.transaction import INSERT_EVENT

_CALL = ("success", "duration_s", "cost", "index", "band", "epoch", "patched", "task", "error", "arguments")
_TRAIL = (
    "SELECT seq, at, kind, success, duration_s, cost, coherence_index, band, epoch, patched, task, error, data "
    "FROM guard_trail WHERE agent_id = ? ORDER BY seq"
)


def move_guard_trail(connection: sqlite3.Connection) -> None:
    """Append the old trails to the chain and remove their tables; for migration 2, inside its transaction.

    Entries keep their numbers. A call that was pruned leaves an event of the kind ``guard_gap``.
    """
    agents = connection.execute("SELECT id, agent, seq, kept, pending, data FROM guard_agents ORDER BY id").fetchall()
    for number, agent, newest, kept, pending, data in agents:
        session = connection.execute(
            "INSERT INTO sessions (session, agent, source, started, config) VALUES (?, ?, 'api', 0.0, '{}')",
            (GUARD_SESSION, agent),
        ).lastrowid
        connection.execute("INSERT INTO guard_accounts VALUES (?, ?, ?, ?, ?)", (session, agent, kept, pending, data))
        rows: list[EventRow] = []
        for seq, at, kind, *call, text in connection.execute(_TRAIL, (number,)):
            rows += [EventRow(gap, at, "guard_gap", "{}") for gap in range(len(rows) + 1, seq)]
            row = (
                EventRow(seq, at, "guard_call", _call(*call, text))
                if kind == "call"
                else EventRow(seq, at, "guard", text)
            )
            rows.append(row)
        rows += [EventRow(gap, 0.0, "guard_gap", "{}") for gap in range(len(rows) + 1, newest + 1)]
        ((head,),) = connection.execute("SELECT head FROM chain")
        for row in rows:
            hashed = digest(head, GUARD_SESSION, agent, "api", row, row.ts)
            values = (session, agent, row.seq, row.ts, row.kind, "api", row.data, head, hashed)
            connection.execute(INSERT_EVENT, values)
            head = hashed
        connection.execute("UPDATE chain SET count = count + ?, head = ?", (len(rows), head))
    for table in ("guard_copies", "guard_trail", "guard_agents"):
        connection.execute(f"DROP TABLE {table}")


def _call(success: int, *measured: object) -> str:
    *numbers, text = measured
    fields: dict[str, object] = dict(zip(_CALL, (bool(success), *numbers, None), strict=True))
    fields["patched"] = bool(fields["patched"])
    fields["arguments"] = None if text is None else msgspec.Raw(str(text).encode())
    return msgspec.json.encode({"kind": "call", **fields}).decode()
