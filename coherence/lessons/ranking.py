"""The chance that a lesson names the right fix: one number in [0, 1] from words, names and meaning.

Of an error it is the product of two chances: that the lesson is about this kind of error, and that its names are right.
The first is a logistic model of a few features. The second is that of the lesson whose names fit best beside the
others, less for the others as much as they fall short of it. A name in common must not make up for another kind of
error. What somebody says of an error has too few words for that: there, one logistic model holds all.

The weights are fitted by ``tests/bench/lesson_recall.py --fit`` on one part of the families of the evaluation set;
recall and calibration are measured on the other. No weight has a sign against its feature's meaning, so that more
agreement never lowers the similarity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from operator import mul
from typing import Any, TypeAlias

import msgspec

from coherence.lessons.names import LITTLE, keys_of, refill, still_lacking
from coherence.lessons.normal import ErrorShape, alike
from coherence.lessons.records import Hit, Known, Lesson, Match

Features: TypeAlias = tuple[float, ...]

LEAST = 0.35
"""Similarity below which nothing is said of an error: so that few errors never seen are answered."""

PROSE_LEAST = 0.1
"""Similarity below which nothing is said of a description: it has few words, and who describes can judge."""

UNKNOWN_COSINE = 0.6
"""Stands for the cosine of a lesson that was found without embedding anything."""

KIND: tuple[float, ...] = (-8.15, 1.0, 1.0, 6.5, 1.75, 4.2, 2.3)
"""Bias, then :func:`kind_features`."""

PROSE: tuple[float, ...] = (-7.4, 8.06, 3.23, 0.68, 3.34)
"""Bias, then :func:`prose_features`."""

ORDER: tuple[float, ...] = (5.26, 0.38, 0.08, -1.28, -2.21, 1.32, 1.85, -2.4)
"""Of :func:`name_features`: the log odds between two lessons of one kind that one rather than the other is right."""

SURE: tuple[float, ...] = (-0.65, 0.0, 1.82, 0.55, 0.36, -0.69, 1.1, 1.93, 0.0, 1.32)
"""Bias, then :func:`name_features` of the lesson with the best names, and how far ahead of the next fix it is."""

TEMPER = 0.4
"""Share of the log odds between two lessons that counts in their similarities: wordings are not to be outweighed."""

MAX_AHEAD = 3.0
"""Log odds beyond which being further ahead says no more."""

RIVAL = 0.5
"""Share of a lesson's chance to be of the right kind from which another one is a rival for the names."""

NAMES_IT = 0.6
"""Weight of shared names from which a lesson was recorded for what the question names."""

GUESSED = 0.7
"""Similarity of a fix with other names at most: it was never seen to help."""

POOLED = 0.9
"""Share of the chance of the likeliest lesson of a pattern that another one of it has at least, if it shares names."""


class RankedCandidate(msgspec.Struct, frozen=True):
    """A candidate, its fix for the question, and its chances."""

    hit: Hit
    fix: str
    kind: float
    """That it is about this kind of error."""
    given: Features
    """Of names; of a description none."""
    odds: float = 0.0
    """The sum of its names, weighed by :data:`ORDER`."""
    chance: float = 0.0
    """That it names the right fix."""

    @property
    def refilled(self) -> bool:
        """True if the fix took over the names of the question."""
        return self.fix != self.hit.known.fix_text


