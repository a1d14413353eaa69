"""Requests of a person: patches proposed, approved, declined, rolled back; here, or by a process with an adapter."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from coherence.core.validation import check_text, clean
from coherence.guard.account import Account
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.executor import Actor
from coherence.guard.patch_events import Decision
from coherence.guard.patches import Patching, notice_of
from coherence.guard.proposals import checked_patch, refuses
from coherence.guard.runner import Runner
from coherence.guard.views import View
from coherence.monitor.arguments import check_name
from coherence.store.store import Store

MAX_WHY = 1_000
"""Characters of a reason that are kept."""


Request: TypeAlias = Callable[[Account], Decision | None]
"""Returns what a person asks for, by an agent's account; None = there is nothing to ask for."""


def request(store: Store, agent: str, wanted: Request) -> tuple[Decision | None, Patching]:
    """Write a person's request into an agent's trail, for a process that has an adapter.

    Parameters
    ----------
    store : Store
        The guard's store.
    agent : str
        Agent whose patch it is about.
    wanted : callable
        Returns the request by the agent's account: :func:`wanted_rollback` or one of those below it, with its reason.

    Returns
    -------
    tuple of Decision or None, and Patching
        The request, None if there was nothing to ask for; and where the patch stands then.

    Raises
    ------
    TypeError, ValueError
        For a bad name of an agent.
    StoreError
        If the store cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/guard.db") as store:
    ...     request(store, "support", partial(wanted_rollback, why="the answers got shorter"))[0] is None
    True
    """
    view = View(check_name("agent", agent), store)
    return view.decide(time.time, lambda account, at: wanted(account)), view.account.patching


def wanted_rollback(account: Account, why: str) -> Decision | None:
    """Return the request to write, or None if there is nothing to roll back or it is asked for already."""
    patching = account.patching
    ends = patching.phase == "restoring" and not patching.pauses
    if patching.holder is None or ends or patching.wish is not None:
        return None
    return Decision("rollback_wanted", number=patching.holder.number, why=why)


def wanted_trial(account: Account, patch: dict[str, Any], why: str) -> Decision | None:
    """Return the request to write, or None if a patch is on trial, or approved, already."""
    patching = account.patching
    if patching.trial is not None or is_approved(patching):
        return None
    return Decision("trial_wanted", patch=patch, why=why)


def wanted_approval(account: Account, why: str, seq: int | None = None) -> Decision | None:
    """Return the request to write, or None if no patch waits, another one than ``seq``, or it is approved already."""
    waiting = account.patching.waiting
    if waiting is None or waiting.approved is not None or seq not in (None, waiting.seq):
        return None
    return Decision("approval_wanted", proposed_seq=waiting.seq, why=why)


def refusal(account: Account, why: str, seq: int | None = None) -> Decision | None:
    """Return the entry to write, or None if no patch waits, another one than ``seq``, or it is being taken up."""
    waiting = account.patching.waiting
    if waiting is None or account.patching.phase == "reviewing" or seq not in (None, waiting.seq):
        return None
    return Decision("refused", patch=waiting.patch, why=why)


def checked_why(why: str) -> str:
    """Return a reason as it is kept."""
    return clean(check_text("why", why), MAX_WHY)


def is_approved(patching: Patching, seq: int | None = None) -> bool:
    """Return whether the patch that waits, which is that of the entry ``seq``, is approved already."""
    waiting = patching.waiting
    return waiting is not None and waiting.approved is not None and seq in (None, waiting.seq)


class ByHand:
    """Methods of :class:`~coherence.guard.guard.Guard` by which a person changes patches."""

    _actor: Actor | None
    _runner: Runner
    _troubles: ErrorCounts
    _wait_s: float
    _clock: Callable[[], float]

    def propose(self, agent: str, patch: Mapping[str, Any], why: str = "a person proposed it") -> bool:
        """Put a change of one's own on trial; return whether it is, or will be as soon as a guard can.

        It is tried and judged like any patch, against the calls before it. The bounds are obeyed; without bounds the
        person's word is enough. That bounds or configuration ask for a person, and that the same patch was given up
        before, does not matter. It takes the place of a patch that waits. Without an adapter here it stays asked for,
        and a process that has one takes it up.

        Parameters
        ----------
        agent : str
            Whose configuration it changes.
        patch : mapping
            What changes, in plain JSON values: up to 65,536 bytes.
        why : str
            In the person's words.

        Returns
        -------
        bool
            ``False``: a patch is on trial, or approved, already; or the adapter could not apply this one, and the
            history says why.

        Raises
        ------
        TypeError, ValueError
            For a bad argument, and for a patch that the bounds refuse or that changes nothing; nothing is written.
        """
        wanted, why = checked_patch(patch), checked_why(why)
        if self._actor is None:
            return False
        view = self._view(agent)
        view.refresh()
        number = view.account.patching.number + 1
        if wanted_trial(view.account, wanted, why) is None:
            return False
        if refused := refuses(wanted, view.agent, self._actor.plan, self._troubles):
            raise ValueError(f"patch: {refused}")
        if self._asked(view, partial(wanted_trial, patch=wanted, why=why)) is None:
            return False
        self._actor.carry_out(view, self._wait_s, lambda patching: not is_approved(patching))
        with view.lock:
            patching = view.account.patching
            return patching.holds(number) or is_approved(patching)

    def rollback(self, agent: str, why: str = "a person asked") -> bool:
        """Restore the configuration before an agent's patch, on trial or confirmed; return whether that was done.

        If it cannot be done at once (there is no adapter here, or another process is applying the patch), it stays
        asked for, and a process with an adapter does it; this method waits for that up to ``wait_s`` seconds if there
        is an adapter here.
        """
        if self._actor is None:
            return False
        view = self._view(agent)
        asked = self._asked(view, partial(wanted_rollback, why=checked_why(why))) or view.account.patching.wish
        if asked is None:
            return False
        number = asked.number
        return self._actor.carry_out(view, self._wait_s, lambda patching: not patching.holds(number))

    def approve(self, agent: str, why: str = "a person approved") -> bool:
        """Approve the patch of an agent that waits; return whether one waited.

        A process with an adapter, this one at once, reads the configuration, judges the patch by the bounds again,
        and puts it on trial. Without bounds the approval is enough.
        """
        if self._actor is None:
            return False
        view = self._view(agent)
        if self._asked(view, partial(wanted_approval, why=checked_why(why))) is None:
            return is_approved(view.account.patching)
        self._actor.carry_out(view, self._wait_s, lambda patching: not is_approved(patching))
        return True

    def decline(self, agent: str, why: str = "a person declined") -> bool:
        """Decline the patch of an agent that waits, return whether one waited; it is not proposed again soon."""
        if self._actor is None:
            return False
        view = self._view(agent)
        step = self._asked(view, partial(refusal, why=checked_why(why)))
        if step is not None:
            self._actor.notify(notice_of(view.agent, view.account.patching, step))
        return step is not None

    def _asked(self, view: View, wanted: Request) -> Decision | None:
        """Write a person's request, unless there is nothing to ask for."""
        return view.decide(self._clock, lambda account, at: wanted(account))

    def _view(self, agent: str) -> View:
        """Return the account of an agent, by its name as calls are recorded under it."""
        return self._runner.view(check_name("agent", agent))
