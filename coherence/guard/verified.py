"""What came of deriving the rollbacks of a trail again."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

MAX_TOLD = 1_000
"""Faults, and remarks, that are kept in words; all are counted."""

Derived: TypeAlias = Literal["yes", "no", "unknown", "by hand"]
"""``yes``: the rules yield it from the entries before. ``by hand``: a person has asked for it. ``unknown``: calls it
depends on are missing. ``no``: the entries before do not yield it."""


class Rollback(msgspec.Struct):
    """A patch that was ended, and whether the trail says why."""

    patch: int
    """Its number among the patches of the agent, 1 or more."""
    seq: int
    """The entry that ended it."""
    rule: str
    """``sequential``, ``classic``, ``decay``, ``not applied``, ``owner gone`` or ``by hand``."""
    why: str
    """What the trail says."""
    metric: str | None
    evidence: float | None
    limit: float | None
    calls: int
    """Calls that the patch served, counted anew; of a confirmed one those since it was confirmed."""
    failures: int
    """Those of them that failed."""
    due: int | None
    """The entry from which on the rule held; calls that other threads end meanwhile lie between."""
    derived: Derived
    why_not: str = ""
    """Why it was not derived, or is unknown; else empty."""
    restored: int | None = None
    """The entry at which the configuration was in force again; None = never seen, or it was in force all the time."""
    failed_restores: int = 0
    read_again: bool | None = None
    """Whether the configuration that was read for the next patch was the one restored; None = it was not read."""


class Remark(msgspec.Struct, frozen=True):
    """Something about one entry."""

    seq: int
    what: str


class Verified(msgspec.Struct):
    """What :func:`verify_trail` found."""

    entries: int = 0
    calls: int = 0
    first: int = 0
    """The numbers of the first and the newest entry."""
    newest: int = 0
    patches: int = 0
    confirmed: int = 0
    steps: int = 0
    """Steps of the guard that were derived."""
    rollbacks: list[Rollback] = []
    faults: list[Remark] = []
    """What is wrong."""
    fault_count: int = 0
    remarks: list[Remark] = []
    """What is not wrong, and worth to be known."""
    unknown: int = 0
    """Steps that cannot be judged."""

    @property
    def verdict(self) -> Literal["verified", "unknown", "wrong"]:
        """``verified`` = every step of the guard was derived, or made by hand."""
        return "wrong" if self.fault_count else "unknown" if self.unknown else "verified"
