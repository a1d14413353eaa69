"""Moments as people name them: a date, a time, or how long ago."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

import click

from coherence.cli.options import Option

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?([smhdw])(?: ago)?")


def parse_moment(text: str, now: float) -> float:
    """Return the Unix time that a text names.

    Parameters
    ----------
    text : str
        An age such as ``30m``, ``2h`` or ``7d``, or a date or time in ISO 8601; in UTC where it names no zone.
    now : float
        Unix time in seconds from which an age is counted.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> parse_moment("2h", 10_000.0), parse_moment("1970-01-02", 0.0), parse_moment("1970-01-01T00:01+00:00", 0.0)
    (2800.0, 86400.0, 60.0)
    """
    age = _AGE.fullmatch(text.strip())
    if age:
        return now - float(age[1]) * _UNITS[age[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"{text!r} is no age such as 2h or 7d, and no date or time such as 2026-11-28T08:00"
        ) from error


class _Moment(click.ParamType[float]):
    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, float):
            return value
        try:
            return parse_moment(value, time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def since_option(help: str) -> Option:
    """Return the option of the moment from which on something counts."""
    more = "An age such as 2h or 7d, or a date or time (UTC unless it names a zone)."
    return click.option("--since", metavar="WHEN", type=_Moment(), help=f"{help} {more}")
