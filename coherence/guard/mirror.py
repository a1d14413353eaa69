"""The trails of a store copied to plain files, from a thread of its own: calls and the store never wait for it.

The store says how far the files go, so that any process can go on where another one ended, however suddenly. What was
written to the files last is looked at before anything is appended: rows that the store does not know to be there yet,
because a process was killed in between, are not written again.
"""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from coherence.core.redact import redact_value
from coherence.core.validation import shown
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.export import PAGE, exported_rows
from coherence.guard.plain_files import FileTurn, PlainTraces
from coherence.guard.threads import GuardThread
from coherence.store.store import Store

EVERY_S = 1.0
"""How often the thread looks for what is new; one query if there is nothing."""

_BEHIND = (
    "SELECT a.id, a.agent, coalesce(c.seq, 0), a.seq FROM guard_agents AS a "
    "LEFT JOIN guard_copies AS c ON c.agent_id = a.id AND c.file = ? WHERE a.seq > coalesce(c.seq, 0) ORDER BY a.id"
)
_COPIED = (
    "SELECT c.seq FROM guard_copies AS c JOIN guard_agents AS a ON a.id = c.agent_id WHERE c.file = ? AND a.agent = ?"
)
_KEEP = "INSERT INTO guard_copies VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq"


class _Agent(NamedTuple):
    id: int
    name: str
    copied: int
    """The newest entry that is in the files."""
    newest: int


class Mirror:
    """Keeps plain files up to date with a store, whatever process has written to it.

    A row is what :func:`~coherence.guard.export.export_trail` writes, without secrets and with the ``agent``. An
    agent's rows are in the order of their ``seq``. Each entry is there once; it is there a second time if other things
    were written to the files between the end of a process and the next start, or if the path was changed and back.
    What cannot be written is counted, and written later.

    Parameters
    ----------
    store : Store
        Where the trails are.
    traces : PlainTraces
        The files.
    troubles : ErrorCounts
        Where failures are counted.
    """

    def __init__(self, store: Store, traces: PlainTraces, troubles: ErrorCounts) -> None:
        self._store = store
        self._traces = traces
        self._troubles = troubles
        self._file = os.path.abspath(traces.path)
        self._closed = False
        self.begin()
        _mirrors.add(self)

    def begin(self) -> None:
        """Start the thread, also in a forked child: the parent's stayed there."""
        self._stopped = threading.Event()
        if not self._closed:
            self._thread = GuardThread(self._run, "files")
            self._thread.start()

    def copy(self) -> None:
        """Write what the store had when this was called; what fails is counted."""
        try:
            left = sum(agent.newest - agent.copied for agent in self._behind())
            while left > 0 and (done := self._copy_some()):
                left -= done
        except Exception as error:
            self._troubles.add("plain files", error)

    def copied(self, agent: str) -> int:
        """Return the number of an agent's newest entry that is in the files, 0 if there is none."""
        rows = self._store.fetch(_COPIED, (self._file, agent))
        return int(rows[0][0]) if rows else 0

    def close(self) -> None:
        """Write what is new and end."""
        self._closed = True
        self.copy()
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            self.copy()

    def _behind(self) -> list[_Agent]:
        return [_Agent(*row) for row in self._store.fetch(_BEHIND, (self._file,))]

    def _copy_some(self) -> int:
        """Write up to a page of rows, and how far the files go then; return by how many entries they advanced."""
        with self._traces.turn() as turn:
            behind = self._behind()
            there = self._there(turn, {agent.name: agent for agent in behind})
            # told before anything is appended: that may set aside the file in which it was found
            self._keep([(agent, there[agent.name]) for agent in behind if agent.name in there])
            plain: list[Any] = []
            reached: list[tuple[_Agent, int]] = []
            for agent in behind:
                if len(plain) >= PAGE:
                    break
                copied = there.get(agent.name, agent.copied)
                room = PAGE - len(plain)
                rows = exported_rows(self._store, agent.name, after=copied, limit=room)
                plain.extend(_row(row) for row in rows)
                # a short page ends the trail: the entries without a row were pruned
                end = rows[-1]["seq"] if len(rows) == room else max(agent.newest, rows[-1]["seq"] if rows else 0)
                reached.append((agent, max(copied, end)))
            if plain:
                turn.extend(plain)
            self._keep(reached)
        return sum(seq - agent.copied for agent, seq in reached)

    def _keep(self, reached: list[tuple[_Agent, int]]) -> None:
        """Have the store know how far the files go."""
        if reached:
            with self._store.transaction() as transaction:
                transaction.execute_many(_KEEP, [(self._file, agent.id, seq) for agent, seq in reached])

    def _there(self, turn: FileTurn, behind: dict[str, _Agent]) -> dict[str, int]:
        """Return agent -> its newest entry in the files, where that is newer than the store says."""
        found: dict[str, int] = {}
        for row in turn.backwards():
            agent = behind.get(str(row.get("agent"))) if isinstance(row, dict) else None
            seq = row.get("seq") if agent is not None else None
            if agent is None or not isinstance(seq, int) or not agent.copied < seq <= agent.newest:
                break
            if [_row(kept) for kept in exported_rows(self._store, agent.name, after=seq - 1, limit=1)] != [row]:
                break  # of a store that was here before
            found.setdefault(agent.name, seq)
        return found


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as it is written; the search for secrets takes time and leaves out what is ours."""
    return {
        key: redact_value(value) if isinstance(value, str | dict | list) and key not in ("kind", "agent") else value
        for key, value in row.items()
    }


def as_plain_files(given: PlainTraces | str | Path | None) -> PlainTraces | None:
    """Return the plain files that a user means.

    Raises
    ------
    TypeError, ValueError
        If they are none, or the path does not end in ``.jsonl``.
    """
    if given is None or isinstance(given, PlainTraces):
        return given
    if not isinstance(given, str | Path):
        raise TypeError(f"plain_files must be a path or PlainTraces, not {shown(given)}")
    return PlainTraces(given)


_mirrors: weakref.WeakSet[Mirror] = weakref.WeakSet()


def _after_fork() -> None:
    for mirror in list(_mirrors):
        mirror.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
