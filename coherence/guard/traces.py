"""The trail of agents under guard: events of the store's chain, and the account that follows from them.

One process writes at a time, and looks first whether others have written: all have one order, hence one patch state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from coherence.core.redact import redact, redact_value
from coherence.guard.account import Account
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.store.rows import GUARD_SESSION, EventRow, SessionRow
from coherence.store.store import Store
from coherence.store.transaction import Transaction

SNAPSHOT_EVERY = 100
"""Calls after which the account is kept anew; so many are read and counted again at most when a process starts."""

PAGE = 200
"""Entries read at once; each is less than 500 kB."""

_HEADS = "FROM guard_accounts AS g JOIN heads AS h ON h.session_id = g.session_id WHERE "
_HEAD = f"SELECT g.session_id, h.last_seq {_HEADS} g.agent = ?"
_ACCOUNT = f"SELECT h.last_seq, g.data {_HEADS} g.agent = ?"
_SEQS = (
    f"SELECT g.agent, h.last_seq {_HEADS} g.pending = 1 UNION "  # noqa: S608
    f"SELECT g.agent, h.last_seq {_HEADS} g.agent IN (SELECT value FROM json_each(?))"
)
_ENTRIES = (
    "SELECT e.kind, e.seq, e.ts, e.data FROM events AS e JOIN guard_accounts AS g ON g.session_id = e.session_id "
    "WHERE g.agent = ? "
)
_TRAIL = _ENTRIES + "AND e.kind NOT IN ('guard_gap', 'purged') AND e.seq > ? ORDER BY e.seq LIMIT ?"
_CALLS = _ENTRIES + "AND e.kind = 'guard_call' ORDER BY e.seq DESC LIMIT ?"
_DECISIONS = _ENTRIES + "AND e.kind = 'guard' ORDER BY e.seq DESC LIMIT ?"
_DECODE_CALL, _DECODE_DECISION = msgspec.json.Decoder(GuardedCall).decode, msgspec.json.Decoder(Decision).decode
_ENCODE_JSON = msgspec.json.Encoder().encode
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(Account).decode


class Entry(NamedTuple):
    """One entry that is to be written; secrets in the texts and arguments of a call are replaced then."""

    at: float
    """Wall time, Unix seconds."""
    happening: GuardedCall | Decision


class Trace(GuardedCall, frozen=True, kw_only=True, omit_defaults=False):
    """One recorded call."""

    seq: int
    """Its place in the agent's trail, 1 or more."""
    at: float
    """Wall time of its end, Unix seconds; for display."""


class Past(msgspec.Struct, frozen=True):
    """One entry of an agent's history."""

    seq: int
    at: float
    decision: Decision

    @property
    def kind(self) -> str:
        """Its kind, as the trail names it: ``asked``, ``accepted``, ``ending``, ``confirmed`` and so on."""
        return self.decision.kind

    @property
    def why(self) -> str:
        """Its reason in words, empty where it needs none."""
        return self.decision.why


class Head(NamedTuple):
    """Length of an agent's trail."""

    agent: str
    id: int
    """Of its session; 0 = it has none yet."""
    seq: int


def head(transaction: Transaction, agent: str) -> Head:
    """Return how far an agent's trail goes."""
    rows = transaction.execute(_HEAD, (agent,))
    return Head(agent, *rows[0]) if rows else Head(agent, 0, 0)


def guarded_agents(store: Store) -> list[str]:
    """Return the names of all agents under guard."""
    return [str(name) for (name,) in store.fetch("SELECT agent FROM guard_accounts ORDER BY agent")]


def newest_seq(store: Store, agent: str) -> int:
    """Return the number of an agent's newest entry, 0 if there is none."""
    rows = store.fetch(_HEAD, (agent,))
    return int(rows[0][1]) if rows else 0


