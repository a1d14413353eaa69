"""The worst of each session, from its tally or else from columns alone: no content is decoded."""

from __future__ import annotations

from typing import NamedTuple

from coherence.core.decisions import KINDS
from coherence.store.faces import session_heads, tallies_after
from coherence.store.store import Store
from coherence.store.tally import BANDS as BAND_OF
from coherence.store.tally import FROM_BEST, Tally

BANDS = tuple(BAND_OF[letter] for letter in FROM_BEST)
"""From the best to the worst; unknown is none of them, and stands first."""

_BAND = "max(CASE band WHEN 'red' THEN 4 WHEN 'orange' THEN 3 WHEN 'yellow' THEN 2 WHEN 'green' THEN 1 ELSE 0 END)"
_KIND = "max(CASE kind WHEN 'block' THEN 3 WHEN 'warn' THEN 2 WHEN 'guide' THEN 1 ELSE 0 END)"
_READ = f"SELECT {_BAND}, min(coherence_index) FROM readings WHERE session_id = ?"  # noqa: S608 - only constants
_DECIDED = f"SELECT {_KIND} FROM decisions WHERE session_id = ?"  # noqa: S608 - only constants
_NEWEST = "SELECT ts FROM events WHERE session_id = ? AND seq = ?"
_REFUSED = "SELECT DISTINCT session_id FROM marks WHERE kind = 'refusal'"
_BEFORE = f"SELECT count(*), {_BAND} FROM readings WHERE session_id = ? AND seq <= ?"  # noqa: S608 - only constants


class Extreme(NamedTuple):
    """The worst of a session; the higher, the worse."""

    decision: int = 0
    """Place of the worst decision among continue, guide, warn and block."""
    band: int = 0
    """Place of the worst band in :data:`BANDS`."""
    risk: float = -1.0
    """1 less the lowest index; -1 where none is known."""
    newest: float = 0.0
    """Unix time of the newest event, seconds."""


def session_extremes(store: Store) -> dict[int, Extreme]:
    """Return the worst of each session that has an event, by the number of the session."""
    tallies = tallies_after(store, 0)
    refused = {number for (number,) in store.fetch(_REFUSED)}
    found = {}
    for head in session_heads(store, 0):
        number, tally = head.row.id, tallies.get(head.row.id)
        if head.first is None:
            continue
        if tally is not None and tally.first <= head.first and tally.through == head.last:
            found[number] = _of_tally(tally, refused=number in refused)
        else:  # it began before there were tallies
            found[number] = _of_rows(store, number, head.last)
    return found


def _of_tally(tally: Tally, *, refused: bool) -> Extreme:
    decision = max((KINDS.index(kind) for kind in KINDS if tally.kinds.get(kind)), default=0)
    risk = -1.0 if tally.lowest is None else 1.0 - tally.lowest
    return Extreme(len(KINDS) - 1 if refused else decision, FROM_BEST.index(tally.worst), risk, tally.last_ts)


def _of_rows(store: Store, number: int, last: int) -> Extreme:
    band, lowest = store.fetch(_READ, (number,))[0]
    ((kind,),) = store.fetch(_DECIDED, (number,))
    newest = store.fetch(_NEWEST, (number, last))
    return Extreme(kind or 0, band or 0, -1.0 if lowest is None else 1.0 - lowest, newest[0][0] if newest else 0.0)


def worst_until(store: Store, session_id: int, seq: int) -> str:
    """Return the worst band of a session up to an event; empty without a reading."""
    count, band = store.fetch(_BEFORE, (session_id, seq))[0]
    return BANDS[band] if count else ""
