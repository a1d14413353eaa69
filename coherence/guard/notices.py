"""What a notifier is told of a step: which patch it is about, and why it was taken."""

from __future__ import annotations

from coherence.guard.collaborators import Notice
from coherence.guard.patch_events import (
    ApprovalWanted,
    Asked,
    Decayed,
    Decision,
    Declined,
    Ending,
    Restored,
    RestoreFailed,
    Resuming,
    Retrying,
    RollbackWanted,
    Serving,
    TrialWanted,
    kind_of,
)
from coherence.guard.patches import Patching

_QUIET = (Asked, Declined, Resuming, Retrying, TrialWanted, ApprovalWanted, RollbackWanted)
"""Of these nobody is told: they come to nothing, or another entry follows."""


def notice_of(agent: str, before: Patching, step: Decision) -> Notice | None:
    """Return what is told of a step, or None: slices are not told, and of restores that fail only the first.

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
    >>> notice_of("support", Patching(ending="success fell"), Restored()).why
    'success fell'
    """
    if isinstance(step, _QUIET) or (isinstance(step, Ending) and step.pause):
        return None
    if (isinstance(step, RestoreFailed) and before.attempts) or (isinstance(step, Restored) and before.pauses):
        return None
    if isinstance(step, Serving) and before.trial is not None and before.trial.applied:
        return None
    why = before.ending if isinstance(step, Restored) else getattr(step, "why", "")
    holder = before.standing if isinstance(step, Decayed) else before.holder
    patch = getattr(step, "patch", None if holder is None else holder.patch)
    return Notice(agent, kind_of(step), why, None if patch is None else dict(patch))
