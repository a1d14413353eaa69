"""The trail of agents under guard in the store: entries numbered without gaps, and the account that follows from them.

One process writes at a time, and looks first whether others have written: all have one order, hence one patch state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from coherence.core.redact import redact, redact_value
from coherence.guard.account import Account
from coherence.guard.patch_events import Decision, GuardedCall, kind_of
from coherence.store.store import Store
from coherence.store.transaction import Transaction

SNAPSHOT_EVERY = 100
"""Entries after which the account is kept anew; so many are read and counted again at most when a process starts."""

_INSERT = "INSERT INTO guard_trail VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AGENT = "SELECT id, seq, kept FROM guard_agents WHERE agent = ?"
_SEQS = (
    "SELECT agent, seq FROM guard_agents WHERE pending = 1 "
    "UNION SELECT agent, seq FROM guard_agents WHERE agent IN (SELECT value FROM json_each(?))"
)
_TAIL = (
    "SELECT at, kind, success, duration_s, cost, coherence_index, epoch, patched, data FROM guard_trail "
    "WHERE agent_id = ? AND seq > ? ORDER BY seq"
)
_ENTRIES = (
    "SELECT t.kind, t.seq, t.at, t.success, t.duration_s, t.cost, t.coherence_index, t.band, t.epoch, t.patched, "
    "t.task, t.error, t.data FROM guard_trail AS t JOIN guard_agents AS a ON a.id = t.agent_id WHERE a.agent = ? "
)
_TRAIL = _ENTRIES + "AND t.seq > ? ORDER BY t.seq LIMIT ?"
_NEWEST = _ENTRIES + "AND t.kind = 'call' ORDER BY t.seq DESC LIMIT ?"
_DECISIONS = (
    "SELECT t.seq, t.at, t.data FROM guard_trail AS t JOIN guard_agents AS a ON a.id = t.agent_id "
    "WHERE a.agent = ? AND t.kind <> 'call' ORDER BY t.seq DESC LIMIT ?"
)
_PRUNE = "DELETE FROM guard_trail WHERE agent_id = ? AND seq <= ? AND kind = 'call' RETURNING 1"
_DECODE_DECISION = msgspec.json.Decoder(Decision).decode
_ENCODE_JSON = msgspec.json.Encoder().encode
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(Account).decode


class Entry(NamedTuple):
    """One entry that is to be written; secrets in its texts and arguments are replaced then."""

    at: float
    """Wall time, Unix seconds."""
    happening: GuardedCall | Decision
    task: str = ""
    error: str | None = None
    band: str | None = None
    arguments: Any = None
    """Plain data, or None."""


class Trace(msgspec.Struct, frozen=True):
    """One recorded call."""

    seq: int
    """Its place in the agent's trail, 1 or more."""
    at: float
    """Wall time of its end, Unix seconds; for display."""
    success: bool
    duration_s: float | None
    cost: float | None
    index: float | None
    band: str | None
    epoch: int
    patched: bool
    task: str
    error: str | None
    """Type and text of the exception, or None."""
    arguments: Any


class Past(msgspec.Struct, frozen=True):
    """One entry of an agent's history."""

    seq: int
    at: float
    decision: Decision

    @property
    def kind(self) -> str:
        """What it is, as the trail names it: ``asked``, ``accepted``, ``ending``, ``confirmed`` and so on."""
        return kind_of(self.decision)

    @property
    def why(self) -> str:
        """Its reason in words, empty where it needs none."""
        return str(getattr(self.decision, "why", ""))


class Head(NamedTuple):
    """How far an agent's trail goes."""

    agent: str
    id: int
    """0 = it has none yet."""
    seq: int
    kept: int
    """The entry up to which the kept account goes."""


def head(transaction: Transaction, agent: str) -> Head:
    """Return how far an agent's trail goes."""
    rows = transaction.execute(_AGENT, (agent,))
    return Head(agent, *rows[0]) if rows else Head(agent, 0, 0, 0)


def newest_seq(store: Store, agent: str) -> int:
    """Return the number of an agent's newest entry, 0 if there is none."""
    rows = store.fetch("SELECT seq FROM guard_agents WHERE agent = ?", (agent,))
    return int(rows[0][0]) if rows else 0


