"""Rows of the overview: made of what a session comes to, chosen and ordered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from coherence.core.decisions import KINDS
from coherence.store.rows import SessionRow
from coherence.store.tally import BANDS, FROM_BEST, Tally
from coherence.views.shapes import SessionLine

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
        cause=words[1],
        decision=tally.decision,
        strip=tally.strip,
        spark=tuple(tally.spark),
        tokens=tally.tokens,
        cost_usd=tally.cost_usd,
        context=context,
        label=label,
        rules=tuple(sorted(tally.rules, key=lambda rule: (-tally.rules[rule], rule))),
        live=tally.events > 0 and not tally.ended and time.time() - LIVE_S <= tally.last_ts,
    )


ORDERS: dict[str, Callable[[SessionRow, Tally], tuple[object, ...]]] = {
    # how it stands now comes before how it stood, then the lower index, then the newer
    "worst": lambda row, tally: (
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
