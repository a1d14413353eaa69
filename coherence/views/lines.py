"""Rows of the overview: made of what a session comes to, chosen and ordered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from coherence.core.decisions import KINDS
from coherence.core.readings import number_of
from coherence.store.rows import SessionRow
from coherence.store.tally import BANDS, FROM_BEST, Tally
from coherence.views.shapes import SessionLine

OUTCOMES = {True: "succeeded", False: "failed", None: "ended"}
"""Success of a task that is over -> its outcome in a word."""

MISSED = 10
"""Measurements in a row without which nothing can be said of a session."""

LIVE_S = 60.0
"""Seconds after its newest event for which a session counts as live."""


def line_of(
    row: SessionRow, tally: Tally, *, words: tuple[str, str], label: str | None, window: int | None
) -> SessionLine:
    """Return the row of a session.

    Parameters
    ----------
    row : SessionRow
        The session.
    tally : Tally
        What it comes to.
    words : (str, str)
        Its goal, and the cause of its light.
    label : {"good", "bad"} or None
        Its label.
    window : int or None
        Size of its context window in tokens.
    """
    context = None if window is None or tally.context is None else min(tally.context / window, 1.0)
    return SessionLine(
        agent=row.agent,
        session=row.session,
        parent=row.parent,
        source=row.source,
        started=row.started,
        last_ts=tally.last_ts if tally.events else row.started,
        steps=tally.steps,
        events=tally.events,
        goal=words[0],
        band=BANDS[tally.band],
        worst=BANDS[tally.worst],
        index=tally.index,
        pressure=tally.pressure,
        cause=words[1] or missed_text(tally) or _refused_text(tally),
        decision=tally.decision,
        strip=tally.strip,
        spark=tuple(tally.spark),
        tokens=tally.tokens,
        cost_usd=tally.cost_usd,
        context=context,
        label=label,
        rules=tuple(sorted(tally.rules, key=lambda rule: (-tally.rules[rule], rule))),
        refused=tally.refused,
        outcome=OUTCOMES[tally.success] if tally.ended else "",
        live=is_live(tally),
    )


def is_live(tally: Tally) -> bool:
    """Tell whether a session goes on: its newest event is recent, and its task has no outcome."""
    return tally.events > 0 and not tally.ended and time.time() - LIVE_S <= tally.last_ts


STATES: dict[str, Callable[[Tally], bool]] = {
    "running": is_live,
    "open": lambda tally: not tally.ended,
    "succeeded": lambda tally: tally.ended > 0 and tally.success is True,
    "failed": lambda tally: tally.ended > 0 and tally.success is False,
}
"""State that is asked for -> whether a session is in it."""


def missed_text(tally: Tally) -> str:
    """Return that steps of a session are not measured, if none of so many in a row was; else nothing."""
    if tally.missed < MISSED:
        return ""
    return f"not measured: the newest {tally.missed:,} measurements failed, or came too late (see its faults)"


def _refused_text(tally: Tally) -> str:
    return f"{number_of(tally.refused, 'call')} refused; otherwise on course" if tally.refused else ""


def _in_trouble(tally: Tally) -> bool:
    return tally.decision in KINDS[2:] or tally.band in "or" or tally.missed >= MISSED


ORDERS: dict[str, Callable[[SessionRow, Tally], tuple[object, ...]]] = {
    # how it stands now comes before how it stood, then the lower index, then the newer
    "worst": lambda row, tally: (
        # of those in trouble, the ones that can still be helped come first
        (2 if tally.ended == 0 else 1) * -_in_trouble(tally),
        -(tally.refused > 0) if not _in_trouble(tally) else 0,
        -KINDS.index(tally.decision) if tally.decision in KINDS[2:] else 0,
        -FROM_BEST.index(tally.band),
        -FROM_BEST.index(tally.worst),
        1.0 if tally.index is None else tally.index,
        -tally.last_ts,
    ),
    "newest": lambda row, tally: (-(tally.last_ts or row.started), -row.id),
    "cost": lambda row, tally: (-(tally.cost_usd or 0.0), -tally.tokens, -row.id),
    "steps": lambda row, tally: (-tally.steps, -row.id),
    "agent": lambda row, tally: (row.agent, -row.id),
}
"""Order -> key of a session in it."""


def ordered(found: Iterable[tuple[SessionRow, Tally]], sort: str) -> list[tuple[SessionRow, Tally]]:
    """Return sessions in an order.

    Raises
    ------
    ValueError
        There is no such order.
    """
    key = ORDERS.get(sort)
    if key is None:
        raise ValueError(f"sort must be one of {', '.join(ORDERS)}, not {sort!r}")
    return sorted(found, key=lambda each: key(*each))
