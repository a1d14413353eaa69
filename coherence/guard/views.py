"""Accounts of agents in this process: ahead of the store by what waits, made anew when others wrote."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from coherence.core.reentrancy import Entered
from coherence.guard.account import Account
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.patch_events import Decision
from coherence.guard.traces import (
    SNAPSHOT_EVERY,
    Entry,
    begin_trail,
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
        """True = a thread of this process takes a step for this agent."""
        self.looked_s = 0.0
        """Time at which this process last compared it with the store, on the caller's clock."""
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
        # nearly always nobody else has written, and this is all that a look costs
        newest = newest_seq(self._store, self.agent) if newest is None else newest
        if newest == self._stored or (not newest and self._stored > 0):  # gone with the file: the next write brings it
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
                with Entered(), self._store.transaction(timeout_s=wait_s) as transaction:
                    seq, count = self.insert(transaction)
                self.inserted(seq, count)
        finally:
            self.writing.release()

    def decide(
        self, clock: Callable[[], float], choose: Callable[[Account, float], Decision | None]
    ) -> Decision | None:
        """Write what waits, and a decision on the account that all processes share.

        Parameters
        ----------
        clock : callable
            Returns wall time, Unix seconds.
        choose : callable
            Takes the account and the time, returns a decision or None. It must not change the account.

        Returns
        -------
        Decision or None
            The decision, once it is written: no other process has made one since the account was read.

        Raises
        ------
        StoreError
            Nothing was written; all goes on waiting, but for the decision.
        """
        with Entered(), self.writing, ExitStack() as held:
            with self._store.transaction() as transaction:
                held.enter_context(self.lock)  # until after the commit, but calls go on while others lock the store
                seq, count = self.insert(transaction)
                at = clock()
                found = choose(self.account, at)
                if found is not None:
                    # of a copy: if the commit fails, nobody has decided anything
                    account = copied(self.account)
                    account.observe(at, found)
                    write_decision(transaction, self.agent, Entry(at, found), account)
            if found is not None:
                self.account, seq = account, seq + 1
            self.inserted(seq, count)
            return found

    def insert(self, transaction: Transaction) -> tuple[int, int]:
        """Write what waits, after what others have written; the caller holds :attr:`writing`.

        Returns the number of the newest entry then, and how many of those that waited are written.
        """
        at = head(transaction, self.agent)
        # The store has gone on in a new file: the account is all that is left of the trail.
        again = not at.id and self._stored > 0
        if again:
            pends = self.account.patching.pends
            at = begin_trail(transaction, self.agent, time.time(), after=self._stored, pending=pends)
        elif at.seq != self._stored:
            self._replace(read_account(transaction, self.agent))
        with self.lock:
            waiting = list(self._waiting)
            # by whoever writes the hundredth entry: one process does, not all
            kept = self.account.seq // SNAPSHOT_EVERY > at.seq // SNAPSHOT_EVERY
            data = encode_account(self.account) if kept or again else None
        if waiting:
            at = write_entries(transaction, at, waiting)
        if data is not None and (waiting or again):
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


MAX_HELD = 1000
"""Accounts that are held at once, of 2 to 70 kB each; those with a patch open or something to write come on top."""

MAX_BUSY = 10_000
"""Accounts that are held in any case: a store that cannot be written for so many agents loses the oldest calls."""

LOOKED_AT = 8
"""Accounts that are looked at for one to let go, whenever one is added."""

AT_ONCE = 200
"""Agents that are written in one transaction."""


class Views:
    """The views of one guard in this process.

    The view used longest ago is let go once there are too many, and read anew from the store at the agent's next call.
    A thread that still holds it goes on with it: two views of one agent keep one order, as two processes do.
    """

    def __init__(self, store: Store, troubles: ErrorCounts) -> None:
        self._store = store
        self._troubles = troubles
        self._lock = threading.RLock()
        self._held: OrderedDict[str, View] = OrderedDict()
        self._marked: dict[View, None] = {}
        self.fails = False
        """True = the store could not be written the last time."""

    def of(self, agent: str) -> View:
        """Return an agent's view, read from the store if it is not held."""
        with self._lock:
            view = self._held.get(agent)
            if view is not None:
                self._held.move_to_end(agent)
                return view
        # without the lock: it reads the store, and calls of other agents go on
        view = View(agent, self._store)
        with self._lock:
            # another thread may have been faster, and each view would take steps of its own
            view = self._held.setdefault(agent, view)
            self._let_go(LOOKED_AT)
        return view

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._store.path

    def values(self) -> list[View]:
        """Return the views that are held."""
        with self._lock:
            return list(self._held.values())

    def knows(self, agent: str) -> bool:
        """Return whether an agent's view is held: it was called, or asked about, in this process."""
        return agent in self._held

    def mark(self, view: View) -> None:
        """Note that a view has something to write; the caller holds the view's lock."""
        self._marked[view] = None

    def write(self) -> None:
        """Write what waits, of all views that were marked.

        Raises
        ------
        StoreError
            If the store cannot be written; what was not written goes on waiting.
        """
        views = list(self._marked)
        for start in range(0, len(views), AT_ONCE):
            some = views[start : start + AT_ONCE]
            try:
                write_together(self._store, some)
            except StoreError:
                self.fails = True
                raise
            self.fails = False
            for view in some:
                # calls may have come during the write
                with view.lock:
                    if not view.waits:
                        self._marked.pop(view, None)
        with self._lock:
            self._let_go(len(self._held))

    def _let_go(self, most: int) -> None:
        """Let go what is too much, after a look at ``most`` views at most; never the newest one."""
        for _ in range(min(most, len(self._held) - 1)):
            if len(self._held) <= MAX_HELD:
                return
            agent, view = next(iter(self._held.items()))
            # it would be read anew at once, or lose what waits
            if view.busy and len(self._held) <= MAX_BUSY:
                self._held.move_to_end(agent)
                continue
            del self._held[agent]
            self._marked.pop(view, None)
            if view.waits:
                self._troubles.add("store", "too many agents wait for a store that cannot be written: calls are lost")


def write_together(store: Store, views: Iterable[View]) -> None:
    """Write what waits of several views in one transaction.

    Raises
    ------
    StoreError
        Nothing was written; all goes on waiting.
    """
    views = sorted(views, key=lambda view: (view.agent, id(view)))  # one order, so that no two threads block each other
    with ExitStack() as stack:
        for view in views:
            stack.enter_context(view.writing)
        with Entered(), store.transaction() as transaction:
            found = [view.insert(transaction) for view in views]
        for view, (seq, count) in zip(views, found, strict=True):
            view.inserted(seq, count)
