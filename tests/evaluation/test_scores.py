"""Files of scores of other systems: read, or refused with the place and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.scores import read_scores, scores_lines
from evaluation.builders import run, system

RUNS = [run("a", "ua"), run("b", "uaa")]
A = {"id": "a", "score": 0.5, "step_scores": [None, 0.5]}
B = {"id": "b", "score": None, "step_scores": None}


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "other.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("given", "fitted_on"), [("none", "none"), ("dev", "dev"), (["t1", 2], ("t1", "2")), ([], "none")]
)
def test_what_it_was_fitted_on(tmp_path: Path, given: Any, fitted_on: Any) -> None:
    found, _ = read_scores(write(tmp_path, {"system": "x", "fitted_on": given}, A, B), RUNS)
    assert found.fitted_on == fitted_on


def test_read_scores_without_a_score_the_highest_step_is_the_runs(tmp_path: Path) -> None:
    lines = [{"id": "a", "step_scores": [0.1, 0.7]}, {"id": "b", "step_scores": [None, None, None]}]
    found, _ = read_scores(write(tmp_path, *lines), RUNS)
    assert found.run_scores == {"a": 0.7, "b": None}


def test_read_scores_runs_that_are_not_evaluated_are_passed_over(tmp_path: Path) -> None:
    lines = [{"system": "x", "fitted_on": "none"}, A, B, {"id": "c", "score": 1}, {"id": "d", "score": 1}]
    found, warnings = read_scores(write(tmp_path, *lines), RUNS, {"a", "b", "c", "d"})
    assert list(found.run_scores) == ["a", "b"] and warnings == [] and found.strangers == ()


def test_read_scores_ids_that_no_run_has_are_counted_and_three_named(tmp_path: Path) -> None:
    strangers = [{"id": f"x{at}", "score": 1} for at in (1, 2, 2, 3, 4)]
    found, (warning,) = read_scores(
        write(tmp_path, {"system": "x", "fitted_on": "none"}, A, B, *strangers), RUNS, {"a", "b"}
    )
    assert list(found.run_scores) == ["a", "b"] and found.strangers == ("x1", "x2", "x3", "x4")
    assert warning.endswith("other.jsonl: 4 ids that no run has, passed over: 'x1', 'x2', 'x3' and 1 more")


def test_read_scores_a_file_about_other_runs_altogether_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"no run has one of its ids: 'x'; there are 'a', 'b'$"):
        read_scores(write(tmp_path, {"id": "x", "score": 1}), RUNS)
    with pytest.raises(EvaluationError, match="no scores for 2 of 2 runs"):  # which there is, but nothing to judge by
        read_scores(write(tmp_path, {"id": "x", "score": 1}), RUNS, {"x"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({**A, "step_scores": [1.0]}, ":2: 1 step_scores, but run 'a' has 2 steps"),
        ({**A, "step_scores": [1.0, "high"]}, ":2: step_scores[1] must be a finite number or null, not 'high'"),
        ({**A, "step_scores": [True, 1]}, ":2: step_scores[0] must be a finite number or null, not True"),
        ('{"id": "a", "score": NaN}', ":2: score must be a finite number or null, not nan"),
        ('{"id": "a", "score": 1, "step_scores": [1, -Infinity]}', ":2: step_scores[1] must be a finite number"),
        ({"id": "a", "score": 10**400}, ":2: score must be a finite number or null, not inf"),
        ({**A, "step_scores": 1.0}, ":2: step_scores must be a list or null"),
        ({"id": "a"}, ":2: neither score nor step_scores"),
        ({"score": 1}, ":2: expected {id, score, step_scores}"),
        ([1], ":2: expected {id, score, step_scores}"),
        (B, ":2: a second line for run 'b'"),
        ({"id": "c", "score": 1}, ": no scores for 1 of 2 runs: 'a'"),
    ],
)
def test_scores_that_do_not_fit_are_named(tmp_path: Path, line: Any, message: str) -> None:
    path = write(tmp_path, B, line)
    with pytest.raises(EvaluationError) as caught:
        read_scores(path, RUNS)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "does not say what it was fitted on"),
        ({"system": "mine"}, "does not say what it was fitted on"),
        ({"fitted_on": "devv"}, "fitted_on is 'devv', but these runs are of the split 'dev': taken as fitted on none"),
        ({"fitted_on": ["t8", "t9"]}, "fitted_on holds 2 groups, but none of these runs"),
        ({"fitted_on": "none"}, None),
        ({"fitted_on": "dev"}, None),
        ({"fitted_on": [RUNS[0].group, "t9"]}, None),
    ],
)
def test_read_scores_what_is_taken_as_held_out_is_said(tmp_path: Path, header: Any, said: str | None) -> None:
    runs = [msgspec.structs.replace(run, split="dev") for run in RUNS]
    _, warnings = read_scores(write(tmp_path, *([header] if header else []), A, B), runs)
    assert [said in warning for warning in warnings if said] == [True] * bool(said)
    assert bool(warnings) == bool(said)


@pytest.mark.parametrize(
    "header", [{"system": ""}, {"system": 1}, {"system": "x", "fitted_on": 1}, {"fitted_on": [[]]}]
)
def test_read_scores_a_first_line_that_says_nothing_usable_is_named(tmp_path: Path, header: Any) -> None:
    with pytest.raises(EvaluationError, match=r"other\.jsonl:1: "):
        read_scores(write(tmp_path, header, A, B), RUNS)


def test_scores_lines_what_is_written_is_read_back(tmp_path: Path) -> None:
    mine = system("mine", fitted_on=(RUNS[0].group,), a=[None, 1 / 3], b=[None, None, 1e-300])
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(scores_lines(mine)))
    assert read_scores(path, RUNS) == (mine, [])
