"""Repeats that are a way of working: waiting, paging, trying again after a rate limit, reading again what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple, Protocol

from coherence.detect.fingerprints import CallTrace, ResultTrace

APART_S = 5.0
"""Idle seconds between calls from which repeating them counts as polling."""


class Step(Protocol):
    """What a repeat is judged by: one call, and its result if it has come."""

    @property
    def seq(self) -> int:
        """Number of the event."""
        ...

    @property
    def tool(self) -> str:
        """The tool's name."""
        ...

    @property
    def made(self) -> CallTrace:
        """What is kept of the call."""
        ...

    @property
    def came(self) -> ResultTrace | None:
        """What is kept of the result; ``None`` = it has not come."""
        ...

    @property
    def ts(self) -> float:
        """When the call was made, in seconds."""
        ...

    @property
    def duration_s(self) -> float | None:
        """How long the call took; ``None`` = unknown."""
        ...

    @property
    def compacted(self) -> bool:
        """Whether the context was shortened between this call and the one before."""
        ...


class KnownShape(NamedTuple):
    """A way of working that repeats calls. It asks for a warning at most."""

    name: str
    advice: str
    patient: bool = False
    """Whether twice as many repeats are usual."""


WAITING = KnownShape("it waits for something", "wait longer between two calls, or do something else until then", True)
RATE_LIMIT = KnownShape("a rate limit holds it up", "wait as long as the limit lasts, or use another way", True)
SPACED = KnownShape(f"the calls are {APART_S:g} s or more apart", "ask less often, or say what is waited for")
PAGES = KnownShape("it goes through parts of one thing", "write down what was found before going on")
COMPACTED = KnownShape("the context was shortened in between", "keep in the summary what these calls found")


def known_shape(steps: Sequence[Step], period: int) -> KnownShape | None:
    """Return the way of working that the steps of a loop look like, ``None`` if they look like none.

    Parameters
    ----------
    steps : sequence of Step
        The calls of the loop, oldest first, two at least.
    period : int
        Calls in one round.
    """
    if any(step.made.waits for step in steps[-period:]):
        return WAITING
    if any(step.came is not None and step.came.rate_limited for step in steps[-period:]):
        return RATE_LIMIT
    pages = [step.made for step in steps[-period:] if step.made.page]
    if len({made.exact for made in pages}) > len({made.page for made in pages}):
        return PAGES
    idle = [after.ts - before.ts - (before.duration_s or 0.0) for before, after in pairwise(steps)]
    return SPACED if median(idle) >= APART_S else None
