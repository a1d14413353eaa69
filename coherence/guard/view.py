"""One agent's account in this process: ahead of the store by what waits to be written, made anew when others wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

from coherence.guard.account import Account
from coherence.guard.happenings import Decision
from coherence.guard.traces import (
    SNAPSHOT_EVERY,
    Entry,
    encode_account,
    head,
    keep_account,
    newest_seq,
    read_account,
    write_entries,
)
from coherence.store.store import Store
from coherence.store.transaction import Transaction

D = TypeVar("D", bound=Decision)

MOST_WAITING = 10_000
"""Entries that wait for a store that cannot be written; more are counted as lost."""


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
        self._waiting: list[Entry] = []
        self.account = read_account(store, agent)
        self._stored = self.account.seq

    @property
    def waits(self) -> bool:
        """Whether there is something to write."""
        return bool(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether there is something to write, a step is being taken, or a patch is open."""
        return bool(self._waiting) or self.acting or not self.account.patching.rests

    def take(self, entry: Entry) -> Account:
        """Take in one entry now, and write it later; the caller holds :attr:`lock`."""
        self.account.take(entry.at, entry.happening)
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(entry)
        else:
            self.lost, self._stored = self.lost + 1, -1  # the account is ahead by what is lost: it is to be read anew
        return self.account

    def refresh(self, newest: int | None = None) -> None:
        """Take in what other processes have written since; ``newest`` = the newest entry, if it is known already."""
        if (newest_seq(self._store, self.agent) if newest is None else newest) != self._stored:
            self.write(None)

    def write(self, decide: Callable[[Account], tuple[float, D] | None] | None) -> D | None:
        """Write what waits, and the decision that ``decide`` makes on the account that all processes share.

        Parameters
        ----------
        decide : callable or None
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
        with self.writing:
            if decide is None and self._append():
                return None
            with ExitStack() as held:
                return self._settle(decide, held)

    def batch(self) -> Batch:
        """Return what waits now; the caller holds :attr:`writing`, and calls go on meanwhile."""
        with self.lock:
            begin, seq = self._stored, self.account.seq
            data = encode_account(self.account) if seq // SNAPSHOT_EVERY > begin // SNAPSHOT_EVERY else None
            return Batch(list(self._waiting), begin, data)

    def insert(self, transaction: Transaction, batch: Batch) -> bool:
        """Write a batch unless others wrote meanwhile; return whether that was done."""
        at = head(transaction, self.agent)
        if at.seq != batch.begin:
            return False
        if batch.entries:
            write_entries(transaction, at, batch.entries)
        if batch.data is not None:
            keep_account(transaction, at, batch.begin + len(batch.entries), batch.data)
        return True

    def inserted(self, batch: Batch) -> None:
        """Note that a batch is safe in the store."""
        with self.lock:
            del self._waiting[: len(batch.entries)]
            if self._stored == batch.begin:  # else something was lost meanwhile, and the account is to be read anew
                self._stored = batch.begin + len(batch.entries)

    def _append(self) -> bool:
        batch = self.batch()
        with self._store.transaction() as transaction:
            done = self.insert(transaction, batch)
        if done:
            self.inserted(batch)
        return done

    def _settle(self, decide: Callable[[Account], tuple[float, D] | None] | None, held: ExitStack) -> D | None:
        with self._store.transaction() as transaction:
            held.enter_context(self.lock)  # until after the commit, but calls go on while others keep the store locked
            at = head(transaction, self.agent)
            account = self.account
            if at.seq != self._stored:
                account = read_account(transaction, self.agent)
                for entry in self._waiting:
                    account.take(entry.at, entry.happening)
            write_entries(transaction, at, self._waiting)
            if account.seq - at.kept >= SNAPSHOT_EVERY:
                keep_account(transaction, at, account.seq, encode_account(account))
            found = decide(account) if decide is not None else None
            if found is not None:
                write_entries(transaction, at._replace(seq=account.seq), [Entry(*found)])
        if found is not None:
            account.take(*found)
        self._waiting.clear()
        self.account, self._stored = account, account.seq
        return None if found is None else found[1]
