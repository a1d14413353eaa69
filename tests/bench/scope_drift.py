"""Separation of right answers from swapped ones by scope drift: ``python tests/bench/scope_drift.py``.

Right: a task with its own answer. Swapped: with the answer of another task of the same source and half. Sources are
``tests/data/answers.jsonl.gz`` and the goals and last long messages of recorded runs. The weights in
``coherence/policy/scope.py`` come from the development half, which is printed apart from the half held out. The airline
runs are left out: their goals say no more than "I need to change my reservation".
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coherence.detect.ngrams import bag
from coherence.policy.scope import ENOUGH_WITH_COSINE, ENOUGH_WORDS, THRESHOLD, features, scope_drift
from coherence.providers.minilm import default_embedder

DATA = Path(__file__).resolve().parents[1] / "data"
RUNS = ("agentdojo", "swebench_mini", "whowhen")
SHIFTS = (1, 5, 11, 37)
FIT_SHIFTS = (1, 5, 11, 17, 23, 37)
LEAST_CHARS = 80
"""A run's last message of so many characters counts as its answer: "TERMINATE" is none."""

STOP_WORDS = frozenset(
    "the a an and or but of to in on at for with is are was be this that it as by from i you".split()
)

_Floats = npt.NDArray[np.float64]
Score = Callable[[str, str], float]


class Item(NamedTuple):
    """A task and its right answer."""

    instruction: str
    input: str
    answer: str


@cache
def vector(text: str) -> npt.NDArray[np.float32]:
    """Return the embedding of a text, computed once."""
    return default_embedder().embed(text)


def cosine(task: str, answer: str) -> float:
    """Return the cosine of two texts' embeddings."""
    return float(vector(task) @ vector(answer))


