"""The fate of a proposal: it goes on trial, waits for a person, or is declined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from coherence.core.validation import shown
from coherence.guard.adapter import kept_config, read_config
from coherence.guard.bounds import AUTO_APPLY, Bounds, merged
from coherence.guard.classic import Metrics
from coherence.guard.collaborators import ConfigAdapter, Notify, Strategy
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.patch_events import Decision, Policy
from coherence.guard.trigger import Override
from coherence.guard.views import View

MAX_PATCH = 65_536
"""Bytes of a patch that can wait for a person, or that a person proposes, as JSON."""


class Plan(NamedTuple):
    """Settings by which patches are made and tried."""

    strategy: Strategy | None
    adapter: ConfigAdapter | None
    notifier: Notify | None
    bounds: Bounds | None
    overrides: Mapping[str, Override]
    """Thresholds that a person set, by agent."""
    policy: Policy
    share: float
    slice: int
    returns: bool
    """True = a confirmed configuration that decays gives way to the one before it."""
    measures: Callable[[], Mapping[str, float | None]] | None


def outcome_of(proposal: object, view: View, owner: str, plan: Plan, troubles: ErrorCounts) -> Decision:
    """Return what becomes of what a strategy proposes; ``owner`` has asked it."""
    if proposal is None or proposal == {}:
        return Decision("declined", why="the strategy proposes nothing")
    if plan.bounds is None:
        return _waiting(proposal, "no bounds say what a patch may change")
    current, unknown = _current(view.agent, plan, troubles)
    # an adapter that fails now is no reason to bother a person
    if current is None and plan.adapter is not None:
        return Decision("declined", why=unknown)
    if why := _refused(proposal, current, plan.bounds):
        troubles.add("strategy", why, kind="a proposal was refused")
        return Decision("declined", why=why)
    if current is None:
        return _waiting(proposal, unknown)
    judged = plan.bounds.judge(proposal, current)
    waiting = _waiting(judged.patch, judged.waits)
    if judged.patch is None or not judged.apply or waiting.kind == "declined":
        return waiting
    return _accepted(judged.patch, current, owner, plan, view)


def outcome_of_approval(view: View, owner: str, plan: Plan, troubles: ErrorCounts) -> Decision:
    """Return what becomes of the patch that a person has approved; ``owner`` has taken it up."""
    waiting = view.account.patching.waiting
    patch = {} if waiting is None else waiting.patch
    current, why = _current(view.agent, plan, troubles)
    if current is None:
        return Decision("withheld", patch=patch, why=why, waits=True)
    if why := _refused(patch, current, plan.bounds):
        return Decision("withheld", patch=patch, why=why, waits=False)
    return _accepted(patch, current, owner, plan, view)


def refuses(patch: dict[str, Any], agent: str, plan: Plan, troubles: ErrorCounts) -> str:
    """Return why a person's patch would not go on trial as far as can be known here, or an empty text."""
    return _refused(patch, _current(agent, plan, troubles)[0], plan.bounds)


def _current(agent: str, plan: Plan, troubles: ErrorCounts) -> tuple[dict[str, Any] | None, str]:
    """Return the configuration in force; if it is not known, None and the reason."""
    if plan.adapter is None:
        return None, "there is no adapter"
    try:
        return read_config(plan.adapter, agent), ""
    except BaseException as error:
        troubles.add("adapter", error)
        return None, f"the configuration could not be read: {type(error).__name__}"


def _refused(patch: Any, current: dict[str, Any] | None, bounds: Bounds | None) -> str:
    """Return why a patch is refused, or an empty text; steps are measured once the configuration is known."""
    if bounds is None:
        return "it changes nothing" if current is not None and merged(current, patch) == current else ""
    refusals = bounds.judge(patch, current or {}).refusals
    known = [str(refusal) for refusal in refusals if current is not None or refusal.rule != "step"]
    return "; ".join(known[:5])


def checked_patch(patch: object, what: str = "patch") -> dict[str, Any]:
    """Return a patch as it is kept: without what says whether patches may be applied.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping of plain JSON values, or empty, or too large; the message begins with ``what``.
    """
    if not isinstance(patch, Mapping):
        raise TypeError(f"{what} must be a mapping, not {shown(patch)}")
    try:
        found = kept_config({key: value for key, value in patch.items() if key not in AUTO_APPLY})
    except ValueError as error:
        raise ValueError(f"{what} must be made of plain JSON values with text keys") from error
    if not found:
        raise ValueError(f"{what} must change something, and is empty")
    if len(msgspec.json.encode(found)) > MAX_PATCH:
        raise ValueError(f"{what} must be at most {MAX_PATCH:,} bytes as JSON")
    return found


def _waiting(proposal: object, why: str) -> Decision:
    """Return a proposal as it waits for a person: what would be applied, and nothing that only looks like it."""
    try:
        return Decision("proposed", patch=checked_patch(proposal, "the proposal"), why=why)
    except (TypeError, ValueError) as error:
        return Decision("declined", why=str(error))


def _accepted(patch: dict[str, Any], backup: dict[str, Any], owner: str, plan: Plan, view: View) -> Decision:
    both = getattr(plan.adapter, "serves_both", False) is True
    with view.lock:
        summary = view.account.rolling.over_newest()
    before = Metrics(summary.success_rate or 0.0, summary.latency_mean_s or 0.0, 0)
    # the classic rules compare with the calls before, and know of no others meanwhile
    share = 1.0 if plan.policy == "classic" else plan.share
    return Decision("accepted",
        owner=owner, patch=patch, backup=backup, policy=plan.policy, share=share, slice=plan.slice, both=both,
        before=before,
    )  # fmt: skip
