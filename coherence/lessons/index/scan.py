"""Finding the nearest rows: all cosines while there are few, an exact scan, or a scan of codes before exact cosines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coherence.lessons.index.base import Cosines, Found, HalfRows, Ids
from coherence.lessons.index.kernels import nearest_codes, nearest_rows, sign_codes
from coherence.lessons.index.rows import IndexPart, select

SPARE = 16
"""So many more than asked for are fetched: the scans round in another order than the final cosines do."""

CANDIDATES = 1_000
"""At least so many of the nearest codes are compared exactly."""

CANDIDATES_EACH = 20
"""And at least so many for each vector that is asked for."""

WORTH_CODES = 8
"""Codes are scanned only where they leave out at least all but one in so many rows."""


WORTH_CHOOSING = 4
"""More cosines than so many times those that are wanted are not all sorted."""


class ScanView(NamedTuple):
    """What one search sees; adding to the index does not change it."""

    ids: Ids
    """``(n,)``, of every row."""
    alive: npt.NDArray[np.bool_]
    """``(n,)``: not removed."""
    live: int
    """How many are not removed."""
    parts: tuple[IndexPart, ...]
    """The rows."""
    wide: npt.NDArray[np.float32] | None
    """All rows as float32, while there are few."""
    codes: npt.NDArray[np.uint8] | None
    """Sign codes of all rows, once there are many."""


Query = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]


def search(view: ScanView, query: Query, k: int) -> Found:
    """Return the ids and cosines of the ``k`` nearest rows that are not removed, best first, equal ones by id.

    Exact without codes; with codes, exact among the candidates that they give.
    """
    if view.wide is not None:
        cosines = np.vecdot(view.wide, query)
        places = np.flatnonzero(view.alive) if view.live < len(view.ids) else np.arange(len(view.ids))
        if len(places) < len(cosines):
            cosines = cosines[places]
    else:
        places = _nearest_alive(view, query, min(k, view.live))
        cosines = np.vecdot(select(view.parts, places, query.size).astype(np.float32), query)
    cosines = cosines.clip(-1.0, 1.0)
    if k * WORTH_CHOOSING < len(cosines):
        enough = cosines >= np.partition(cosines, -k)[-k]
        places, cosines = places[enough], cosines[enough]
    ids = view.ids[places]
    order = np.lexsort((ids, -cosines))[:k]
    return ids[order], cosines[order]


def _nearest_alive(view: ScanView, query: Query, k: int) -> Places:
    """Return the places of the ``k`` nearest rows, or some more, however many removed ones are nearer."""
    total = len(view.ids)
    fetch = min(k + SPARE, total)
    while True:
        candidates = max(CANDIDATES, CANDIDATES_EACH * fetch)
        if view.codes is None or candidates * WORTH_CODES > total:
            places = _by_rows(view.parts, query, fetch)
        else:
            places = _by_codes(view, query, candidates, fetch)
        found = places[view.alive[places]]
        if len(found) >= k or fetch == total:
            return found
        fetch = min(4 * fetch, total)


def _by_rows(parts: tuple[IndexPart, ...], query: Query, k: int) -> Places:
    """Scan all rows."""
    each = [_nearest(rows, start, query, k) for start, rows in parts]
    places = np.concatenate([places for places, _ in each])
    if len(each) == 1:
        return places
    products = np.concatenate([products for _, products in each])
    return places[np.argsort(-products, kind="stable")[:k]]


def _by_codes(view: ScanView, query: Query, candidates: int, k: int) -> Places:
    """Scan the codes, then the rows of the nearest ones."""
    assert view.codes is not None
    near = np.sort(nearest_codes(view.codes, sign_codes(query), candidates))  # in order: neighbours share a page
    places, _ = _nearest(select(view.parts, near, query.size), 0, query, k)
    return near[places]


def _nearest(rows: HalfRows, start: int, query: Query, k: int) -> tuple[Places, Cosines]:
    places, products = nearest_rows(rows, query, min(k, len(rows)))
    return places + start, products
