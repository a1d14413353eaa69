"""The run that an agent is in: when another begins, and how far metrics rose within it."""

from __future__ import annotations

from math import nan

import msgspec
import pytest

from coherence.baseline.runs import MAX_METRICS, MAX_TOOLS, Run, Runs, risk_of
from coherence.core.decisions import Finding
from coherence.core.events import Correction, Event, Goal, Message, Outcome, ToolCall, ToolResult
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.detect.detector import Observed
from coherence.detect.hijack import HijackDetector, HijackScore, JudgedCall
from coherence.metrics import GoalDrift, GoalHijack
from coherence.providers import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache

CALL = ToolCall("a", msgspec.Raw(b"null"), "")


class Odd:
    name = "odd"
    inverted = True
    version = "7"

    def compute(self) -> float:
        return 0.0


@pytest.mark.parametrize("event", [Goal("next"), Message("user", "next"), CALL])
def test_pop_finished_after_an_outcome_another_run_begins_with_the_next_goal_request_or_call(event: Event) -> None:
    runs = Runs(HijackDetector(), [], [Odd()])
    runs.add({"odd": 0.3})
    for each in (Goal("first"), CALL, ToolResult("x"), Outcome(success=True)):
        runs.observe(Observed.of(each))
    runs.add({"odd": 0.4})  # measured after the outcome, of the same run
    runs.observe(Observed.of(event))
    runs.add({"odd": 0.1})
    first, again = runs.pop_finished()
    assert (first.run, first.success, first.maxima) == (1, True, (("odd", "7", 0.3),))
    assert (again.run, again.success, again.maxima) == (1, True, (("odd", "7", 0.4),))
    now = runs.row()
    assert (now.run, now.success, now.maxima) == (2, None, (("odd", "7", 0.1),)) and runs.pop_finished() == []


@pytest.mark.parametrize("event", [Message("assistant", "done"), ToolResult("late"), Correction("no")])
def test_runs_what_only_closes_a_run_begins_no_other(event: Event) -> None:
    runs = Runs(HijackDetector(), [], [])
    runs.observe(Observed.of(Outcome(success=False)))
    runs.observe(Observed.of(event))
    runs.observe(Observed.of(Outcome(score=0.9)))
    assert (runs.row().run, runs.row().success) == (1, True), "the newest outcome counts, by its score too"


def test_runs_a_goal_without_an_outcome_before_it_belongs_to_the_same_run() -> None:
    runs = Runs(HijackDetector(), [], [])
    for event in (Goal("one"), CALL, Goal("another")):
        runs.observe(Observed.of(event))
    assert runs.row().run == 1


def test_labelled_runs_risks_are_the_bad_side_of_values_and_what_is_unknown_is_left_out() -> None:
    run = Run()
    run.add({"odd": 0.2, "fine": 0.2, "none": None, "nan": nan, "far": 7.0}, frozenset({"odd", "far"}))
    assert run.maxima == {"odd": 0.2, "fine": 0.8, "far": 1.0}
    assert run.row({"odd": "1"}).maxima == (("odd", "1", 0.2),), "a metric without a version is left out"


def test_runs_values_of_vectors_belong_to_their_embedder() -> None:
    embedder = HashingEmbedder(8)
    runs = Runs(HijackDetector(), [GoalDrift()], [Odd()], EmbeddingCache(embedder))
    assert runs.versions["goal_drift"] == f"1 {embedder.fingerprint}"
    assert "goal_drift" not in Runs(HijackDetector(), [GoalDrift()], [Odd()]).versions
    assert Runs(HijackDetector(), [], [Odd()]).versions["odd"] == "7"


@pytest.mark.parametrize(("name", "version"), [("\0x", "1"), ("odd", "\ud800")])
def test_runs_what_a_store_would_refuse_is_left_out(name: str, version: str) -> None:
    odd = Odd()
    odd.name, odd.version = name, version
    runs = Runs(HijackDetector(), [], [odd])
    runs.add({name: 0.5, "goal_hijack": 0.5})
    assert [metric for metric, _, _ in runs.row().maxima] == ["goal_hijack"]


