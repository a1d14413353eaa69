"""Recall of lessons: ``python tests/bench/lesson_recall.py [--distractors N] [--fit [KIND ORDER ...]]``.

The evaluation set is that of ``tests/lessons/errors``. What is tuned - the normal form, the names, the weights of
``coherence/lessons/ranking.py`` (``--fit`` prints them) - is tuned on one part of its families; what is reported is
measured on the other: every second family of other tools, and every second one that is never seen.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lesson_fit import LIMITS, Row, conditional_logit, logistic_regression
from lessons.errors import builders as making
from showing import row, say

from coherence.lessons import (
    LessonStore,
    ranking,
)
from coherence.lessons.candidates import all_hits, equal_hits
from coherence.lessons.intake import make_new, safe_ends
from coherence.lessons.names import asked_names
from coherence.lessons.normal import ErrorShape, normalise
from coherence.lessons.records import Hit

ERRORS = Path(__file__).resolve().parents[1] / "lessons" / "errors"


def families(part: str) -> tuple[list[making.Family], list[making.Family]]:
    """Return the families of lessons, and those that are never seen, of the part ``dev`` or ``held out``."""
    dev, other, never = (
        making.load_families(ERRORS / f"families_{name}.jsonl") for name in ("dev", "held_out", "never_seen")
    )
    return (dev + other[::2], never[::2]) if part == "dev" else (other[1::2], never[1::2])


class Case(NamedTuple):
    """One question, and which lessons would answer it."""

    kind: str
    asked: making.Occurrence
    right: frozenset[int]
    fixes: frozenset[str]
    """The fixes of these lessons."""


class Bed:
    """A store with the lessons of some families, and questions about them."""

    def __init__(self, store: LessonStore, families: Sequence[making.Family], lessons: int, seed: int = 0) -> None:
        self.store = store
        self.made = making.make_set(families, lessons, seed)
        ids = _add(store, self.made)
        self.of_id = dict(zip(ids, self.made, strict=True))
        self.families = families

    def cases(self, never: Sequence[making.Family], seed: int = 1, never_n: int = 500) -> Iterator[Case]:
        """Yield the same error again, under a long traceback, of another name, described, and errors never seen."""
        rng = Random(seed)
        for lesson in self.made:
            yield self._case("again", making.reoccurrence(lesson, rng))
            yield self._case("same words", self._same_words(lesson, rng))
            yield self._case("described", making.description(lesson, rng))
            if lesson.origin.long:
                yield self._case("long", making.long_reoccurrence(lesson, rng))
        for family in self.families:
            for _ in range(4):
                asked = making.sibling(family, rng) if family.key and not family.fixes else None
                if asked is not None:
                    right = frozenset(id for id, lesson in self.of_id.items() if lesson.family == family.family)
                    yield Case("other name", asked, right, frozenset())
        for asked in making.never_seen(never, never_n, seed):
            yield Case("never seen", asked, frozenset(), frozenset())

    def strangers(self, seed: int) -> Iterator[Case]:
        """Yield errors of a name that no lesson is about, of the families whose fix depends on it: none is right."""
        rng = Random(seed)
        for family in self.families:
            asked = making.sibling(family, rng) if family.key and family.fixes else None
            if asked is not None:
                yield Case("stranger", asked, frozenset(), frozenset())

    @staticmethod
    def _same_words(lesson: making.Lesson, rng: Random) -> making.Occurrence:
        """Return the same error in the same variant, with other noise."""
        text = making.render(lesson.origin.errors[lesson.variant], lesson.origin, lesson.key, rng)
        return making.Occurrence(text, lesson.family, lesson.key, lesson.tool)

    def _case(self, kind: str, asked: making.Occurrence) -> Case:
        right = {id: lesson for id, lesson in self.of_id.items() if making.answers(lesson, asked)}
        return Case(kind, asked, frozenset(right), frozenset(_plain(lesson.fix_text) for lesson in right.values()))


def _add(store: LessonStore, made: Iterable[making.Lesson | making.Distractor]) -> list[int]:
    ids: list[int] = []
    news = [
        make_new(
            pattern=lesson.pattern,
            error_text=lesson.error_text,
            fix_text=lesson.fix_text,
            tool=lesson.tool,
            origin=None,
            ts=1.8e9,
        )
        for lesson in made
    ]
    for at in range(0, len(news), 500):
        ids += store.add(news[at : at + 500])
    return ids


def _plain(fix: str) -> str:
    return " ".join(fix.split())


def is_right(case: Case, id: int, fix: str) -> bool:
    """Tell whether a lesson is the right one, or its fix, taken over to the names of the question, is the same."""
    return id in case.right or _plain(fix) in case.fixes


class Result(NamedTuple):
    """Answer of a store to one question."""

    case: Case
    rank: int | None
    """Of the first right lesson among the first five, from 1."""
    best: float | None
    """Similarity of the first one, ``None`` = no answer."""
    first_right: bool
    exact: bool
    """True if the first is the right lesson itself."""


def ask(store: LessonStore, cases: Iterable[Case], *, tool: bool = True) -> list[Result]:
    """Put the questions."""
    results = []
    for case in cases:
        found = store.query(case.asked.text, tool=case.asked.tool if tool else None, k=5)
        rank = next((at for at, each in enumerate(found, 1) if is_right(case, each.id, each.fix_text)), None)
        exact = bool(found) and found[0].id in case.right
        results.append(Result(case, rank, found[0].similarity if found else None, rank == 1, exact))
    return results


def of(results: Iterable[Result], kind: str) -> list[Result]:
    return [result for result in results if result.case.kind == kind]


def recall(results: Sequence[Result], k: int) -> float:
    return sum(result.rank is not None and result.rank <= k for result in results) / max(len(results), 1)


def exact(results: Sequence[Result]) -> float:
    return sum(result.exact for result in results) / max(len(results), 1)


def answered(results: Sequence[Result]) -> float:
    return sum(result.best is not None for result in results) / max(len(results), 1)


def calibration_error(results: Sequence[Result], bins: int = 10) -> float:
    """Expected calibration error of the first answers: Guo et al. 2017, with bins of equal width."""
    told = [(result.best, result.first_right) for result in results if result.best is not None]
    error = 0.0
    for at in range(bins):
        inside = [
            (best, right)
            for best, right in told
            if at / bins <= best < (at + 1) / bins or (at == bins - 1 and best == 1.0)
        ]
        if inside:
            mean = math.fsum(best for best, _ in inside) / len(inside)
            error += len(inside) / len(told) * abs(mean - sum(right for _, right in inside) / len(inside))
    return error


def report(name: str, results: Sequence[Result]) -> None:
    """Print recall, false answers and calibration."""
    row(f"{name}: recall@1, the same error again", recall(of(results, "again"), 1), 0.95, "", least=True)
    row(
        f"{name}: recall@1, the same error in the same words",
        recall(of(results, "same words"), 1),
        0.95,
        "",
        least=True,
    )
    row(f"{name}: recall@1, under a long traceback or output", recall(of(results, "long"), 1), 0.90, "", least=True)
    row(f"{name}: recall@5, described by a human", recall(of(results, "described"), 5), 0.90, "", least=True)
    say(f"{name}: the lesson itself first, the same error again", f"{exact(of(results, 'again')):.2f}", "")
    say(f"{name}: recall@1 described", f"{recall(of(results, 'described'), 1):.2f}", "")
    say(
        f"{name}: recall@1, another name (the fix is refilled or generic)",
        f"{recall(of(results, 'other name'), 1):.2f}",
        "",
    )
    row(f"{name}: errors never seen that were answered", answered(of(results, "never seen")), 0.05, "")
    row(f"{name}: expected calibration error", calibration_error(results), 0.10, "")


@contextmanager
def filled(known: Sequence[making.Family], lessons: int, distractors: int = 0, seed: int = 0) -> Iterator[Bed]:
    """Give a store of the lessons of some families, among distractors."""
    with tempfile.TemporaryDirectory() as folder, LessonStore(Path(folder) / "lessons.db", timeout_s=60) as store:
        if distractors:
            _add(store, making.distractors(distractors, seed))
        yield Bed(store, known, lessons, seed)


FITTED = ("ORDER", "SURE", "PROSE")
"""Fitted unless something is named. KIND is a compromise with a second set of families."""

TOP = 5
"""Candidates of a description, the likeliest, on which the weights are fitted."""

LIKELY = 0.05
"""Chance of the kind from which candidates are compared by their names."""


class Question(NamedTuple):
    """A question with its candidates, of which the weights are fitted."""

    case: Case
    text: str
    asked: ErrorShape
    hits: list[Hit]
    kin: frozenset[int]
    """Lessons of its family."""

    def kinds(self) -> list[Row]:
        """Return what tells the kind of each candidate, and whether it is the right one."""
        given = ranking.kind_features(self.asked, self.case.asked.tool, self.hits)
        return [(features, hit.known.id in self.kin) for features, hit in zip(given, self.hits, strict=True)]

    def likeliest(self) -> list[Row]:
        """Return what tells whether the likeliest candidates answer a description."""
        judged = sorted(self._judged(0.0), key=lambda each: -each.chance)[:TOP]
        given = ranking.prose_features(self.asked, self.case.asked.tool, [each.hit for each in judged])
        return [(features, self._is_right(each)) for features, each in zip(given, judged, strict=True)]

    def named(self) -> list[Row]:
        """Return what the names of the candidates of the right kind tell."""
        return [(each.given, self._is_right(each)) for each in self._of_kind()]

    def best_named(self) -> list[Row]:
        """Return what tells whether the one with the best names is right; nothing if none is of the right kind."""
        judged = self._of_kind()
        best = max(judged, key=lambda each: each.odds, default=None)
        if best is None:
            return []
        rivals = [each for each in judged if each.kind >= ranking.RIVAL * best.kind]
        return [(ranking.sure_features(best, rivals), self._is_right(best))]

    def _of_kind(self) -> list[ranking.RankedCandidate]:
        """Return the candidates of the right kind, those too that are left out because their fix is of another name.

        They show best what such names are worth, and some are let through.
        """
        with patch.object(ranking, "_is_of_another", return_value=False):
            return [each for each in self._judged(LIKELY) if each.hit.known.id in self.kin]

    def _judged(self, least: float) -> list[ranking.RankedCandidate]:
        return ranking.judge(self.asked, self.text, self.case.asked.tool, self.hits, least)

    def _is_right(self, judged: ranking.RankedCandidate) -> bool:
        return is_right(self.case, judged.hit.known.id, judged.fix)


def questions(bed: Bed, cases: Iterable[Case]) -> Iterator[Question]:
    """Yield the questions with their candidates."""
    store, searching = bed.store.store, bed.store._usable()
    for case in cases:
        text = safe_ends(case.asked.text)
        asked = normalise(text)
        names = asked_names(asked, text)
        hits = [] if asked.prose or asked.weak else equal_hits(store, asked, names)
        hits = hits or all_hits(store, searching, asked, names)
        kin = frozenset(hit.known.id for hit in hits if bed.of_id[hit.known.id].family == case.asked.family)
        yield Question(case, text, asked, hits, kin)


def fit_all(names: Sequence[str]) -> None:
    """Fit the weights of these names on the development families, and print them."""
    known, never = families("dev")
    with filled(known, 1000) as bed:
        cases = list(bed.cases(never, seed=7))
        made = list(questions(bed, [*cases, *bed.strangers(seed=5)]))
        prose = [each for each in made if each.asked.prose]
        # a description that is taken for an error has neither the words nor the names of one
        errors = [each for each in made if not each.asked.prose and each.case.kind != "described"]
        if "KIND" in names:
            ranking.KIND = logistic_regression([row for each in errors for row in each.kinds()], LIMITS["KIND"])
        if "ORDER" in names:
            ranking.ORDER = conditional_logit([each.named() for each in errors], LIMITS["ORDER"])
        if "SURE" in names:
            ranking.SURE = logistic_regression([row for each in errors for row in each.best_named()], LIMITS["SURE"])
        for _ in range(3 if "PROSE" in names else 0):  # who is among the likeliest depends on the weights
            ranking.PROSE = logistic_regression([row for each in prose for row in each.likeliest()], LIMITS["PROSE"])
        for name in names:
            say(name, str(getattr(ranking, name)), "")
        report("dev", ask(bed.store, cases))


def main(arguments: Sequence[str] = ()) -> None:
    """Measure on the families held out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--distractors", type=int, default=0)
    parser.add_argument("--fit", nargs="*", choices=tuple(LIMITS), metavar="WEIGHTS")
    given = parser.parse_args(arguments)
    if given.fit is not None:
        fit_all(given.fit or FITTED)  # without a look at the families held out
        return
    known, never = families("held out")
    with filled(known, 1000, given.distractors) as bed:
        count = len(bed.made) + given.distractors
        report(f"held out, {count:,} lessons", ask(bed.store, bed.cases(never)))


if __name__ == "__main__":
    main(sys.argv[1:])
