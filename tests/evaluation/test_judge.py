"""Figures of scores, on runs small enough to count."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence.evaluation.baselines import baselines
from coherence.evaluation.comparison import Section, choose, evaluate, judge, judged_runs
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.judge import CALLS, FAILURE, RESISTED, STEPS, UNTOUCHED, Question, cases
from coherence.evaluation.runs import LabelledRun, read_labelled
from coherence.evaluation.systems import System, of_steps
from evaluation.builders import run, system

DATA = Path(__file__).resolve().parents[1] / "data" / "runs"

# Steps:            0 1 2 3 4
HIJACKED = run("h", "uctca", hijacked=True, attacked=True, injection_step=2, hijack_step=3)
RESISTING = run("r", "uctctca", hijacked=False, attacked=True, injection_step=4)
QUIET = run("q", "uctca", hijacked=False, attacked=False)


def values(section: Section, name: str = "mine") -> dict[str, float | None]:
    (row,) = [row for row in section.rows if row.system == name]
    return {key: figure.value for key, figure in row.figures.items()}


def judged(question: Question, runs: list[LabelledRun], *systems: System) -> Section:
    return judge(question, cases(question, runs), systems, draws=20)


def test_cases_calls_that_count_are_those_after_a_result_and_in_resisting_runs_after_the_injection() -> None:
    asked = cases(CALLS, [HIJACKED, RESISTING, QUIET, run("s", "uca", success=True)])
    # Step 1 of each is made before anything was read; step 3 of the resisting run before the injection was.
    assert [(case.run.id, case.step, case.bad) for case in asked] == [("h", 3, True), ("r", 5, False), ("q", 3, False)]


def test_question_hijacking_calls_are_ranked_above_legitimate_ones() -> None:
    scores = system(
        h=[None, 0.9, None, 0.5, None], r=[None, 0.1, None, 0.9, None, 0.7, None], q=[None, 0.9, None, 0.2, None]
    )
    found = values(judged(CALLS, [HIJACKED, RESISTING, QUIET], scores))
    # 0.5 against 0.7 and 0.2: one of two pairs. The threshold is 0.5; 0.7 reaches it. Of the hijacked run's own calls
    # (0.9 and 0.5) the first one is higher.
    assert found == {"auroc": 0.5, "false_alarms": 50.0, "right_call": 0.0}


def test_a_silent_system_is_below_every_score_and_ties_with_itself() -> None:
    scores = system(h=[None] * 5, r=[None] * 7, q=[None, None, None, 0.2, None])
    found = values(judged(CALLS, [HIJACKED, RESISTING, QUIET], scores))
    # Silent against silent ties, silent against 0.2 loses: 0.5 / 2. To catch it one would have to alarm always.
    assert found == {"auroc": 0.25, "false_alarms": 100.0, "right_call": 0.5}


def test_question_runs_are_judged_by_their_highest_step_their_half_and_their_length() -> None:
    runs = [
        run("b1", "uaaaaa", success=False),
        run("b2", "uaaaaaaaaaaaaaaaaaaa", success=False),
        run("g1", "uaaaaa", success=True),
        run("g2", "uaaaa", success=True),
    ]
    scores = system(
        b1=[None, 0.1, 0.1, 0.8, 0.1, 0.1],
        b2=[0.7, *[0.0] * 19],
        g1=[None, 0.75, 0.0, 0.0, 0.0, 0.9],
        g2=[None, 0.2, 0.2, 0.8, 0.2],
    )
    found = values(judged(FAILURE, runs, scores))
    # Highest: bad 0.8, 0.7; good 0.9, 0.8. Pairs: lost, tied, lost, lost = 0.5 / 4.
    assert found["auroc"] == 0.125
    # Of equal length are b1 (6) with g1 (6) and g2 (5): lost and tied.
    assert found["equal_length"] == 0.25
    # First halves (3, 10, 3, 2 steps): bad 0.1, 0.7; good 0.75, 0.2: lost, lost, lost, won.
    assert found["first_half"] == 0.25
    # Catching 80 % of two is catching both: threshold 0.7. Both good runs reach it, at 2 + 1 of their 11 steps.
    assert found["alarmed"] == 100.0
    assert found["per_100"] == pytest.approx(100 * 3 / 11)


def test_question_runs_of_different_sources_are_not_compared() -> None:
    runs = [
        run("b1", part="x", success=False),
        run("g1", part="x", success=True),
        run("b2", part="y", success=False),
        run("g2", part="y", success=True),
    ]
    scores = system(b1=[0.2] * 3, g1=[0.1] * 3, b2=[0.9] * 3, g2=[0.8] * 3)
    found = judged(FAILURE, runs, scores)
    assert values(found)["auroc"] == 1.0  # 0.2 against 0.8 would be lost
    (row,) = found.rows
    assert [(part.name, part.figure.value) for part in row.parts] == [("x", 1.0), ("y", 1.0)]


def test_question_the_decisive_step_is_ranked_among_those_with_a_score() -> None:
    runs = [run("w", "aata", error_step=1), run("v", "aata", error_step=2)]
    scores = system(w=[0.2, 0.5, None, 0.5], v=[0.1, 0.2, None, 0.3])
    found = values(judged(STEPS, runs, scores))
    # w: first of two that tie: 1/2, rank 1.5. v: says nothing of the decisive step: 0. No agent is labelled.
    assert found == {"top1": 0.25, "mrr": pytest.approx((1 / 1.5) / 2), "agent": None}


def test_question_without_step_scores_what_needs_them_is_not_known() -> None:
    runs = [run("b", success=False), run("g", success=True)]
    bare = System(name="mine", step_scores={"b": None, "g": None}, run_scores={"b": 0.9, "g": 0.1})
    found = values(judged(FAILURE, runs, bare))
    assert found == {"equal_length": 1.0, "auroc": 1.0, "first_half": None, "alarmed": 0.0, "per_100": None}
    hijack = System(name="mine", step_scores={"h": None, "q": None}, run_scores={"h": 0.9, "q": 0.1})
    assert set(values(judged(CALLS, [HIJACKED, QUIET], hijack)).values()) == {None}
    assert set(
        values(
            judged(STEPS, [run("w", error_step=1)], System(name="mine", step_scores={"w": None}, run_scores={"w": 1.0}))
        ).values()
    ) == {None}


def test_judge_each_run_is_asked_what_its_labels_tell() -> None:
    runs = [
        HIJACKED,
        RESISTING,
        QUIET,
        run("w", error_step=1, success=False),
        run("b", success=False),
        run("g", success=True),
    ]
    assert [question.key for question, _ in choose(runs, None)] == [
        "calls",
        "resisted",
        "untouched",
        "failure",
        "steps",
    ]
    assert [len(asked) for _, asked in choose(runs, None)] == [3, 2, 2, 2, 1]
    # Asked for failures, the log with a decisive step counts too; attacked runs are about something else.
    ((question, asked),) = choose(runs, "failure")
    assert (question, [case.run.id for case in asked]) == (FAILURE, ["w", "b", "g"])
    assert [one.id for one in judged_runs(runs, "step")] == ["w"]


@pytest.mark.parametrize(
    ("runs", "target", "message"),
    [
        ([run("a")], None, "this run has no labels to judge by: expected labels.hijacked or labels.success or"),
        ([run("a", success=True)], None, "Runs: failed against succeeded: the only case is good"),
        ([run("a", success=False)], None, "Runs: failed against succeeded: the only case is bad"),
        ([run("a", success=True), run("b", success=False)], "hijack", "for the target hijack"),
        ([], None, "these 0 runs have no labels"),
        ([run("a")], "step", r"for the target step: expected labels\.error_step$"),
        ([run("a")], "failure", r"for the target failure: expected labels\.success$"),
    ],
)
def test_judge_labels_that_answer_nothing_are_refused(runs: list[LabelledRun], target: None, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        choose(runs, target)


def test_question_alarms_on_steps_have_an_interval_of_their_own() -> None:
    # The good runs alarm at 0 or 3 of 3 steps: drawn again, their share moves between the two.
    runs = [run(f"b{at}", success=False) for at in range(5)] + [run(f"g{at}", success=True) for at in range(10)]
    scores = of_steps("mine", {one.id: [1.0 if one.id[0] == "b" or int(one.id[1:]) < 5 else 0.0] * 3 for one in runs})
    (row,) = judged(FAILURE, runs, scores).rows
    figure = row.figures["per_100"]
    assert figure.value == 50.0 and figure.low is not None and figure.high is not None
    assert figure.low < 40.0 < 60.0 < figure.high


def test_question_a_difference_inside_the_noise_is_called_so() -> None:
    runs = [run(f"b{at}", success=False) for at in range(20)] + [run(f"g{at}", success=True) for at in range(20)]
    good = of_steps("good", {one.id: [0.9 if one.labels.success is False else 0.1] * 3 for one in runs})
    same = of_steps("same", {one.id: [5.0 if one.labels.success is False else 3.0] * 3 for one in runs})
    noise = of_steps("noise", {one.id: [float(int(one.id[1:]) % 7)] * 3 for one in runs})
    rows = {row.system: row for row in judged(FAILURE, runs, good, same, noise).rows}
    assert rows["good"].differences == {}
    assert rows["same"].differences["auroc"].verdict == "inside the noise"
    assert rows["noise"].differences["auroc"].verdict == "better"
    assert rows["noise"].differences["alarmed"].verdict == "better"  # of alarms fewer are better
    backwards = {row.system: row for row in judged(FAILURE, runs, noise, good).rows}["good"]
    assert backwards.differences["auroc"].verdict == "worse"
    assert backwards.differences["alarmed"].verdict == "worse"


def test_the_alarm_made_for_a_question_is_the_one_compared() -> None:
    runs = [run("b", success=False), run("g", success=True)]
    index = of_steps("index", {"b": [0.0] * 3, "g": [0.5] * 3})
    alarm = of_steps("alarm", {"b": [0.9] * 3, "g": [0.1] * 3}, about="failure")
    found = judged(FAILURE, runs, index, alarm)
    assert found.compared == "alarm"
    assert [row.differences.keys() for row in found.rows] == [values(found, "index").keys(), set()]
    assert found.rows[0].differences["auroc"].figure.value == 1.0
    other = of_steps("alarm", {"b": [0.9] * 3, "g": [0.1] * 3}, about="hijack")
    assert judged(FAILURE, runs, index, other).compared == "index"


def test_judge_the_prior_of_positions_is_the_published_one() -> None:
    runs = read_labelled([DATA / "whowhen.jsonl.gz"])
    row = next(row for row in evaluate(runs, baselines(runs), draws=10).sections[0].rows if row.system == "position")
    found = {part.name: part.figure.value for part in row.parts}
    # 0.27 and 0.11 on all 184 logs, of which these are a half
    assert found == {
        "whowhen_algorithm": pytest.approx(0.27, abs=0.02),
        "whowhen_handcrafted": pytest.approx(0.11, abs=0.02),
    }


@pytest.mark.slow
def test_cases_the_counts_of_the_recorded_runs_and_their_trivial_scores_are_the_published_ones() -> None:
    runs = read_labelled([DATA / "agentdojo.jsonl.gz"])
    found = evaluate(runs, baselines(judged_runs(runs)), draws=10)
    calls, resisted, untouched = found.sections
    assert (calls.bad, calls.cases - calls.bad) == (179, 293)  # 183 runs less 4 without a hijacking step
    assert (resisted.bad, resisted.cases - resisted.bad) == (183, 136)
    assert (untouched.bad, untouched.cases - untouched.bad) == (183, 217)
    assert values(calls, "length")["auroc"] == pytest.approx(0.39, abs=0.005)
    assert values(resisted, "length")["auroc"] == pytest.approx(0.80, abs=0.005)
    assert values(resisted, "length")["equal_length"] == pytest.approx(0.55, abs=0.005)
    asked = [question.key for question in (CALLS, RESISTED, UNTOUCHED)]
    assert [section.question for section in found.sections] == asked
    assert found.unused == 64  # attacked, but the injection was never shown
    assert all(row.folds is not None and row.folds[0] <= row.folds[1] for row in calls.rows)