def own(split: str) -> list[Item]:
    """Return the written answers of one half, ``"dev"`` or ``"held_out"``."""
    with gzip.open(DATA / "answers.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Item(row["instruction"], row["input"], row["answer"]) for row in rows if row["split"] == split]


def recorded(name: str, split: str) -> list[Item]:
    """Return a run's goal and last long message, one a task, every second task for each half."""
    found: dict[str, Item] = {}
    with gzip.open(DATA / "runs" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            run = json.loads(line)
            failed = name == "agentdojo" and not run["labels"].get("success")
            if run["group"] in found or failed or run["labels"].get("hijacked"):
                continue
            said = [step["content"] for step in run["steps"] if step["role"] == "assistant"]
            said = [text for text in said if len(text) >= LEAST_CHARS and "Max rounds" not in text]
            if said:
                found[run["group"]] = Item(run["goal"], "", said[-1])
    return list(found.values())[0 if split == "dev" else 1 :: 2]


def task_of(item: Item, with_input: bool) -> str:
    return f"{item.instruction}\n{item.input}" if with_input and item.input else item.instruction


def words_only(task: str, answer: str) -> float:
    return scope_drift(task, answer).score


def both(task: str, answer: str) -> float:
    return scope_drift(task, answer, cosine=cosine(task, answer)).score


def embeddings_only(task: str, answer: str) -> float:
    return 1 - cosine(task, answer)


def plain_cosine(task: str, answer: str) -> float:
    """Return one minus the cosine of counts of four-character runs inside words, stop words dropped."""

    def counts(text: str) -> Counter[str]:
        words = [f" {word} " for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]
        return Counter(word[at : at + 4] for word in words for at in range(max(1, len(word) - 3)))

    left, right = counts(task), counts(answer)
    length = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
    return 1 - sum(n * right[gram] for gram, n in left.items()) / length if length else 0.5


def keyword_rule(task: str, answer: str) -> float:
    """Return the share of the answer's first ten keywords, by alphabet, that are not among the task's first ten."""

    def keywords(text: str) -> list[str]:
        pieces = (re.sub(r"^\W+|\W+$", "", piece) for piece in re.split(r"[\s,;:!?.()\[\]{}/\\]", text.lower()))
        return sorted({piece for piece in pieces if len(piece.encode()) >= 3 and piece not in STOP_WORDS})[:10]

    asked, given = keywords(task), keywords(answer)
    return sum(word not in asked for word in given) / len(given) if asked and given else 0.0


def table(items: Sequence[Item], with_input: bool, score: Score, shifts: Sequence[int]) -> tuple[_Floats, _Floats]:
    """Return the scores of the right answers, shape ``(n,)``, and of the swapped ones, shape ``(n, shifts)``."""
    tasks = [task_of(item, with_input) for item in items]
    number = len(items)
    right = [score(tasks[at], items[at].answer) for at in range(number)]
    swapped = [[score(tasks[at], items[(at + by) % number].answer) for by in shifts] for at in range(number)]
    return np.array(right), np.array(swapped)


def auroc(right: _Floats, swapped: _Floats) -> float:
    """Return the chance that a swapped answer scores above a right one, ties by half (Mann and Whitney, 1947)."""
    ordered = np.sort(right)
    below = np.searchsorted(ordered, swapped.ravel(), "left") + np.searchsorted(ordered, swapped.ravel(), "right")
    return float(below.mean() / 2 / right.size)


def interval(right: _Floats, swapped: _Floats, draws: int = 1_000) -> tuple[float, float]:
    """Return the 95 % interval of the AUROC, items drawn with replacement."""
    generator = np.random.default_rng(20_261_122)
    picks = generator.integers(right.size, size=(draws, right.size))
    found = np.array([auroc(right[pick], swapped[pick]) for pick in picks])
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def flagged_at(right: _Floats, swapped: _Floats, caught: float = 0.9) -> float:
    """Return the share of right answers flagged by the threshold that catches a share of the swapped ones."""
    return float((right >= np.quantile(swapped, 1 - caught, method="lower")).mean())


SCORES: dict[str, Score] = {
    "words and embeddings": both,
    "words only": words_only,
    "embeddings only": embeddings_only,
    "plain 4-gram cosine": plain_cosine,
    "keyword rule": keyword_rule,
}


def report(name: str, items: Sequence[Item], with_input: bool) -> None:
    sys.stdout.write(f"\n{name} (n = {len(items)})\n")
    for label, score in SCORES.items():
        right, swapped = table(items, with_input, score, SHIFTS)
        low, high = interval(right, swapped)
        by_shift = " ".join(f"{auroc(right, swapped[:, at]):.3f}" for at in range(len(SHIFTS)))
        line = f"  {label:<21} AUROC {auroc(right, swapped):.3f} [{low:.3f}, {high:.3f}], shifts {by_shift}"
        line += f", flagged at 90 % caught {flagged_at(right, swapped):4.0%}"
        if score in (both, words_only):
            line += f"; shipped: caught {(swapped >= THRESHOLD).mean():.0%}, flagged {(right >= THRESHOLD).mean():.0%}"
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def fit(with_cosine: bool) -> tuple[_Floats, float, float]:
    """Return the logistic weights on the development half, and the intercepts for 90 % caught and for 5 % flagged.

    The intercepts are for the written answers, tasks with input and without for the first, with input for the second.
    What is too short to judge is never caught.
    """
    enough = ENOUGH_WITH_COSINE if with_cosine else ENOUGH_WORDS
    rows: list[tuple[float, ...]] = []
    sources = ((own("dev"), True), (own("dev"), False), (recorded("agentdojo", "dev"), True))
    for source, (items, with_input) in enumerate(sources):
        for at, item in enumerate(items):
            task = task_of(item, with_input)
            for by in (0, *FIT_SHIFTS):
                answer = items[(at + by) % len(items)].answer
                asked, given = bag(task), bag(answer)
                known = cosine(task, answer) if with_cosine else 0.0
                rows.append((*features(asked, given), known, 1.0, by > 0, source, given.mass >= enough))
    data = np.array(rows)
    x, swapped, source_of, judged = data[:, :4], data[:, 4] == 1, data[:, 5], data[:, 6] == 1
    weight = np.where(swapped, 1 / len(FIT_SHIFTS), 1.0)
    ridge = np.diag([1e-2, 1e-2, 1e-2, 1e-9])
    beta = np.zeros(4)
    for _ in range(50):  # Newton's method
        chance = 1 / (1 + np.exp(-x @ beta))
        hessian = (x * (weight * chance * (1 - chance))[:, None]).T @ x + ridge
        beta -= np.linalg.solve(hessian, x.T @ (weight * (chance - swapped)) + ridge @ beta)
    score = np.where(judged, x @ beta - beta[3], -100.0)
    caught = -np.quantile(score[swapped & (source_of < 2)], 0.1)
    return beta, float(caught), -float(np.quantile(score[~swapped & (source_of == 0)], 0.95))


def main() -> None:
    """Print the weights of the development half, then both halves."""
    for with_cosine in (True, False):
        weights, caught, flagged = fit(with_cosine)
        line = f"fit {np.round(weights, 2).tolist()}, intercept: 90 % caught {caught:.2f}, 5 % flagged {flagged:.2f}"
        sys.stdout.write(line + "\n")
    for split in ("dev", "held_out"):
        report(f"{split}: written, with input", own(split), True)
        report(f"{split}: written, instruction only", own(split), False)
        for name in RUNS:
            report(f"{split}: {name}", recorded(name, split), True)


if __name__ == "__main__":
    main()