def rank(
    asked: ErrorShape, question: str, tool: str | None, hits: Sequence[Hit], k: int, least: float | None = None
) -> list[Lesson]:
    """Return the lessons most likely to name the right fix, the best first.

    Parameters
    ----------
    asked : ErrorShape
        Of the question.
    question : str
        Its text.
    tool : str, optional
        The tool that failed.
    hits : sequence of Hit
        Candidates.
    k : int
        At most so many.
    least : float, optional
        Similarity in [0, 1] below which a lesson is left out; default: :data:`LEAST` or :data:`PROSE_LEAST`.
    """
    if least is None:
        least = PROSE_LEAST if asked.prose else LEAST
    found: list[tuple[float, int, Lesson]] = []
    for judged in judge(asked, question, tool, hits, least):
        known = judged.hit.known
        chance = min(judged.chance, GUESSED if judged.refilled else 1.0) * record_factor(known)
        if chance < least:
            continue
        match: Match = "similar"
        if judged.hit.equal:
            match = "exact" if known.keys == keys_of(asked) else "shape"
        lesson = known.as_lesson(
            similarity=round(chance, 4), match=match, fix_text=judged.fix, refilled=judged.refilled
        )
        found.append((-chance, -known.id, lesson))
    best: dict[str, Lesson] = {}
    for _, _, lesson in sorted(found, key=lambda each: each[:2]):
        kept = best.setdefault(lesson.fix_text, lesson)
        if kept.refilled and not lesson.refilled:  # the same fix, as it was recorded for this very name
            best[lesson.fix_text] = msgspec.structs.replace(lesson, similarity=kept.similarity)
    return list(best.values())[:k]


def judge(
    asked: ErrorShape, question: str, tool: str | None, hits: Sequence[Hit], least: float
) -> list[RankedCandidate]:
    """Return the candidates whose fix can be used here, with their chances; what cannot reach ``least`` is left out."""
    kinds = kind_chances(asked, tool, hits)
    kinds = kinds if asked.prose else _pooled(kinds, hits)
    made = []
    for hit, kind in zip(hits, kinds, strict=True):
        if kind < least or hit.known.retired:
            continue
        fix = refill(hit.known.fix_text, hit.known.shape, asked, question)
        if fix is None:
            continue
        if asked.prose:
            made.append(RankedCandidate(hit, fix, kind, (), chance=kind))
        elif not _is_of_another(hit, fix):
            given = name_features(asked, hit, fix)
            made.append(RankedCandidate(hit, fix, kind, given, weighed(ORDER, given)))
    return made if asked.prose else _beside_each_other(made)


def _beside_each_other(made: Sequence[RankedCandidate]) -> list[RankedCandidate]:
    """Return candidates with their chances: of their kind, and of the best names there, less what their own fall short.

    What is sure is so beside the others only: a lesson that shares a word is likely right where no other shares more.
    """
    best_of: dict[int, tuple[RankedCandidate, float]] = {}  # by the number of rivals: of two sets, one holds the other
    found = []
    for judged in made:
        rivals = [each for each in made if each.kind >= RIVAL * judged.kind]
        if len(rivals) not in best_of:
            best = max(rivals, key=lambda each: each.odds)
            best_of[len(rivals)] = best, logistic(SURE, sure_features(best, rivals))
        best, sure = best_of[len(rivals)]
        chance = judged.kind * sure * math.exp(TEMPER * (judged.odds - best.odds))
        found.append(msgspec.structs.replace(judged, chance=chance))
    return found


def sure_features(best: RankedCandidate, rivals: Iterable[RankedCandidate]) -> Features:
    """Return what tells whether the best of some lessons is right: its names, how far it is ahead of the next fix."""
    others = [each.odds for each in rivals if each.fix != best.fix]
    ahead = best.odds - max(others) if others else MAX_AHEAD
    keyed = bool(best.hit.known.keys)
    # Alone with other names proves little.
    shared = min(max(best.hit.named, LITTLE), 1.0) if keyed and not best.refilled else 1.0
    return (*best.given, min(ahead, MAX_AHEAD * shared))


def _is_of_another(hit: Hit, fix: str) -> bool:
    """Tell whether a fix is about a name that the question lacks, and about none that it has."""
    return max(hit.met, hit.slotted) < NAMES_IT and bool(hit.lacking) and still_lacking(fix, hit.lacking)


def _pooled(kinds: list[float], hits: Sequence[Hit]) -> list[float]:
    """Return the chances of the kind, those of one pattern taken together.

    Whoever recorded two lessons under one pattern said that they are of one kind. A lesson that names what the question
    names must not lose against one that only uses the same words, because the tool has changed its wording since.
    """
    most: dict[str, float] = {}
    patterns = [hit.known.pattern.casefold() for hit in hits]
    for kind, pattern in zip(kinds, patterns, strict=True):
        most[pattern] = max(most.get(pattern, 0.0), kind)
    return [
        max(kind, POOLED * most[pattern]) if pattern and hit.named >= LITTLE else kind
        for kind, pattern, hit in zip(kinds, patterns, hits, strict=True)
    ]


