"""One agent's account in this process: ahead of the store by what waits to be written, made anew when others wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

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

D = TypeVar("D", bound=Decision)

MOST_WAITING = 10_000
"""Entries that wait for a store that cannot be written; more are counted as lost."""


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
        self.lock = threading.Lock()
        """Held while account and waiting entries are read or changed."""
        self._store = store
        self._writing = threading.Lock()
        self._waiting: list[Entry] = []
        self.account = read_account(store, agent)
        self._stored = self.account.seq

    @property
    def waits(self) -> bool:
        """Whether there is something to write."""
        return bool(self._waiting)

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
        with self._writing:
            if decide is None and self._append():
                return None
            with ExitStack() as held:
                return self._settle(decide, held)

    def _append(self) -> bool:
        """Write what waits unless others wrote meanwhile; calls go on while it is written."""
        with self.lock:
            entries, begin = list(self._waiting), self._stored
            data = (
                encode_account(self.account) if self.account.seq // SNAPSHOT_EVERY > begin // SNAPSHOT_EVERY else None
            )
        with self._store.transaction() as transaction:
            at = head(transaction, self.agent)
            if at.seq != begin:
                return False
            if entries:
                write_entries(transaction, at, entries)
            if data is not None:
                keep_account(transaction, at, begin + len(entries), data)
        with self.lock:
            del self._waiting[: len(entries)]
            if self._stored == begin:  # else something was lost meanwhile, and the account is to be read anew
                self._stored = begin + len(entries)
        return True

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
