"""The figures that scope drift is held to, on the written answers."""

import gzip
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from coherence.detect.languages import differ
from coherence.policy.scope import THRESHOLD, scope_drift
from coherence.providers.minilm import default_embedder

ANSWERS = Path(__file__).resolve().parents[1] / "data" / "answers.jsonl.gz"
SHIFTS = (1, 5, 11, 37)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scores(rows: list[dict[str, str]], with_input: bool, embedded: bool) -> npt.NDArray[np.float64]:
    """Return the scores of right and swapped answers, shape ``(tasks, 1 + shifts)``."""
    tasks = [f"{row['instruction']}\n{row['input']}" if with_input else row["instruction"] for row in rows]
    answers = [row["answer"] for row in rows]
    embed = default_embedder().embed_batch
    cosines = embed(tasks) @ embed(answers).T if embedded else None
    return np.array(
        [
            [
                scope_drift(task, answers[other], cosine=None if cosines is None else float(cosines[at, other])).score
                for other in ((at + by) % len(rows) for by in (0, *SHIFTS))
            ]
            for at, task in enumerate(tasks)
        ]
    )


def auroc(found: npt.NDArray[np.float64]) -> float:
    right, swapped = found[:, 0], found[:, 1:].ravel()
    return float(np.mean((swapped[:, None] > right) + (swapped[:, None] == right) / 2))


@pytest.mark.slow
@pytest.mark.parametrize(("with_input", "least"), [(True, 0.92), (False, 0.78)])
def test_scope_drift_words_and_embeddings(rows: list[dict[str, str]], with_input: bool, least: float) -> None:
    """The bars are those of the requirement; a rule of shared keywords reaches 0.71 and 0.62 here."""
    assert auroc(scores(rows, with_input, embedded=True)) >= least


@pytest.mark.slow
def test_scope_drift_flags_at_the_shipped_threshold(rows: list[dict[str, str]]) -> None:
    """Swapped answers in another language than the task are not judged; of the others nine in ten are caught."""
    found = scores(rows, True, embedded=True) >= THRESHOLD
    tasks = [f"{row['instruction']}\n{row['input']}" for row in rows]
    judged = np.array(
        [[not differ(task, rows[(at + by) % len(rows)]["answer"]) for by in SHIFTS] for at, task in enumerate(tasks)]
    )
    assert found[:, 1:][judged].mean() >= 0.88
    assert found[:, 0].mean() <= 0.06
    assert not found[:, 1:][~judged].any()


def test_scope_drift_words_only(rows: list[dict[str, str]]) -> None:
    found = scores(rows, True, embedded=False)
    assert auroc(found) >= 0.85
    assert (found[:, 0] >= THRESHOLD).mean() <= 0.2


def test_scope_answers_the_data(rows: list[dict[str, str]]) -> None:
    """Identifiers are unique, both halves have every kind that comes more than once, no answer is empty."""
    assert len({row["id"] for row in rows}) == len(rows) == 144
    halves = {half: {row["kind"] for row in rows if row["split"] == half} for half in ("dev", "held_out")}
    assert halves["held_out"] <= halves["dev"]
    assert all(row["answer"].strip() and row["instruction"].strip() for row in rows)
