"""The noun of grounding: one value in a text that can be looked up elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

MOST_CLAIMS = 2_000
"""Claims of one text that are looked at."""


class Claim(msgspec.Struct, frozen=True):
    """One checkable value in a text."""

    kind: str
    """``id``, ``url``, ``email``, ``path``, ``function``, ``date``, ``time``, ``amount``, ``number``, ``quote``,
    ``name``, or an own one."""
    text: str
    """As it stands there."""
    start: int
    """Where, in characters of the folded text."""
    forms: tuple[str, ...]
    """Normal forms; two mentions that share one are the same. They begin with a word of the kind and a colon."""
    also: tuple[str, ...] = ()
    """What a *source* with this value gives besides: the year of a date, the file at the end of a path."""
    value: float | None = None
    """Of a number: in its base unit."""
    grain: float = 0.0
    """Of a number: what one of its last written digit is worth."""
    unit: str = ""
    """Of an amount: its base unit, currency or ``%``; of a time of the day ``clock``."""


Extractor: TypeAlias = Callable[[str], Sequence[Claim]]
"""A function of a folded text that returns its claims in their order. Pure and quick, whatever the text.

It runs over what comes in (goals, results, memories) and over what the agent states: a claim is grounded where one of
its ``forms`` came in before, as one of ``forms`` or ``also``.
"""
