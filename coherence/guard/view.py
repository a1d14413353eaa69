"""One agent's account in this process: ahead of the store by what waits to be written, made anew when others wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

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
"""What is stored, as far as a view knows whose account is not to be relied on: it is read anew."""


class Batch(NamedTuple):
    """What is to be written of one view."""

    entries: list[Entry]
    begin: int
    """The newest entry of the store that the view knows."""
    data: bytes | None
    """The account after these entries if it is to be kept now."""


class View:
    """The account of one agent, for all threads of this process.

    Parameters
    ----------
    agent : str
        Whose account it is.
    store : Store
        Where its trail is.
    """

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
        self._changing = False
        self._waiting: list[Entry] = []
        self.account = read_account(store, agent)
        self._stored = self.account.seq

    @property
    def waits(self) -> bool:
        """Whether there is something to write."""
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether the next entry would be lost."""
        return len(self._waiting) >= MAX_WAITING

    @property
    def busy(self) -> bool:
        """Whether there is something to write, a step is being taken, or a patch is open."""
        return bool(self._waiting) or self.acting or not self.account.patching.rests

    def observe(self, entry: Entry) -> Account:
        """Take in one entry now, and write it later; the caller holds :attr:`lock`."""
        if self._changing:  # a signal handler, in the middle of a change by this thread
            self._stored = _UNKNOWN
        else:
            self._changing = True
            try:
                self.account.observe(entry.at, entry.happening)
            except BaseException:
                self._stored = _UNKNOWN
                raise
            finally:
                self._changing = False
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(entry)
        else:
            self.lost, self._stored = self.lost + 1, _UNKNOWN
        return self.account

    def refresh(self, newest: int | None = None, *, wait: bool = True) -> None:
        """Take in what other processes have written since; nothing is written.

        Parameters
        ----------
        newest : int, optional
            The newest entry of the store, if it is known already.
        wait : bool
            Whether to wait for a thread that is writing; without, the next look takes it in.
        """
        if (newest_seq(self._store, self.agent) if newest is None else newest) == self._stored:
            return
        if self.writing.acquire(blocking=wait):
            try:
                account = read_account(self._store, self.agent)
                with self.lock:
                    self._replace(account)
            finally:
                self.writing.release()

    def write(self, wait_s: float | None = None) -> None:
        """Write what waits.

        Parameters
        ----------
        wait_s : float, optional
            Seconds to wait for other threads, and as long again for other processes; default: as long as the store
            does.

        Raises
        ------
        StoreError
            Nothing was written; all goes on waiting.
        """
        if not self.writing.acquire(timeout=-1 if wait_s is None else wait_s):
            raise StoreError(self._store.path, f"another thread was writing for {wait_s:g} s")
        try:
            if not self._waiting:
                return
            with self._store.transaction(timeout_s=wait_s) as transaction:
                batch = self.insert(transaction)
            self.inserted(batch)
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
                batch = self.insert(transaction)
                self._changing = True
                held.callback(self._changed)
                found = choose(self.account)
                if found is not None:
                    account = copied(self.account)
                    account.observe(*found)
                    write_decision(transaction, self.agent, Entry(*found), account)
            self.inserted(batch)
            if found is None:
                return None
            self.account, self._stored = account, batch.begin + len(batch.entries) + 1
            self._check()
            return found[1]

    def insert(self, transaction: Transaction) -> Batch:
        """Write what waits now, after what others have written; the caller holds :attr:`writing`."""
        batch = self._batch()
        at = head(transaction, self.agent)
        if at.seq != batch.begin:
            account = read_account(transaction, self.agent)
            with self.lock:
                self._replace(account)
                batch = self._batch()
        if batch.entries:
            at = write_entries(transaction, at, batch.entries)
            if batch.data is not None:
                keep_account(transaction, at, batch.data)
        return batch

    def inserted(self, batch: Batch) -> None:
        """Note that a batch is safe in the store."""
        with self.lock:
            del self._waiting[: len(batch.entries)]
            self._stored = batch.begin + len(batch.entries)
            self._check()

    def _changed(self) -> None:
        self._changing = False

    def _batch(self) -> Batch:
        with self.lock:
            begin, seq = self._stored, self.account.seq
            data = encode_account(self.account) if seq // SNAPSHOT_EVERY > begin // SNAPSHOT_EVERY else None
            return Batch(list(self._waiting), begin, data)

    def _replace(self, account: Account) -> None:
        """Go on from what the store has; what waits comes after it."""
        self._stored = account.seq
        for entry in self._waiting:
            account.observe(entry.at, entry.happening)
        self.account = account

    def _check(self) -> None:
        """Have the account read anew if it is not what is stored and what waits.

        Something was lost, could not be taken in, or came from a signal handler in the middle of a step.
        """
        if self.account.seq != self._stored + len(self._waiting):
            self._stored = _UNKNOWN
