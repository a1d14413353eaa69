"""A scale fitted on somebody's own runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coherence.core.decisions import DecisionKind
from coherence.core.scale import Scale
from coherence.evaluation import own_runs
from coherence.evaluation.own_runs import (
    FOLDS,
    LABELS_NEEDED,
    RUNS_NEEDED,
    SPAN,
    STEPS_NEEDED,
    TOGETHER,
    CalibrationError,
    ObservedRun,
    ObservedStep,
    calibrate,
    judge,
    lights,
    observe_runs,
)
from coherence.providers import HashingEmbedder
from coherence.providers.transcript import Step, Transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.light import scale_for

SHIPPED = scale_for(None)
OWN = ("step_drift.change",)
QUIET = dict.fromkeys(SHIPPED.curves, 0.0)


def run(length: int = 25, *, seed: int = 0, off: int | None = None, wrong: bool = False) -> ObservedRun:
    """Return a run whose signs of similarity are drawn, and lie far up from a step on."""
    rng = random.Random(seed)
    steps = []
    for at in range(length):
        far = 0.3 if off is not None and at >= off else 0.0
        own = {name: round(max(rng.gauss(0.4, 0.1) + far, 0.0), 3) for name in OWN}
        steps.append(ObservedStep({**QUIET, **own}, ()))
    return ObservedRun(steps, off, wrong or off is not None)


def good(count: int = RUNS_NEEDED, length: int = 25) -> list[ObservedRun]:
    return [run(length, seed=seed) for seed in range(count)]


def bad(count: int) -> list[ObservedRun]:
    return [run(seed=1000 + seed, off=12) for seed in range(count)]


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([], "0 good runs with 0 good steps"),
        (good(RUNS_NEEDED - 1, 40), "19 good runs with 760 good steps; a scale needs at least 20 good runs and 500"),
        (good(RUNS_NEEDED, 24), "20 good runs with 480 good steps"),
        ([run(seed=seed, wrong=True) for seed in range(40)], "0 good runs with 0 good steps"),
    ],
)
def test_calibrate_too_few_runs_or_steps_are_said_with_how_many_are_needed(runs: list[ObservedRun], says: str) -> None:
    with pytest.raises(CalibrationError, match=says):
        calibrate(runs, "e-1")
    assert RUNS_NEEDED * 25 == STEPS_NEEDED


def test_calibrate_a_sign_that_is_never_known_is_no_ground_for_a_scale() -> None:
    unknown = ObservedRun([ObservedStep({**QUIET, **dict.fromkeys(OWN)}, ())] * 25)
    with pytest.raises(CalibrationError, match=f"{OWN[0]} is not known in most good steps"):
        calibrate([unknown] * RUNS_NEEDED, "e-1")


def test_calibrate_without_labels_shipped_curves_stay_and_those_of_the_embedder_are_held_together() -> None:
    runs = good()
    found = calibrate(runs, "e-1", "mine")
    scale = found.scale
    assert scale.embedder == "e-1" and scale.name.startswith("mine-") and scale.asks == SHIPPED.asks
    assert {name: curve for name, curve in scale.curves.items() if name not in OWN} == dict(SHIPPED.curves)
    gains = sorted(
        sum(scale.curves[name].at(step.signs[name] or 0.0) for name in OWN) for run in runs for step in run.steps
    )
    # of 500 good steps, five reach more than the 99 % quantile; curves are rounded
    assert gains[-6] <= TOGETHER + 0.01 and gains[-5] >= TOGETHER - 0.2, "the shipped curve adds more here"
    # the mean of what they add is taken off the base
    assert scale.base == pytest.approx(SHIPPED.base - sum(gains) / 500, abs=0.01)
    assert (found.runs, found.steps, found.good_runs, found.off_course, found.left_out) == (20, 500, 20, 0, 0)
    assert found.replaces == SHIPPED.name and not found.labels_used
    assert found.after.auroc is found.after.calibration is None


def test_calibrate_a_failure_that_nobody_has_placed_is_left_out() -> None:
    wrong = [run(seed=seed, wrong=True) for seed in range(5)]
    found = calibrate([*good(), *wrong], "e-1")
    assert (found.runs, found.left_out) == (25, 5) and found.scale == calibrate(good(), "e-1").scale


def test_calibrate_labels_move_the_curves_from_ten_runs_on() -> None:
    few, enough = (calibrate([*good(), *bad(count)], "e-1") for count in (LABELS_NEEDED - 1, LABELS_NEEDED))
    assert (few.off_course, few.labels_used, enough.labels_used) == (9, False, True)
    most = {name: enough.scale.curves[name].most for name in OWN}
    assert sum(most.values()) > sum(few.scale.curves[name].most for name in OWN)
    # the shipped scale has no curve for what tells here
    assert enough.before.auroc == 0.5 and enough.before.warned == 0
    assert enough.after.auroc is not None and enough.after.auroc > 0.95 and enough.after.warned >= 8
    assert enough.before.calibration is not None and enough.after.calibration is not None


def test_calibrate_runs_of_a_task_are_judged_by_a_scale_that_knows_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = [each._replace(group=f"task {at % 7}") for at, each in enumerate([*good(18), *bad(LABELS_NEEDED)])]
    runs = [*named, *good(2)]
    fitted: list[list[ObservedRun]] = []
    fit = own_runs._fit

    def spied(runs: list[ObservedRun], *arguments: Any, **options: Any) -> Scale:
        fitted.append(runs)
        return fit(runs, *arguments, **options)

    monkeypatch.setattr(own_runs, "_fit", spied)
    found = calibrate(runs, "e-1")
    assert found.held_out == "task" and len(fitted) == 1 + FOLDS
    left = [{each.group for each in runs} - {each.group for each in part} for part in fitted[1:]]
    # seven tasks and two runs that name none, whose group is empty: each task is left out whole, and once
    assert sorted(name for names in left for name in names) == [f"task {task}" for task in range(7)]
    assert sum(len(runs) - len(part) for part in fitted[1:]) == len(runs)


@pytest.mark.parametrize(
    "runs",
    [
        [each._replace(group="the only task") for each in [*good(), *bad(LABELS_NEEDED)]],
        # without the second task no run is off its course
        [
            *(each._replace(group=f"{at}") for at, each in enumerate(good())),
            *(each._replace(group="b") for each in bad(10)),
        ],
    ],
    ids=["one task", "one task off course"],
)
def test_calibrate_where_tasks_leave_nothing_to_fit_to_each_run_is_held_out(runs: list[ObservedRun]) -> None:
    found, plain = calibrate(runs, "e-1"), calibrate([each._replace(group="") for each in runs], "e-1")
    assert found == plain and found.held_out == "run"


def test_observed_run_what_comes_long_after_the_known_step_does_not_count() -> None:
    long = run(40, off=12)
    assert long.end == 12 + SPAN and run(20, off=12).end == 20 and run(20).end == 20
    assert [long.is_off(at) for at in (11, 12)] == [False, True] and not run().is_off(24)


def loud(kinds: list[DecisionKind | None], off: int | None = None) -> ObservedRun:
    return ObservedRun([ObservedStep(QUIET, [("mine", kind)] if kind else []) for kind in kinds], off, off is not None)


def test_judge_shares_are_of_good_steps_good_runs_and_runs_off_course() -> None:
    runs = [loud([None, "warn", None, None]), loud([None, "guide", None, None]), loud(["warn", None, "block"], 2)]
    worth = judge(runs, [lights(run, SHIPPED) for run in runs])
    # ten good steps, two of them orange; the third run is red from step 2 on
    assert (worth.good_steps, worth.good_runs, worth.warned) == (0.2, 0.5, 1)
    assert worth.auroc == 0.5, "no sign, so that every step has the same risk"


def test_lights_what_another_scale_said_is_not_asked_for_again() -> None:
    step = ObservedStep(QUIET, [("course", "warn"), ("destructive_unasked", "block")])
    assert "rule.destructive_unasked" in SHIPPED.curves
    assert lights(ObservedRun([step]), SHIPPED)[0].band == "green"


def test_observe_runs_a_step_has_every_sign_of_a_shipped_scale() -> None:
    steps = tuple(Step(role="assistant", content=f"I look at part {at} of the login.") for at in range(5))
    transcript = Transcript(id="a", steps=steps, goal="Fix the login", went_wrong=True, off_course=3, group="login")
    done: list[int] = []
    (found,) = observe_runs([transcript], EmbeddingCache(HashingEmbedder()), done.append)
    assert done == [5] and (found.off_course, found.went_wrong, len(found.steps)) == (3, True, 5)
    assert found.group == "login"
    assert {*OWN, "novelty", "stall"} <= set(found.steps[4].signs)
    assert found.steps[4].signs["step_drift.change"] is not None
