"""How well lessons are found: ``python tests/bench/lesson_recall.py [--distractors N] [--fit]``.

The evaluation set is that of ``tests/lessons/errors``. What is tuned - the normal form, the names, the weights of
``coherence/lessons/ranking.py`` (``--fit`` prints them) - is tuned on one part of its families; what is reported is
measured on the other: every second family of other tools, and every second one that is never seen.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from lessons.errors import making
from showing import row, say

from coherence.lessons import (
    LessonStore,
    ranking,
)
from coherence.lessons.candidates import all_hits, equal_hits
from coherence.lessons.intake import make_new, safe_ends
from coherence.lessons.naming import asked_names
from coherence.lessons.normal import normalise
from coherence.lessons.rarity import wording_of

ERRORS = Path(__file__).resolve().parents[1] / "lessons" / "errors"


def families(part: str) -> tuple[list[making.Family], list[making.Family]]:
    """Return the families of lessons, and those that are never seen, of the part ``dev`` or ``held out``."""
    dev, other, never = (
        making.load_families(ERRORS / f"families_{name}.jsonl") for name in ("dev", "held_out", "never_seen")
    )
    return (dev + other[::2], never[::2]) if part == "dev" else (other[1::2], never[1::2])


_Floats = npt.NDArray[np.float64]


class Case(NamedTuple):
    """One question, and which lessons would answer it."""

    kind: str
    asked: making.Occurrence
    right: frozenset[int]
    fixes: frozenset[str]
    """What these lessons say helped."""


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
    """What a store answered to one question."""

    case: Case
    rank: int | None
    """Of the first right lesson among the first five, from 1."""
    best: float | None
    """Similarity of the first one, ``None`` = no answer."""
    first_right: bool
    exact: bool
    """Whether the first is the right lesson itself."""


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


class Example(NamedTuple):
    """One candidate of one question."""

    prose: bool
    kind: ranking.Features
    names: ranking.Features
    same_kind: bool
    right: bool


FREE = (0.0, np.inf)
LIMITS = {
    "KIND": ((1.0, np.inf), (1.0, np.inf), FREE, FREE, FREE, FREE, FREE, (-np.inf, 0.0)),
    "NAMES": (
        FREE,
        (-np.inf, 0.0),
        (1.0, np.inf),
        FREE,
        FREE,
        (-np.inf, -2.0),
        (-np.inf, 0.0),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (0.0, np.inf),
        (-np.inf, 0.0),
        (-np.inf, 0.0),
    ),
    "PROSE": (FREE, FREE, FREE, FREE),
}
"""Between what each weight may be. What is equal must count, and a lesson of this very name win over another one, even
where the questions of the evaluation set, mostly in other words, give that little to do."""

TOP = 5
"""Candidates of a description, the likeliest, on which the weights are fitted."""


def examples(bed: Bed, cases: Iterable[Case]) -> list[Example]:
    """Return the features and the truth of the candidates of the questions."""
    made = []
    store, searching = bed.store, bed.store._usable()
    for case in cases:
        text = safe_ends(case.asked.text)
        asked, tool = normalise(text), case.asked.tool
        names = asked_names(asked, text)
        hits = [] if asked.prose or asked.weak else equal_hits(store._shelf, asked, names)
        hits = hits or all_hits(store._shelf, searching, asked, names)
        by_id = {judged.hit.known.id: judged for judged in ranking.judge(asked, text, tool, hits, 0.0)}
        features = ranking.prose_features if asked.prose else ranking.kind_features
        ordered = sorted(by_id.values(), key=lambda each: -each.chance)[: TOP if asked.prose else None]
        given = features(asked, tool, [judged.hit for judged in ordered])
        for judged, kind in zip(ordered, given, strict=True):
            hit = judged.hit
            same = bed.of_id[hit.known.id].family == case.asked.family
            right = is_right(case, hit.known.id, judged.fix)
            made.append(Example(asked.prose, kind, judged.given, same, right))
    return made


def fit(
    given: Sequence[ranking.Features], truth: Sequence[bool], limits: Sequence[tuple[float, float]], decay: float = 1e-4
) -> tuple[float, ...]:
    """Return bias and weights of a logistic regression whose weights keep their signs (projected gradient descent)."""
    matrix = np.array([[1.0, *features] for features in given])
    right = np.array(truth, dtype=float)
    low = np.array([-np.inf, *(least for least, _ in limits)])
    high = np.array([np.inf, *(most for _, most in limits)])
    weights: _Floats = np.zeros(len(low))
    pace = 4.0 / (float(np.linalg.norm(matrix, 2)) ** 2 / len(matrix) + decay)
    momentum = weights
    for step in range(6_000):  # Nesterov's method
        ahead = weights + step / (step + 3) * (weights - momentum)
        chance = 1.0 / (1.0 + np.exp(-np.clip(matrix @ ahead, -30, 30)))
        slope = matrix.T @ (chance - right) / len(right) + decay * np.array([0.0, *ahead[1:]])
        momentum, weights = weights, np.clip(ahead - pace * slope, low, high)
    return tuple(round(float(weight), 2) for weight in weights)


def fit_all() -> None:
    """Fit the weights on the development families, and print them."""
    known, never = families("dev")
    with filled(known, 1000) as bed:
        cases = list(bed.cases(never, seed=7))
        for _ in range(3):  # who is a rival, and who is among the likeliest, depends on the weights
            made = examples(bed, cases)
            errors, prose = ([each for each in made if each.prose == said] for said in (False, True))
            ranking.KIND = fit([each.kind for each in errors], [each.same_kind for each in errors], LIMITS["KIND"])
            errors = [each for each in errors if each.same_kind]
            ranking.NAMES = fit([each.names for each in errors], [each.right for each in errors], LIMITS["NAMES"])
            ranking.PROSE = fit([each.kind for each in prose], [each.right for each in prose], LIMITS["PROSE"])
        for name in LIMITS:
            say(name, str(getattr(ranking, name)), "")
        report("dev", ask(bed.store, cases))


_WORD = re.compile(r"(?<![\w<])[^\W\d_]\w{2,}(?![\w>])")


def count_words(least: int = 3) -> None:
    """Print in how many families of the development half a word of a headline stands, and a stem of telling lines."""
    known, never = families("dev")
    counts: Counter[str] = Counter()
    stems: Counter[str] = Counter()
    rng = Random(0)
    for family in [*known, *never]:
        key = {name: rng.choice(family.pools[name]) for name in family.key}
        texts = [making.render(error, family, key, rng) for error in family.errors]
        shapes = [normalise(text) for text in texts]
        counts.update(
            {word for shape in shapes for word in _WORD.findall(f"{shape.template} {shape.exception}".lower())}
        )
        stems.update({stem for shape in shapes for stem in wording_of(shape)})
    say("FAMILIES", str(len(known) + len(never)), "")
    for name, found in (("_BY_COUNT", counts), ("_STEMS_BY_COUNT", stems)):
        groups: dict[int, list[str]] = {}
        for word, count in sorted(found.items()):
            if count >= least:
                groups.setdefault(count, []).append(word)
        told = {count: " ".join(groups[count]) for count in sorted(groups, reverse=True)}
        sys.stdout.write(f"{name} = {told}\n")


def main(arguments: Sequence[str] = ()) -> None:
    """Measure on the families held out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--distractors", type=int, default=0)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--words", action="store_true")
    given = parser.parse_args(arguments)
    if given.words:
        count_words()
        return
    if given.fit:
        fit_all()  # without a look at the families held out
        return
    known, never = families("held out")
    with filled(known, 1000, given.distractors) as bed:
        count = len(bed.made) + given.distractors
        report(f"held out, {count:,} lessons", ask(bed.store, bed.cases(never)))


if __name__ == "__main__":
    main(sys.argv[1:])