def newest_seqs(store: Store, agents: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the newest entries of some agents, and of all for which something is to be done."""
    rows = store.fetch(_SEQS, (_ENCODE_JSON(agents).decode(),))
    return {agent: int(seq) for agent, seq in rows}


def read_account(source: Store | Transaction, agent: str) -> Account:
    """Return an agent's account as the store has it: what was kept, and the entries after that."""
    fetch = source.execute if isinstance(source, Transaction) else source.fetch
    rows = fetch(_ACCOUNT, (agent,))
    if not rows:
        return Account()
    newest, data = rows[0]
    account = Account() if data is None else _DECODE(data)
    for kind, seq, at, text in fetch(_TRAIL, (agent, account.seq, -1)):
        account.seq = seq - 1  # retention may have removed some that were not counted yet
        account.observe(at, _decoded(kind, text))
    account.seq = max(account.seq, newest)
    return account


def begin_trail(transaction: Transaction, agent: str, started: float, *, after: int = 0, pending: bool = False) -> Head:
    """Begin an agent's trail; where a new file has taken the place of one that is gone, after number ``after``."""
    session = transaction.add_session(
        session=GUARD_SESSION, agent=agent, parent=None, source="api", started=started, config="{}", after=after
    )
    transaction.execute(
        "INSERT INTO guard_accounts (session_id, agent, pending) VALUES (?, ?, ?)", (session.id, agent, int(pending))
    )
    return Head(agent, session.id, after)


def write_entries(transaction: Transaction, at: Head, entries: Sequence[Entry]) -> Head:
    """Append entries after the newest one, return how far the trail goes then; it begins here if need be."""
    if not at.id:
        at = begin_trail(transaction, at.agent, entries[0].at)
    rows = [_event(seq, *entry) for seq, entry in enumerate(entries, at.seq + 1)]
    transaction.add_events(SessionRow(at.id, GUARD_SESSION, at.agent, None, "api", 0.0, "{}"), rows)
    return at._replace(seq=at.seq + len(rows))


def write_decision(transaction: Transaction, agent: str, entry: Entry, after: Account) -> None:
    """Append a decision; ``after`` is the account that follows from it, which is kept: retention may remove events."""
    at = write_entries(transaction, head(transaction, agent), [entry])
    keep_account(transaction, at, encode_account(after))
    transaction.execute(
        "UPDATE guard_accounts SET pending = ? WHERE session_id = ?", (int(after.patching.pends), at.id)
    )


def keep_account(transaction: Transaction, at: Head, data: bytes) -> None:
    """Keep an encoded account that goes up to the newest entry."""
    transaction.execute("UPDATE guard_accounts SET kept = ?, data = ? WHERE session_id = ?", (at.seq, data, at.id))


def encode_account(account: Account) -> bytes:
    """Return an account as :func:`keep_account` takes it."""
    return _ENCODE(account)


def copied(account: Account) -> Account:
    """Return a copy of an account, all that it holds included."""
    return _DECODE(_ENCODE(account))


def _event(seq: int, at: float, happening: GuardedCall | Decision) -> EventRow:
    if not isinstance(happening, GuardedCall):
        return EventRow(seq, at, "guard", _ENCODE_JSON(happening).decode())
    # here, in the background: no call waits until its texts are searched for secrets
    call = msgspec.structs.replace(
        happening,
        task=redact(happening.task),
        error=None if happening.error is None else redact(happening.error),
        arguments=None if happening.arguments is None else redact_value(happening.arguments),
    )
    return EventRow(seq, at, "guard_call", _ENCODE_JSON(call).decode())


def read_trail(store: Store, agent: str) -> Iterator[tuple[int, float, GuardedCall | Decision]]:
    """Yield (number, wall time, entry) of all entries that are there now, oldest first; a page at a time is kept."""
    newest, after = newest_seq(store, agent), 0
    while after < newest and (rows := store.fetch(_TRAIL, (agent, after, PAGE))):
        for kind, seq, at, text in rows:
            if seq <= newest:
                yield seq, at, _decoded(kind, text)
        after = rows[-1][1]


def kept_account(store: Store, agent: str) -> Account:
    """Return the account that is kept for starts to go on from, as of the entry up to which it goes."""
    rows = store.fetch("SELECT data FROM guard_accounts WHERE agent = ?", (agent,))
    return Account() if not rows or rows[0][0] is None else _DECODE(rows[0][0])


def newest_calls(store: Store, agent: str, limit: int) -> list[Trace]:
    """Return the newest ``limit`` recorded calls, oldest first."""
    found = [_entry(*row) for row in store.fetch(_CALLS, (agent, limit))]
    return [call for call in reversed(found) if isinstance(call, Trace)]


def read_decisions(store: Store, agent: str, limit: int) -> list[Past]:
    """Return the newest ``limit`` decisions, oldest first."""
    found = [_entry(*row) for row in store.fetch(_DECISIONS, (agent, limit))]
    return [past for past in reversed(found) if isinstance(past, Past)]


def _decoded(kind: str, text: str) -> GuardedCall | Decision:
    return _DECODE_CALL(text) if kind == "guard_call" else _DECODE_DECISION(text)


def _entry(kind: str, seq: int, at: float, text: str) -> Trace | Past:
    found = _decoded(kind, text)
    if isinstance(found, GuardedCall):
        return Trace(seq=seq, at=at, **msgspec.structs.asdict(found))
    return Past(seq, at, found)
