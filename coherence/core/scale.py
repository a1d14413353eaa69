"""Scales: what each sign is worth in the calibrated index, and the files that they are kept in."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import msgspec

from coherence.core.decisions import DecisionKind
from coherence.core.files import open_input
from coherence.core.readings import FrozenDict, frozen_hook


class Curve(msgspec.Struct, frozen=True):
    """Log odds by value: a line through points, level outside.

    Examples
    --------
    >>> curve = Curve((0.25, 0.75), (0.0, 2.0))
    >>> [curve.at(value) for value in (0.0, 0.5, 1.0)]
    [0.0, 1.0, 2.0]
    """

    values: tuple[float, ...]
    """Rising."""
    log_odds: tuple[float, ...]
    """Of each value; they do not fall, and begin at 0."""

    def __post_init__(self) -> None:
        values, log_odds = self.values, self.log_odds
        if len(values) < 2 or len(values) != len(log_odds):
            raise ValueError(f"a curve needs as many log odds as values, two or more, not {values} and {log_odds}")
        if any(low >= high for low, high in pairwise(values)):
            raise ValueError(f"the values of a curve must rise, not {values}")
        if log_odds[0] != 0.0 or any(low > high for low, high in pairwise(log_odds)):
            raise ValueError(f"the log odds of a curve must begin at 0 and not fall, not {log_odds}")

    def at(self, value: float) -> float:
        """Return the log odds that a value adds."""
        place = bisect_right(self.values, value)
        if place == 0:
            return self.log_odds[0]
        if place == len(self.values):
            return self.log_odds[-1]
        low, high = self.values[place - 1 : place + 1]
        first, second = self.log_odds[place - 1 : place + 1]
        return first + (second - first) * (value - low) / (high - low)

    @property
    def most(self) -> float:
        """The most that the curve adds."""
        return self.log_odds[-1]


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Curves for the signs of one embedder; made by ``make light``, or by ``coherence calibrate`` from own runs."""

    name: str
    """Version, in words: it is kept with every reading."""
    embedder: str
    """Fingerprint of the embedder that the curves of similarity belong to; empty: there are none."""
    base: float
    """Log odds of a step that shows no sign, at :data:`~coherence.sensor.light.PRIOR`."""
    curves: FrozenDict[str, Curve]
    asks: FrozenDict[str, DecisionKind] = FrozenDict()
    """Rule -> the most that its findings ask for by themselves, by what they were worth on labelled runs."""
    scatter: FrozenDict[str, float] = FrozenDict()
    """Metric -> mean distance from their mean of an agent's first readings, for embedders without a scale."""


_DECODER = msgspec.json.Decoder(Scale, dec_hook=frozen_hook)


def decode_scale(data: bytes) -> Scale:
    """Return a scale from its JSON; a ValueError says what is wrong with it."""
    return _DECODER.decode(data)


def read_scale(path: str | Path) -> Scale:
    """Return the scale of a file.

    Raises
    ------
    ValueError
        If the file cannot be read or holds no scale; the message names it.
    """
    try:
        with open_input(path) as file:
            return decode_scale(file.read())
    except OSError as error:
        reason = f"{error.strerror or error}; expected a file that `coherence calibrate` has written"
        raise ValueError(f"scale {path}: {reason}") from error
    except ValueError as error:  # msgspec's errors too
        reason = f"holds no scale: {error}; write one with `coherence calibrate`"
        raise ValueError(f"scale {path}: {reason}") from error


def scale_text(scale: Scale) -> str:
    """Return what a scale's file holds."""
    return msgspec.json.format(msgspec.json.encode(scale), indent=1).decode() + "\n"
