"""Lessons that may answer a question: those of equal signature, those that name the same, the nearest in meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from coherence.core.vectors import Half, cosine
from coherence.lessons.names import ErrorNames, digest, keys_of, number, shared_names, told_names
from coherence.lessons.normal import ErrorShape
from coherence.lessons.records import Hit
from coherence.lessons.search import Searching
from coherence.lessons.table import AMONG, LessonState, json_ids, read_lessons
from coherence.store.store import Store

SAME = 48
"""Lessons of equal signature and equal names that are looked at, the best first."""

SHARED, NEAR = 64, 16
"""Lessons that are looked at for one shared name, and among those of equal signature; of a name that so many share
nothing follows. As in the statements below."""

SIBLINGS = 32
"""Lessons of equal signature with other names that are looked at."""

LOOKED_UP = 24
"""Names of a question by which lessons are looked up."""

NAMED = 16
"""Lessons that share names with the question, the most first."""

NEAREST = 60
"""Lessons that the index is asked for; for a description twice as many."""

UNKNOWN = 0.4
"""Stands for the cosine of a lesson that is not among the nearest."""

MAX_COMPARED = 20
"""Candidates that are compared word by word."""

BY_NAME = " UNION ALL ".join(
    ["SELECT * FROM (SELECT value, lesson_id, signature FROM lesson_slots WHERE value = ? LIMIT 64)"] * LOOKED_UP
)
BY_NAME_AND_SIGNATURE = " UNION ALL ".join(
    ["SELECT * FROM (SELECT value, lesson_id, signature FROM lesson_slots WHERE value = ? AND signature = ? LIMIT 16)"]
    * LOOKED_UP
)

LISTED = f"SELECT id, signature, names, pattern FROM lessons WHERE {AMONG.format('id')} AND retired = 0"  # noqa: S608


def equal_hits(store: Store, asked: ErrorShape, names: ErrorNames) -> list[Hit]:
    """Return lessons of equal signature and equal names, without embedding anything; none if there are no such.

    Lessons of the same signature that share a name come after them.
    """
    signature, keys = number(asked.signature), keys_of(asked)
    same = _ids(
        store,
        "SELECT id FROM lessons WHERE signature = ? AND slots = ? AND retired = 0 "
        "ORDER BY helped - failed DESC, used DESC LIMIT ?",
        (signature, digest(keys), SAME),
    )
    if not same or (not keys and names.marked):  # what tells it from its siblings stands beside the headline
        return []
    hits = _hits(store, asked, names, same)
    return hits if any(not hit.lacking for hit in hits) else []


def all_hits(
    store: Store, searching: Searching | None, asked: ErrorShape, names: ErrorNames, state: LessonState | None = None
) -> list[Hit]:
    """Return the lessons that are most likely to answer, at most 20."""
    signature = number(asked.signature)
    found: dict[int, None] = {}
    if not asked.prose:
        sql = "SELECT id FROM lessons WHERE signature = ? AND retired = 0 LIMIT ?"
        found.update(dict.fromkeys(_ids(store, sql, (signature, SIBLINGS))))
    if names.weights:
        found.update(dict.fromkeys(_named(store, asked, names)))
    vector = searching.embed(asked.text) if searching is not None and searching.follow(state) else None
    cosines: dict[int, float] = {}
    if searching is not None and vector is not None:
        cosines = dict(searching.nearest(vector, 2 * NEAREST if asked.prose else NEAREST))
        found.update(dict.fromkeys(cosines))
    return _hits(store, asked, names, list(found), vector, cosines)


def _named(store: Store, asked: ErrorShape, names: ErrorNames) -> list[int]:
    """Return lessons that name in headline or fix what the question names, those with the most and the rarest first."""
    values = {digest([key]): 1.0 for key in keys_of(asked)[:8]}
    values.update(sorted(names.weights.items(), key=lambda each: -each[1])[: LOOKED_UP - len(values)])
    # Always as many parts, with values that no name has: SQLite keeps a statement only if its text is the same.
    wanted = [*values, *range(-1, len(values) - LOOKED_UP - 1, -1)]
    rows = store.fetch(BY_NAME, tuple(wanted))
    counts = Counter(value for value, _, _ in rows)
    near: list[tuple[int, int, int]] = []
    if not asked.prose:
        signature = number(asked.signature)
        near = [row for row in rows if row[2] == signature]
        if max(counts.values(), default=0) >= SHARED:  # not all of them were read
            near = store.fetch(BY_NAME_AND_SIGNATURE, tuple(x for value in wanted for x in (value, signature)))
    shared: dict[int, float] = {}
    nearby = Counter(value for value, _, _ in near)
    for found, having, most in ((rows, counts, SHARED), (near, nearby, NEAR)):
        for value, id, _ in found:
            if having[value] < most:
                shared[id] = shared.get(id, 0.0) + values[value] / having[value]  # what few lessons name says more
    return sorted(shared, key=lambda id: -shared[id])[:NAMED]


def _hits(
    store: Store,
    asked: ErrorShape,
    names: ErrorNames,
    ids: Sequence[int],
    vector: Half | None = None,
    cosines: dict[int, float] | None = None,
) -> list[Hit]:
    """Return the most promising of some lessons, by meaning, names and signature together."""
    cosines = cosines or {}
    found = {row[0]: row for row in store.fetch(LISTED, (json_ids(ids),))}
    listed = [found[id] for id in ids if id in found]
    signature = None if asked.prose else number(asked.signature)
    equal = {id: theirs == signature for id, theirs, _, _ in listed}
    shared = shared_names(
        names,
        [told_names(kept) for _, _, kept, _ in listed],
        [pattern.casefold() or theirs for _, theirs, _, pattern in listed],
        list(equal.values()),
    )
    ranked = [
        (-(cosines.get(id, UNKNOWN) + 0.5 * both.named + 0.3 * equal[id]), id, both)
        for id, both in zip(equal, shared, strict=True)
    ]
    ranked.sort()
    chosen = {id: both for _, id, both in ranked[:MAX_COMPARED]}
    if vector is not None:
        others = [id for id in chosen if id not in cosines]  # found by name only, yet its meaning counts
        cosines.update(_cosines(store, vector, others) if others else {})
    known = read_lessons(store, list(chosen))
    return [
        Hit(known[id], equal=equal[id], cosine=cosines.get(id), **both._asdict())
        for id, both in chosen.items()
        if id in known
    ]


def _cosines(store: Store, vector: Half, ids: Sequence[int]) -> dict[int, float]:
    sql = f"SELECT lesson_id, vector FROM lesson_vectors WHERE {AMONG.format('lesson_id')}"  # noqa: S608 - a constant
    rows = store.fetch(sql, (json_ids(ids),))
    return {id: cosine(vector, np.frombuffer(kept, "<f2")) for id, kept in rows if len(kept) == 2 * len(vector)}


def _ids(store: Store, sql: str, values: tuple[object, ...]) -> list[int]:
    return [row[0] for row in store.fetch(sql, values)]
