"""One agent's account in this process: ahead of the store by what waits to be written, made anew when others wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from coherence.guard.account import Account
from coherence.guard.patch_events import Decision
from coherence.guard.traces import (
    SNAPSHOT_EVERY,
    Entry,
    copied,
    encode_account,
    head,
    keep_account,
    newest_seq,
    read_account,
    write_decision,
    write_entries,
)
from coherence.store.errors import StoreError
from coherence.store.store import Store
from coherence.store.transaction import Transaction

D = TypeVar("D", bound=Decision)

MAX_WAITING = 10_000
"""Entries that wait for a store that cannot be written; more are counted as lost."""

_UNKNOWN = -1
"""The number of the newest stored entry where the account is not to be relied on: it is read anew."""


class View:
    """The account of one agent, for all threads of this process."""

    def __init__(self, agent: str, store: Store) -> None:
        self.agent = agent
        self.lost = 0
        """Entries that could not be written and were given up."""
        self.acting = False
        """Whether a thread of this process takes a step for this agent."""
        self.looked_s = 0.0
        """When this process last compared it with the store, on the caller's clock."""
        self.lock = threading.RLock()  # a signal handler may run a call of its own while this thread holds it
        """Held while account and waiting entries are read or changed."""
        self.writing = threading.RLock()
        """Held while entries are written; taken before :attr:`lock`."""
        self._store = store
        self._waiting: list[Entry] = []
        self.account = read_account(store, agent)
        self._stored = self.account.seq

    @property
    def waits(self) -> bool:
        """Return whether there is something to write."""
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Return whether the next entry would be lost."""
        return len(self._waiting) >= MAX_WAITING

    @property
    def busy(self) -> bool:
        """Return whether there is something to write, a step is being taken, or a patch is open."""
        return self.waits or self.acting or not self.account.patching.rests

    def observe(self, entry: Entry) -> Account:
        """Take in one entry now, and write it later; the caller holds :attr:`lock`."""
        self.account.observe(entry.at, entry.happening)
        if self.full:
            self.lost, self._stored = self.lost + 1, _UNKNOWN
        else:
            self._waiting.append(entry)
        return self.account

    def refresh(self, newest: int | None = None, *, wait: bool = True) -> None:
        """Take in what other processes have written since; ``newest`` is the newest entry, if it is known already.

        Without ``wait`` a thread that is writing is not waited for: the next look takes it in.
        """
        if (newest_seq(self._store, self.agent) if newest is None else newest) == self._stored:
            return
        if self.writing.acquire(blocking=wait):
            try:
                self._replace(read_account(self._store, self.agent))
            finally:
                self.writing.release()

    def write(self, wait_s: float | None = None) -> None:
        """Write what waits; up to ``wait_s`` seconds pass for other threads, and as many for other processes.

        Raises
        ------
        StoreError
            Nothing was written; all goes on waiting.
        """
        if not self.writing.acquire(timeout=-1 if wait_s is None else wait_s):
            raise StoreError(self._store.path, f"another thread was writing for {wait_s:g} s")
        try:
            if self.waits:
                with self._store.transaction(timeout_s=wait_s) as transaction:
                    seq, count = self.insert(transaction)
                self.inserted(seq, count)
        finally:
            self.writing.release()

    def decide(self, choose: Callable[[Account], tuple[float, D] | None]) -> D | None:
        """Write what waits, and a decision on the account that all processes share.

        Parameters
        ----------
        choose : callable
            Takes the account, returns wall time and decision, or None. It must not change the account.

        Returns
        -------
        Decision or None
            The decision, once it is written: no other process has made one since the account was read.

        Raises
        ------
        StoreError
            Nothing was written; all goes on waiting, but for the decision.
        """
        with self.writing, ExitStack() as held:
            with self._store.transaction() as transaction:
                held.enter_context(self.lock)  # until after the commit, but calls go on while others lock the store
                seq, count = self.insert(transaction)
                found = choose(self.account)
                if found is not None:
                    account = copied(self.account)
                    account.observe(*found)
                    write_decision(transaction, self.agent, Entry(*found), account)
            if found is not None:
                self.account, seq = account, seq + 1
            self.inserted(seq, count)
            return None if found is None else found[1]

    def insert(self, transaction: Transaction) -> tuple[int, int]:
        """Write what waits, after what others have written; the caller holds :attr:`writing`.

        Returns the number of the newest entry then, and how many of those that waited are written.
        """
        at = head(transaction, self.agent)
        if at.seq != self._stored:
            self._replace(read_account(transaction, self.agent))
        with self.lock:
            waiting = list(self._waiting)
            kept = self.account.seq // SNAPSHOT_EVERY > at.seq // SNAPSHOT_EVERY
            data = encode_account(self.account) if kept else None
        if waiting:
            at = write_entries(transaction, at, waiting)
            if data is not None:
                keep_account(transaction, at, data)
        return at.seq, len(waiting)

    def inserted(self, seq: int, count: int) -> None:
        """Note that the first ``count`` that waited are safe in the store, which goes up to entry ``seq`` now."""
        with self.lock:
            del self._waiting[:count]
            # Something was lost, or came from a signal handler in the middle of a step: the account is read anew.
            self._stored = seq if self.account.seq == seq + len(self._waiting) else _UNKNOWN

    def _replace(self, account: Account) -> None:
        """Go on from what the store has; what waits comes after it."""
        with self.lock:
            self._stored = account.seq
            for entry in self._waiting:
                account.observe(entry.at, entry.happening)
            self.account = account