def kind_chances(asked: ErrorShape, tool: str | None, hits: Sequence[Hit]) -> list[float]:
    """Return how likely each lesson is about this kind of error, or, of a description, about what it says."""
    weights, features = (PROSE, prose_features) if asked.prose else (KIND, kind_features)
    return [logistic(weights, given) for given in features(asked, tool, hits)]


def record_factor(known: Known) -> float:
    """Return what a lesson's record makes of its similarity, in (0, 1]: 1 unless it has failed.

    Laplace's rule of succession, scaled so that a lesson without a record keeps its similarity: (h + 2) / (h + f + 2).
    """
    return (known.helped + 2) / (known.helped + known.failed + 2)


def kind_features(asked: ErrorShape, tool: str | None, hits: Sequence[Hit]) -> list[Features]:
    """Return what tells the kind of an error, for each lesson.

    Equal signature, equal keys besides, cosine, words, wording, tool.
    """
    keys, stems, used = keys_of(asked), frozenset(asked.words), (tool or "").lower()
    found: list[Features] = []
    for hit, same in zip(hits, words(asked.text, [hit.known.shape.text for hit in hits]), strict=True):
        equal, cosine, known = hit.equal, hit.cosine, hit.known
        found.append(
            (
                1.0 if equal else 0.0,
                1.0 if equal and keys == known.keys else 0.0,
                UNKNOWN_COSINE if cosine is None else cosine,
                same,
                1.0 if equal else alike(stems, known.stems),
                1.0 if used and used == known.tool.lower() else 0.0,
            )
        )
    return found


def prose_features(asked: ErrorShape, tool: str | None, hits: Sequence[Hit]) -> list[Features]:
    """Return cosine, words of error, pattern and fix, tool, and names shared, for each lesson."""
    used = (tool or "").lower()
    texts = [f"{hit.known.shape.text} {hit.known.pattern} {hit.known.fix_text[:200]}" for hit in hits]
    return [
        (hit.cosine or 0.0, same, float(bool(used) and used == hit.known.tool.lower()), min(hit.named, 1.0))
        for hit, same in zip(hits, words(asked.text, texts), strict=True)
    ]


def name_features(asked: ErrorShape, hit: Hit, fix: str) -> Features:
    """Return what tells whether a lesson is about the same names.

    Names shared, equal keys, no keys, the fix took over the names, a fix for other names, names in both headlines,
    names in the fix, a fix that quotes a name which the question lacks.
    """
    theirs = hit.known.keys
    refilled = fix != hit.known.fix_text
    return (
        hit.named,
        float(bool(theirs) and keys_of(asked) == theirs),
        float(not theirs),
        float(refilled),
        float(bool(theirs) and hit.named < LITTLE and not refilled),
        hit.slotted,
        hit.met,
        float(bool(hit.lacking) and still_lacking(fix, hit.lacking)),
    )


def words(one: str, others: Sequence[str]) -> list[float]:
    """Return how alike a text and each of some others are by their words, in [0, 1], in any order."""
    fuzz, process = _rapidfuzz()
    lowered = [other.lower() for other in others]
    if not lowered:
        return []
    found = process.cdist([one.lower()], lowered, scorer=fuzz.token_set_ratio)[0]
    return [score / 100.0 for score in found.tolist()]


@cache
def _rapidfuzz() -> tuple[Any, Any]:
    from rapidfuzz import fuzz, process  # only who asks pays for loading it

    return fuzz, process


def weighed(weights: Sequence[float], features: Features) -> float:
    """Return the sum of some features, each times its weight."""
    return math.fsum(map(mul, weights, features))


def logistic(weights: Sequence[float], features: Features) -> float:
    """Return the chance that weighted features speak for; the first weight is the bias."""
    total = weights[0] + weighed(weights[1:], features)
    return 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))  # exp of more than 709 overflows
