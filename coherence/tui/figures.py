"""Figures for people: with their units, and times both relative and absolute."""

from __future__ import annotations

import time

from coherence.core.readings import span

UNKNOWN = "–"


def ago(seconds: float) -> str:
    """Return how long ago something was, in at most 5 characters.

    Examples
    --------
    >>> [ago(seconds) for seconds in (-3, 0.4, 59, 150, 7980, 200_000, 40_000_000)]
    ['now', 'now', '59 s', '2 min', '2 h', '2 d', '462 d']
    """
    for most, unit, word in ((1, 1, ""), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{int(seconds / unit)} {word}" if word else "now"
    return f"{int(seconds / 86_400)} d"


def when(ts: float, now: float) -> str:
    """Return a time of day, with the date unless it is today's, and how long ago it was."""
    at, today = time.localtime(ts), time.localtime(now)
    form = "%H:%M:%S" if at[:3] == today[:3] else "%Y-%m-%d %H:%M"
    passed = "now" if now - ts < 1 else f"{span(now - ts)} ago"
    return f"{time.strftime(form, at)} ({passed})"


def cost(usd: float | None) -> str:
    """Return an amount of money.

    Examples
    --------
    >>> [cost(usd) for usd in (0.0, 0.0042, 0.42, 12.5, 1234.4)]
    ['$0', '$0.004', '$0.42', '$12.50', '$1,234']
    """
    if usd is None:
        return UNKNOWN
    if usd == 0:
        return "$0"
    return f"${usd:.3f}" if usd < 0.01 else f"${usd:.2f}" if usd < 1000 else f"${usd:,.0f}"


def percent(share: float | None) -> str:
    """Return a share of one.

    Examples
    --------
    >>> percent(0.431)
    '43%'
    """
    return UNKNOWN if share is None else f"{share:.0%}"


def tokens(count: int) -> str:
    """Return a number of tokens in at most 5 characters; without any it is unknown how many there were.

    Examples
    --------
    >>> tokens(0) == UNKNOWN
    True
    >>> [tokens(count) for count in (999, 1200, 45_600, 3_200_000)]
    ['999', '1.2k', '46k', '3.2M']
    """
    if count < 1000:
        return f"{count}" if count else UNKNOWN
    if count < 1_000_000:
        return f"{count / 1000:.1f}k" if count < 10_000 else f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def number(value: float | None) -> str:
    """Return a value of [0, 1]."""
    return UNKNOWN if value is None else f"{value:.2f}"
