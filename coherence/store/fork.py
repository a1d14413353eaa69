"""Fork: SQLite must not be carried across it.

SQLite keeps the locks of a process in that process's memory, by file. A forked child inherits the memory but not the
locks, so even a connection that the child opens anew would believe to hold locks that it does not hold, and another
process could delete the log under it. So the parent closes its connections for the moment of the fork; both sides open
their own at the next use. Where that is impossible (a transaction is under way), the file cannot be used in the child.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import weakref
from pathlib import Path
from typing import Protocol

from coherence.store.errors import StoreError

WAIT_S = 2.0
"""How long a fork waits for transactions and reads of other threads, in seconds."""

_unusable: set[str] = set()


class Forkable(Protocol):
    """What a store does around a fork."""

    path: Path
    closed: bool

    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_stores: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(store: Forkable) -> None:
    """Tell a store about forks for as long as it lives."""
    _stores.add(store)


def in_use(path: Path) -> bool:
    """Return whether an open store of this process uses the file."""
    return any(store.path == path and not store.closed for store in list(_stores))


def give_up(path: Path, connections: list[sqlite3.Connection]) -> None:
    """In a child: never use this file again, and never close or collect what the parent left open."""
    _unusable.add(str(path))
    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def refuse_unusable(path: Path) -> None:
    """Raise if this process was forked in the middle of a transaction on the file."""
    if str(path) in _unusable:
        raise StoreError(
            path, "this process was forked while its parent was writing to the file, so it cannot be used here"
        )


def _before() -> None:
    for store in list(_stores):
        store.before_fork()


def _in_parent() -> None:
    for store in list(_stores):
        store.after_fork_in_parent()


def _in_child() -> None:
    for store in list(_stores):
        store.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
