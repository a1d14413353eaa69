"""What a person does to patches: propose, approve, decline, roll back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from coherence.guard.account import Account
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.executor import Actor
from coherence.guard.notices import notice_of
from coherence.guard.patch_events import Decision, TrialWanted
from coherence.guard.proposals import refuses
from coherence.guard.requests import (
    checked_patch,
    checked_why,
    is_approved,
    refusal,
    wanted_approval,
    wanted_rollback,
    wanted_trial,
)
from coherence.guard.runner import Runner
from coherence.guard.view import View
from coherence.monitor.arguments import check_name

R = TypeVar("R", bound=Decision)


class ByHand:
    """What :class:`~coherence.guard.guard.Guard` lets a person do to patches."""

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
        with view.lock:
            number = view.account.patching.number + 1
            if wanted_trial(view.account, wanted, why) is None:
                return False
        if refused := refuses(wanted, view.agent, self._actor.plan, self._troubles):
            raise ValueError(f"patch: {refused}")
        asked: TrialWanted | None = self._request(view, lambda account: wanted_trial(account, wanted, why))
        if asked is None:
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
        asked = self._request(view, lambda account: wanted_rollback(account, why)) or view.account.patching.wish
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
        if self._request(view, lambda account: wanted_approval(account, why)) is None:
            return is_approved(view.account.patching)
        self._actor.carry_out(view, self._wait_s, lambda patching: not is_approved(patching))
        return True

    def decline(self, agent: str, why: str = "a person declined") -> bool:
        """Decline the patch of an agent that waits, return whether one waited; it is not proposed again soon."""
        if self._actor is None:
            return False
        view = self._view(agent)
        step = self._request(view, lambda account: refusal(account, why))
        if step is not None:
            self._actor.tell(notice_of(view.agent, view.account.patching, step))
        return step is not None

    def _request(self, view: View, request: Callable[[Account], R | None]) -> R | None:
        """Write what a person asks for, if there is something to ask for."""
        view.refresh()
        with view.lock:
            if request(view.account) is None:
                return None

        def choose(account: Account) -> tuple[float, R] | None:
            step = request(account)
            return None if step is None else (self._clock(), step)

        return view.decide(choose)

    def _view(self, agent: str) -> View:
        """Return the account of an agent, by its name as calls are recorded under it."""
        return self._runner.view(check_name("agent", agent))
