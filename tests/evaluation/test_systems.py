"""Systems, the runs that they were fitted on, and what may be compared."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coherence.evaluation.baselines import baselines
from coherence.evaluation.comparison import evaluate
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.systems import check_comparable, in_sample
from evaluation.builders import run, system

RUNS = [
    run("b", group="t1", split="dev", success=False),
    run("g", group="t2", split="dev", success=True),
    run("n", group="t3", split="test", success=True),
]


@pytest.mark.parametrize(
    ("fitted_on", "count"),
    [("none", 0), ("dev", 2), ("test", 1), ("train", 0), (("t1", "t3"), 2), (("t9",), 0)],
)
def test_runs_of_the_split_or_of_the_tasks_are_in_sample(fitted_on: Any, count: int) -> None:
    assert in_sample(fitted_on, RUNS) == count


def test_check_comparable_in_sample_beside_held_out_is_refused_and_both_are_named() -> None:
    message = (
        "tuned was fitted or tuned on the split 'dev', to which 2 of these 3 runs belong; fresh was not. .*"
        "--in-sample-too"
    )
    with pytest.raises(EvaluationError, match=message):
        check_comparable([("fresh", "none"), ("tuned", "dev")], RUNS)
    with pytest.raises(EvaluationError, match=re.escape("tuned was fitted or tuned on 1 tasks, to which 1 of")):
        check_comparable([("tuned", ("t1",)), ("fresh", "none")], RUNS)


def test_the_way_out_marks_what_is_in_sample() -> None:
    tuned = system("tuned", fitted_on="dev", b=[1.0] * 3, g=[0.0] * 3, n=[0.0] * 3)
    fresh = system("fresh", b=[1.0] * 3, g=[0.0] * 3, n=[0.0] * 3)
    with pytest.raises(EvaluationError, match="fresh was not"):
        evaluate(RUNS, [tuned, fresh])
    found = evaluate(RUNS, [tuned, fresh], in_sample_too=True)
    assert [(row.system, row.in_sample) for row in found.sections[0].rows] == [("tuned", True), ("fresh", False)]
    assert [judged.in_sample for judged in found.systems] == [2, 0]


def test_in_sample_trivial_references_stand_beside_anything() -> None:
    tuned = system("tuned", fitted_on="dev", b=[1.0] * 3, g=[0.0] * 3, n=[0.0] * 3)
    found = evaluate(RUNS, [tuned, *baselines(RUNS)])
    assert [row.in_sample for row in found.sections[0].rows] == [True, *[False] * 5]
