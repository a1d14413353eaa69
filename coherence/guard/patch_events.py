"""The entries of a trail: an agent's calls, and each step of a patch. An account is made from these alone."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from coherence.guard.classic import Metrics

Policy: TypeAlias = Literal["sequential", "classic"]
"""The judge of a patch on trial: :class:`~coherence.guard.verdict.Trial`, or :mod:`~coherence.guard.classic`."""

Kind: TypeAlias = Literal[
    "asked", "declined", "proposed", "trial_wanted", "approval_wanted", "approved", "withheld", "refused", "accepted",
    "serving", "not_applied", "rollback_wanted", "ending", "retrying", "restore_failed", "restored", "late", "resuming",
    "confirmed", "dropped", "decayed",
]  # fmt: skip
"""Kind of a decision.

=================== ===================================================================================================
``asked``           ``failures`` called for a patch: the ``owner`` asks the strategy
``declined``        nothing came of it: no proposal, a refused one, or something failed
``proposed``        a ``patch`` that is not applied, as there is no adapter or a person is asked for; it waits
``trial_wanted``    a person wants a ``patch`` of their own on trial, approved by that
``approval_wanted`` a person approves the patch that entry ``proposed_seq`` proposed
``approved``        the ``owner`` takes up the ``patch`` that was approved: reads the configuration, asks the bounds
``withheld``        the approved ``patch`` does not go on trial; if it ``waits``, it may be approved again
``refused``         a person declines the ``patch`` that waits
``accepted``        a ``patch`` goes on trial: ``policy``, ``share`` of calls, ``slice``, ``backup``, how it was
                    ``before``, and whether the adapter serves ``both`` configurations at once
``serving``         the patch is in force
``not_applied``     it could not be applied
``rollback_wanted`` a person wants patch ``number`` rolled back; void once it has ended
``ending``          the ``owner`` has claimed to restore the configuration before it; ``pause``: for a slice of calls,
                    or while it is held, and the trial goes on
``retrying``        the ``owner`` tries again to restore it
``restore_failed``  it could not be restored
``restored``        it is in force again
``late``            the ``owner`` did what it had claimed after the claim was taken over: ``backup`` is to be restored
``resuming``        the ``owner`` has claimed to apply the patch again: for a slice, or for good
``confirmed``       the patch stays
``dropped``         the patch is given up while it is not in force: nothing needs to be restored
``decayed``         the configuration in force has got worse; it ``returns``: the one before it is to be restored
=================== ===================================================================================================
"""


class GuardedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of the agent; ``None`` = not measured."""

    success: bool
    duration_s: float | None = None
    cost: float | None = None
    index: float | None = None
    """Coherence of the run, in [0, 1]."""
    epoch: int = -1
    """The :attr:`~coherence.guard.patches.Patching.epoch` in which it began."""
    patched: bool = False
    """True = the patch on trial served it."""
    band: str | None = None
    task: str = ""
    error: str | None = None
    """Type and text of the exception, or None."""
    arguments: Any = None
    """Plain data, or None."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of a patch: every entry of a trail but a call. See :data:`Kind` for the fields of each kind.

    Examples
    --------
    >>> Decision("restore_failed", why="disk full").kind
    'restore_failed'
    """

    kind: Kind
    owner: str = ""
    """Process that has claimed to do something outside: ask, apply, restore."""
    patch: dict[str, Any] = {}
    backup: dict[str, Any] = {}
    """The configuration before the patch."""
    why: str = ""
    failures: int = 0
    policy: Policy = "sequential"
    share: float = 1.0
    """Of calls that the patch serves while on trial, in (0, 1]."""
    slice: int = 0
    """Calls between two changes of the configuration."""
    both: bool = False
    before: Metrics = Metrics()
    """Means of the calls before it, for the classic rules."""
    number: int = 0
    """The patch's number."""
    proposed_seq: int = 0
    pause: bool = False
    waits: bool = False
    returns: bool = False
    metric: str | None = None
    evidence: float | None = None
    limit: float | None = None
    """Limit that the evidence had to reach."""


class Notice(msgspec.Struct, frozen=True):
    """One step of a patch, for a notifier."""

    agent: str
    kind: str
    """As the trail names it: ``accepted``, ``serving``, ``ending``, ``restored``, ``confirmed``, ``decayed``, …"""
    why: str
    """If the configuration was restored: the reason for the rollback."""
    patch: dict[str, Any] | None = None
    """The patch that it is about."""
