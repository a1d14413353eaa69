"""Sixty-four states: six lines that are yang or yin, and the lines that are about to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from coherence.core.validation import check_number
from coherence.guard.router.lines import LINES, LineName

YANG = 0.60
"""Score from which a line is yang."""

LOW, HIGH = 0.45, 0.75
"""Below the one a yang line is taken to fall and a yin line is too weak to stay; from the other on a yin line rises.
Both lie 0.15 from :data:`YANG`, so that noise around it moves nothing."""

Direction: TypeAlias = Literal["rising", "falling"]
"""Where a moving line goes: from yin to yang, or from yang to yin."""

NAMES = {
    "111111": "qian",
    "000000": "kun",
    "100100": "zhen",
    "010010": "kan",
    "000001": "bo",
    "100000": "fu",
    "101010": "jiji",
    "010101": "weiji",
}
"""The states that have a name; the other 56 are called ``mixed``."""


class Line(msgspec.Struct, frozen=True):
    """One line of a state."""

    name: LineName
    score: float | None
    """In [0, 1]; ``None`` = unknown."""
    trend: float | None
    """How the score changed from the window before, in [-1, 1]; ``None`` = unknown."""
    yang: bool
    """Whether it is strong. An unknown line counts as yang: what is not measured is no reason to act."""
    moving: Direction | None

    @property
    def cautious(self) -> bool:
        """Whether its rule applies: it is yin, rising or not, or it is falling."""
        return not self.yang or self.moving == "falling"


class State(msgspec.Struct, frozen=True):
    """Where an agent is, and where it is going."""

    lines: tuple[Line, ...]

    @property
    def code(self) -> str:
        """Six bits, the first line first; 1 = yang."""
        return "".join(str(int(line.yang)) for line in self.lines)

    @property
    def name(self) -> str:
        """The state's name, or ``mixed``."""
        return NAMES.get(self.code, "mixed")

    @property
    def moving(self) -> tuple[int, ...]:
        """Numbers of the moving lines, from 1 to 6."""
        return tuple(number for number, line in enumerate(self.lines, 1) if line.moving)

    @property
    def changed(self) -> str:
        """The code that the moving lines lead to."""
        return "".join(str(int(line.yang != bool(line.moving))) for line in self.lines)

    @property
    def known(self) -> bool:
        """Whether anything was measured at all."""
        return any(line.score is not None for line in self.lines)


def make_state(scores: Sequence[float | None], trends: Sequence[float | None] | None = None) -> State:
    """Return the state of six scores.

    A line is yang from 0.60 on. What moves is the line that will have another bit soon. The trend is carried on for one
    window: a yin line whose forecast is 0.75 or more is rising, a yang line whose forecast is below 0.45 is falling.
    A yin line below 0.45 moves whatever its trend: it is too weak to stay, and the rule that acts on it is there to
    raise it. Nothing is kept between two calls.

    Parameters
    ----------
    scores : sequence of float or None
        One a line, each in [0, 1].
    trends : sequence of float or None, optional
        One a line, each in [-1, 1].

    Raises
    ------
    ValueError
        For other than six, or values out of range.

    Examples
    --------
    >>> state = make_state([0.2, 0.7, 0.7, 0.5, 0.9, None], [None, -0.3, -0.1, 0.3, None, None])
    >>> state.code, state.moving, state.changed
    ('011011', (1, 2, 4), '101111')
    """
    trends = [None] * len(LINES) if trends is None else trends
    for field, values, least in (("scores", scores, 0.0), ("trends", trends, -1.0)):
        if len(values) != len(LINES):
            raise ValueError(f"{field} must be one a line, {len(LINES)}, not {len(values)}")
        for value in values:
            if value is not None:
                check_number(field, value, least=least, most=1.0)
    return State(tuple(_line(*line) for line in zip(LINES, scores, trends, strict=True)))


def _line(name: LineName, score: float | None, trend: float | None) -> Line:
    if score is None:
        return Line(name, None, trend, yang=True, moving=None)
    forecast = round(score + (trend or 0.0), 9)
    yang = score >= YANG
    if yang:
        moving: Direction | None = "falling" if forecast < LOW else None
    else:
        moving = "rising" if score < LOW or forecast >= HIGH else None
    return Line(name, score, trend, yang, moving)
