"""What happens to an agent under guard: its calls, and each step of a patch. An account is made from these alone."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard.classic import Metrics

Policy: TypeAlias = Literal["sequential", "classic"]
"""How a patch on trial is judged: :class:`~coherence.guard.verdict.Trial`, or :mod:`~coherence.guard.classic`."""


class Happening(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """One entry of a trail."""


class GuardedCall(Happening, frozen=True, omit_defaults=True, tag="call"):
    """A call of the agent; ``None`` = not measured."""

    success: bool
    duration_s: float | None = None
    cost: float | None = None
    index: float | None = None
    """Coherence of the run, in [0, 1]."""
    epoch: int = -1
    """What :attr:`~coherence.guard.patches.Patching.epoch` was when it began."""
    patched: bool = False
    """Whether the patch on trial served it."""
    band: str | None = None
    task: str = ""
    error: str | None = None
    """Type and text of the exception, or None."""
    arguments: Any = None
    """Plain data, or None."""


class Asked(Happening, frozen=True, kw_only=True, tag="asked"):
    """Failures called for a patch: this process asks the strategy."""

    owner: str
    failures: int
    """How many called for it."""


class Declined(Happening, frozen=True, kw_only=True, tag="declined"):
    """Nothing came of it: no proposal, a refused one, or something failed."""

    why: str


class Proposed(Happening, frozen=True, kw_only=True, tag="proposed"):
    """A patch that is not applied: there is no adapter, or a person is asked for. It waits."""

    patch: dict[str, Any]
    why: str


class TrialWanted(Happening, frozen=True, kw_only=True, tag="trial_wanted"):
    """A person wants a patch of their own on trial, approved by that; a process with an adapter is to take it up."""

    patch: dict[str, Any]
    why: str


class ApprovalWanted(Happening, frozen=True, kw_only=True, tag="approval_wanted"):
    """A person approves the patch that waits; a process with an adapter is to take it up."""

    proposed_seq: int
    """The entry that proposed it."""
    why: str


class Approved(Happening, frozen=True, kw_only=True, tag="approved"):
    """The owner takes up the patch that a person has approved: reads the configuration, and judges it by the bounds."""

    owner: str
    patch: dict[str, Any]
    why: str


class Withheld(Happening, frozen=True, kw_only=True, tag="withheld"):
    """A patch that a person has approved does not go on trial."""

    patch: dict[str, Any]
    why: str
    waits: bool
    """Whether it goes on waiting, to be approved again; else it is refused."""


class Refused(Happening, frozen=True, kw_only=True, tag="refused"):
    """A person declines the patch that waits."""

    patch: dict[str, Any]
    why: str


class Accepted(Happening, frozen=True, kw_only=True, tag="accepted"):
    """A patch goes on trial; its first application is claimed by the owner."""

    owner: str
    patch: dict[str, Any]
    backup: dict[str, Any]
    """The configuration before it."""
    policy: Policy
    share: float
    """Of calls that it serves while on trial."""
    slice: int
    """Calls between two changes of the configuration."""
    both: bool
    """Whether the adapter serves both configurations at once, and nothing needs to be switched."""
    before: Metrics
    """What calls were like, for the classic rules."""


class Serving(Happening, frozen=True, kw_only=True, tag="serving"):
    """The patch is in force."""


class NotApplied(Happening, frozen=True, kw_only=True, tag="not_applied"):
    """The patch could not be applied."""

    why: str


class RollbackWanted(Happening, frozen=True, kw_only=True, tag="rollback_wanted"):
    """A person wants a patch rolled back; a process with an adapter is to do it. Void once the patch has ended."""

    number: int
    """The patch's number."""
    why: str


class Ending(Happening, frozen=True, kw_only=True, tag="ending"):
    """The configuration before the patch is to be restored; the owner has claimed it."""

    owner: str
    pause: bool = False
    """For a slice of calls, or while the patch is held; the trial goes on."""
    why: str
    metric: str | None = None
    evidence: float | None = None
    limit: float | None = None


class Retrying(Happening, frozen=True, kw_only=True, tag="retrying"):
    """A restore that failed, or whose process has gone, is tried again."""

    owner: str


class RestoreFailed(Happening, frozen=True, kw_only=True, tag="restore_failed"):
    """The configuration could not be restored."""

    why: str


class Restored(Happening, frozen=True, kw_only=True, tag="restored"):
    """The configuration before the patch is in force again."""


class Late(Happening, frozen=True, kw_only=True, tag="late"):
    """A process did what it had claimed after the claim was taken over: the configuration is not what it should be."""

    owner: str
    backup: dict[str, Any]
    """The configuration to restore."""
    why: str


class Resuming(Happening, frozen=True, kw_only=True, tag="resuming"):
    """The patch is to be applied again: for a slice, or for good."""

    owner: str


class Confirmed(Happening, frozen=True, kw_only=True, tag="confirmed"):
    """The patch stays."""

    why: str
    evidence: float | None = None
    limit: float | None = None


class Dropped(Happening, frozen=True, kw_only=True, tag="dropped"):
    """The patch is given up while it is not in force: nothing needs to be restored."""

    why: str
    metric: str | None = None
    evidence: float | None = None
    limit: float | None = None


class Decayed(Happening, frozen=True, kw_only=True, tag="decayed"):
    """The configuration in force has got worse."""

    metric: str
    why: str
    returns: bool
    """Whether the configuration before it is to be restored: only for a confirmed patch."""


Decision: TypeAlias = (
    Asked | Declined | Proposed | TrialWanted | ApprovalWanted | Approved | Withheld | Refused | Accepted | Serving
    | NotApplied | RollbackWanted | Ending | Retrying | RestoreFailed | Restored | Late | Resuming | Confirmed
    | Dropped | Decayed
)  # fmt: skip
"""Every entry but a call."""


def kind_of(decision: Decision) -> str:
    """Return a decision's kind, as the trail names it.

    Examples
    --------
    >>> kind_of(RestoreFailed(why="disk full"))
    'restore_failed'
    """
    return str(decision.__struct_config__.tag)