def newest_seqs(store: Store, agents: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the newest entries of some agents, and of all for which something is to be done."""
    rows = store.fetch(_SEQS, (_ENCODE_JSON(agents).decode(),))
    return {agent: int(seq) for agent, seq in rows}


def read_account(source: Store | Transaction, agent: str) -> Account:
    """Return an agent's account as the store has it: what was kept, and the entries after that."""
    fetch = source.execute if isinstance(source, Transaction) else source.fetch
    rows = fetch("SELECT id, data FROM guard_agents WHERE agent = ?", (agent,))
    if not rows:
        return Account()
    number, data = rows[0]
    account = Account() if data is None else _DECODE(data)
    for at, kind, success, duration_s, cost, index, epoch, patched, text in fetch(_TAIL, (number, account.seq)):
        if kind == "call":
            account.observe(at, GuardedCall(bool(success), duration_s, cost, index, epoch, bool(patched)))
        else:
            account.observe(at, _DECODE_DECISION(text))
    return account


def write_entries(transaction: Transaction, at: Head, entries: Sequence[Entry]) -> Head:
    """Append entries after the newest one, return how far the trail goes then; it begins here if need be."""
    if not at.id:
        transaction.execute("INSERT INTO guard_agents (agent) VALUES (?)", (at.agent,))
        at = head(transaction, at.agent)
    rows = [_row(at.id, seq, entry) for seq, entry in enumerate(entries, at.seq + 1)]
    transaction.execute_many(_INSERT, rows)
    at = at._replace(seq=at.seq + len(rows))
    transaction.execute("UPDATE guard_agents SET seq = ? WHERE id = ?", (at.seq, at.id))
    return at


def write_decision(transaction: Transaction, agent: str, entry: Entry, after: Account) -> None:
    """Append a decision; ``after`` is the account that follows from it."""
    at = write_entries(transaction, head(transaction, agent), [entry])
    transaction.execute("UPDATE guard_agents SET pending = ? WHERE id = ?", (int(after.patching.pends), at.id))
    if at.seq - at.kept >= SNAPSHOT_EVERY:
        keep_account(transaction, at, encode_account(after))


def keep_account(transaction: Transaction, at: Head, data: bytes) -> None:
    """Keep an encoded account that goes up to the newest entry."""
    transaction.execute("UPDATE guard_agents SET kept = ?, data = ? WHERE id = ?", (at.seq, data, at.id))


def encode_account(account: Account) -> bytes:
    """Return an account as :func:`keep_account` takes it."""
    return _ENCODE(account)


def copied(account: Account) -> Account:
    """Return a copy of an account, all that it holds included."""
    return _DECODE(_ENCODE(account))


def _row(number: int, seq: int, entry: Entry) -> tuple[object, ...]:
    call = entry.happening
    if not isinstance(call, GuardedCall):
        return (number, seq, entry.at, kind_of(call), *(None,) * 9, _ENCODE_JSON(call).decode())
    data = None if entry.arguments is None else _ENCODE_JSON(redact_value(entry.arguments)).decode()
    error = None if entry.error is None else redact(entry.error)
    told = (int(call.success), call.duration_s, call.cost, call.index, entry.band, call.epoch, int(call.patched))
    return (number, seq, entry.at, "call", *told, redact(entry.task), error, data)


def read_trail(store: Store, agent: str, *, after: int = 0, limit: int = 1000) -> list[Trace | Past]:
    """Return up to ``limit`` calls and decisions after entry ``after``, oldest first."""
    rows = store.fetch(_TRAIL, (agent, after, limit))
    return [_trace(row) if row[0] == "call" else Past(row[1], row[2], _DECODE_DECISION(row[-1])) for row in rows]


def newest_calls(store: Store, agent: str, limit: int) -> list[Trace]:
    """Return the newest ``limit`` recorded calls, oldest first."""
    return [_trace(row) for row in store.fetch(_NEWEST, (agent, limit))][::-1]


def read_decisions(store: Store, agent: str, limit: int) -> list[Past]:
    """Return the newest ``limit`` decisions, oldest first."""
    rows = store.fetch(_DECISIONS, (agent, limit))
    return [Past(seq, at, _DECODE_DECISION(text)) for seq, at, text in rows][::-1]


def prune_calls(store: Store, agent: str, keep: int) -> int:
    """Remove calls that are older than the newest ``keep`` entries and counted in the kept account; return how many."""
    if not newest_seq(store, agent):
        return 0
    with store.transaction() as transaction:
        at = head(transaction, agent)
        rows = transaction.execute(_PRUNE, (at.id, min(at.seq - keep, at.kept)))
    return len(rows)


def _trace(row: tuple[Any, ...]) -> Trace:
    _, seq, at, success, duration_s, cost, index, band, epoch, patched, task, error, data = row
    arguments = None if data is None else msgspec.json.decode(data)
    return Trace(seq, at, bool(success), duration_s, cost, index, band, epoch, bool(patched), task, error, arguments)
