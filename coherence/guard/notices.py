"""Notices of steps: which patch each is about, and why it was taken."""

from __future__ import annotations

from coherence.guard.collaborators import Notice
from coherence.guard.patch_events import Decision
from coherence.guard.patches import Patching

_QUIET = ("asked", "declined", "resuming", "retrying", "trial_wanted", "approval_wanted", "rollback_wanted")
"""Of these nobody is notified: they come to nothing, or another entry follows."""


def notice_of(agent: str, before: Patching, step: Decision) -> Notice | None:
    """Return the notice of a step, or None: slices give none, and of restores that fail only the first does.

    Parameters
    ----------
    agent : str
        Whose patch it is.
    before : Patching
        Where the patch stood when the step was decided on.
    step : Decision
        What was decided.

    Examples
    --------
    >>> notice_of("support", Patching(ending="success fell"), Decision("restored")).why
    'success fell'
    """
    if step.kind in _QUIET or (step.kind == "ending" and step.pause):
        return None
    if (step.kind == "restore_failed" and before.attempts) or (step.kind == "restored" and before.pauses):
        return None
    if step.kind == "serving" and before.trial is not None and before.trial.applied:
        return None
    why = before.ending if step.kind == "restored" else step.why
    holder = before.standing if step.kind == "decayed" else before.holder
    patch = step.patch or (None if holder is None else holder.patch)
    return Notice(agent, step.kind, why, None if patch is None else dict(patch))