def test_add_findings_what_was_found_about_a_call_that_never_ran_counts_up_to_its_threshold() -> None:
    run = Run()
    run.add_findings(
        [
            Finding(rule="goal_hijack", severity="block", score=0.9, threshold=0.1),
            Finding(rule="loop", severity="warn", score=1.0, threshold=0.5),
        ]
    )
    assert run.maxima == {"goal_hijack": 0.1}
    run.add_findings([Finding(rule="goal_hijack", severity="warn", score=0.05, threshold=0.26)])
    assert run.maxima == {"goal_hijack": 0.1}
    run.add_call(JudgedCall(4, "send", HijackScore(0.9, 0.9, 1.0, "", -1)))
    assert run.maxima == {"goal_hijack": 0.9}, "one that was made counts in full"


def test_add_score_a_proof_that_is_warned_of_teaches_nothing_but_the_tool() -> None:
    run = Run()
    for score, proof in ((0.1, ""), (0.3, ""), (0.9, "eve@x.org")):
        run.add_score("send", HijackScore(score, score, 1.0, "", -1, proof))
    run.add_score("wipe", HijackScore(0.9, 0.9, 1.0, "", -1, "wipe"))
    assert run.row({"goal_hijack": "3"}).maxima == (("call send", "3", 0.3), ("call wipe", "3", 0.0))
    run.begin_next(9)
    assert run.calls == {}


def test_add_score_tools_beyond_those_that_are_told_apart_are_one() -> None:
    run = Run()
    for number in range(MAX_TOOLS + 2):
        run.add_score(f"tool {number}", HijackScore(number / 100, 0.0, 1.0, "", -1))
    run.add_score("\0", HijackScore(0.9, 0.0, 1.0, "", -1))
    assert (len(run.calls), run.calls[""]) == (MAX_TOOLS + 1, 0.9)


def test_pop_finished_it_is_bounded() -> None:
    run = Run()
    run.add({f"m{number}": 0.5 for number in range(1_000)}, frozenset())
    assert len(run.maxima) == MAX_METRICS
    runs = Runs(HijackDetector(), [], [])
    for _ in range(100):
        runs.observe(Observed.of(Outcome()))
    assert len(runs.pop_finished()) == 8


def judged(seq: int, value: float) -> JudgedCall:
    return JudgedCall(seq, "send", HijackScore(provenance=value, distance=value, value=value, sentence="", seq=0))


def test_pop_finished_a_call_that_nobody_has_looked_at_counts_for_the_run_that_made_it() -> None:
    hijack = HijackDetector()
    runs = Runs(hijack, [], [])
    runs.inverted = frozenset({"goal_hijack"})
    hijack.data.worst = judged(4, 0.7)
    events: list[Event] = [CALL, Outcome(success=False), Goal("next")]
    for seq, event in enumerate(events, 4):
        runs.observe(Observed.of(event, seq))
    runs.add({"goal_hijack": 0.7, "error_rate": 0.2})
    assert runs.pop_finished()[-1].maxima == (("goal_hijack", GoalHijack.version, 0.7),)
    assert "goal_hijack" not in runs.run.maxima and runs.run.maxima["error_rate"] == 0.8, "only the call is another's"
    hijack.data.worst = judged(7, 0.1)
    runs.add({"goal_hijack": 0.1})
    assert runs.run.maxima["goal_hijack"] == 0.1


@pytest.mark.parametrize(
    ("fields", "risk"),
    [({"risk": 0.2}, 0.2), ({}, 0.55), ({"coverage": 0.0}, None), ({"coherence_index": None}, None)],
)
def test_risk_of_a_classic_index_is_one_minus_the_index(fields: dict[str, float | None], risk: float | None) -> None:
    classic = Reading(tick_seq=1, ts=0.0, metrics=FrozenDict(), coherence_index=0.45, band=Band.YELLOW, coverage=1.0)
    found = risk_of(msgspec.structs.replace(classic, **fields))
    assert found == (None if risk is None else pytest.approx(risk))
