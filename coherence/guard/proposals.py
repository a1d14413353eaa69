"""The fate of a proposal: it goes on trial, waits for a person, or is declined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from coherence.guard.adapter import kept_config, read_config
from coherence.guard.bounds import AUTO_APPLY, Bounds, Judged, merged
from coherence.guard.classic import Metrics
from coherence.guard.collaborators import ConfigAdapter, Notify, Strategy
from coherence.guard.error_counts import ErrorCounts
from coherence.guard.frequency import AdaptiveThresholds
from coherence.guard.patch_events import Decision, Policy
from coherence.guard.view import View

MAX_PATCH = 65_536
"""Bytes of a patch that can wait for a person, or that a person proposes, as JSON."""


class Plan(NamedTuple):
    """Settings by which patches are made and tried."""

    strategy: Strategy | None
    adapter: ConfigAdapter | None
    notifier: Notify | None
    bounds: Bounds | None
    thresholds: AdaptiveThresholds
    policy: Policy
    share: float
    slice: int
    returns: bool
    """Whether a confirmed configuration that decays gives way to the one before it."""
    measures: Callable[[], Mapping[str, float | None]] | None


def outcome_of(proposal: object, view: View, owner: str, plan: Plan, troubles: ErrorCounts) -> Decision:
    """Return what becomes of what a strategy proposes; ``owner`` has asked it."""
    if proposal is None or proposal == {}:
        return Decision("declined", why="the strategy proposes nothing")
    if plan.bounds is None:
        return _waiting(proposal, "no bounds say what a patch may change")
    if plan.adapter is None:
        judged = plan.bounds.judge(proposal, {})
        if any(refusal.rule != "step" for refusal in judged.refusals):  # a step is measured once it is approved
            return _refused(_reasons(judged), troubles)
        return _waiting(proposal, "there is no adapter")
    try:
        backup = read_config(plan.adapter, view.agent)
    except BaseException as error:
        troubles.add("adapter", error)
        return Decision("declined", why=f"the configuration could not be read: {type(error).__name__}")
    judged = plan.bounds.judge(proposal, backup)
    if judged.patch is None:
        return _refused(_reasons(judged), troubles)
    waiting = _waiting(judged.patch, judged.waits)
    if not judged.apply or waiting.kind == "declined":
        return waiting
    return _accepted(judged.patch, backup, owner, plan, view)


def outcome_of_approval(view: View, owner: str, plan: Plan, troubles: ErrorCounts) -> Decision:
    """Return what becomes of the patch that a person has approved; ``owner`` has taken it up."""
    waiting = view.account.patching.waiting
    patch = {} if waiting is None else waiting.patch
    if plan.adapter is None:
        return Decision("withheld", patch=patch, why="there is no adapter", waits=True)
    try:
        backup = read_config(plan.adapter, view.agent)
    except BaseException as error:
        troubles.add("adapter", error)
        why = f"the configuration could not be read: {type(error).__name__}"
        return Decision("withheld", patch=patch, why=why, waits=True)
    if plan.bounds is not None:
        judged = plan.bounds.judge(patch, backup)
        if judged.patch is None:
            return Decision("withheld", patch=patch, why=_reasons(judged), waits=False)
        patch = judged.patch
    elif merged(backup, patch) == backup:
        return Decision("withheld", patch=patch, why="it changes nothing", waits=False)
    return _accepted(patch, backup, owner, plan, view)


def _reasons(judged: Judged) -> str:
    return "; ".join(str(refusal) for refusal in judged.refusals[:5])


def _refused(why: str, troubles: ErrorCounts) -> Decision:
    """Decline a proposal that its strategy should not have made, and say so."""
    troubles.add("strategy", why, kind="a proposal was refused")
    return Decision("declined", why=why)


def refuses(patch: dict[str, Any], agent: str, plan: Plan, troubles: ErrorCounts) -> str:
    """Return why a person's patch would not go on trial as far as can be known here, or an empty text."""
    current: dict[str, Any] | None = None
    if plan.adapter is not None:
        try:
            current = kept_config(plan.adapter.get_config(agent_id=agent))
        except BaseException as error:
            troubles.add("adapter", error)
    if plan.bounds is not None:
        found = plan.bounds.judge(patch, current or {}).refusals
        return "; ".join(str(refusal) for refusal in found if current is not None or refusal.rule != "step")
    return "it changes nothing" if current is not None and merged(current, patch) == current else ""


def _waiting(proposal: object, why: str) -> Decision:
    """Return a proposal as it waits for a person: what would be applied, and nothing that only looks like it."""
    try:
        patch = kept_config(proposal)
    except ValueError:
        return Decision("declined", why="the proposal is not a dict of plain JSON values")
    patch = {key: value for key, value in patch.items() if key not in AUTO_APPLY}
    if not patch:
        return Decision("declined", why="the strategy proposes nothing")
    if len(msgspec.json.encode(patch)) > MAX_PATCH:
        return Decision("declined", why=f"the proposal is larger than {MAX_PATCH:,} bytes")
    return Decision("proposed", patch=patch, why=why)


def _accepted(patch: dict[str, Any], backup: dict[str, Any], owner: str, plan: Plan, view: View) -> Decision:
    both = getattr(plan.adapter, "serves_both", False) is True
    with view.lock:
        summary = view.account.rolling.over_newest()
    before = Metrics(summary.success_rate or 0.0, summary.latency_mean_s or 0.0, 0)
    share = 1.0 if plan.policy == "classic" else plan.share
    return Decision("accepted",
        owner=owner, patch=patch, backup=backup, policy=plan.policy, share=share, slice=plan.slice, both=both,
        before=before,
    )  # fmt: skip
