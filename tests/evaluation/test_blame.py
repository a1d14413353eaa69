"""Search for the step that decided a failed run."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

import coherence
from coherence.evaluation.blame import DECIDED, ORIGIN_WEIGHT, RIGHT, RIGHT_BELOW, SHORT, blame
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript, TranscriptCall

RUNS = Path(__file__).parents[1] / "data" / "runs"
GOAL = "What does the annual pass of the museum cost for two adults and a child?"
LOOKS = Step(role="assistant", agent="planner", content="Let's look at the price list.")
FAILS = Step(role="tool", content="404 not found", is_error=True)
ASSUMES = Step(
    role="assistant",
    agent="clerk",
    content="Let's assume an estimate: adults pay $129, children $64, under the 2023 tariff with a discount of 15%.",
)
ANSWERS = Step(role="assistant", agent="planner", content="FINAL ANSWER: $129")


def run(*steps: Step, goal: str = GOAL, **more: Any) -> Transcript:
    return Transcript(id="museum", goal=goal, steps=steps, **more)


def test_the_step_that_assumed_is_named_with_its_agent() -> None:
    found = blame(run(LOOKS, FAILS, ASSUMES, ANSWERS))
    assert (found.verdict, found.right) == ("decided", RIGHT)
    first = found.steps[0]
    assert (first.step, first.agent) == (2, "clerk")
    assert first.reasons[0] == "puts an assumption in the place of evidence"
    assert first.quote.startswith("Let's assume an estimate")
    assert "the stated final answer first appears here" in first.reasons
    assert [(agent.agent, agent.step, agent.steps) for agent in found.agents] == [("clerk", 2, 1), ("planner", 0, 2)]


def test_blame_shares_are_a_distribution_in_the_order_of_the_scores() -> None:
    found = blame(run(LOOKS, FAILS, ASSUMES, ANSWERS))
    assert math.fsum(step.share for step in found.steps) == pytest.approx(1.0)
    assert math.fsum(agent.share for agent in found.agents) == pytest.approx(1.0)
    scores = [step.score for step in found.steps]
    assert scores == sorted(scores, reverse=True)


def test_blame_the_origin_of_the_stated_answer_counts_where_it_first_appears() -> None:
    """“208” (weight 2) is said by the second step, repeated by the third, stated by the last."""
    steps = [
        Step(role="assistant", content=text) for text in ("I look.", "It is 208.", "Yes, 208.", "FINAL ANSWER: 208")
    ]
    plain = [*steps[:3], Step(role="assistant", content="So: 208")]
    scores, without = ({step.step: step.score for step in blame(run(*one)).steps} for one in (steps, plain))
    assert scores[1] - without[1] == pytest.approx(ORIGIN_WEIGHT)
    assert scores[2] == without[2]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((), "no step of an agent"),
        ((FAILS,), "no step of an agent"),
        (
            tuple(Step(role="assistant", content=f"I look at page {at}.") for at in range(101, 107)),
            "no step stands out",
        ),
        (tuple(Step(role="assistant", content=f"I look at page {name}.") for name in "abcdef"), "no step shows a cue"),
        ((Step(role="assistant", content=""),), "no step shows a cue"),
    ],
)
def test_blame_thin_evidence_is_undecided_and_the_candidates_are_listed(steps: tuple[Step, ...], why: str) -> None:
    found = blame(run(*steps), success=False)
    assert (found.verdict, found.right) == ("undecided", RIGHT_BELOW if found.steps else None)  # no step, no share
    assert found.why.startswith(why)
    assert len(found.steps) == sum(step.role == "assistant" for step in steps)


PLAIN = (
    Step(
        role="assistant", content="Let me look at what the museum says about its prices, opening hours and discounts."
    ),
    Step(role="assistant", content="I will read it."),
    Step(role="assistant", content="That is all."),
)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_blame_a_short_run_with_nothing_in_it_is_undecided(count: int) -> None:
    found = blame(run(*PLAIN[:count]), success=False)
    assert found.steps[0].share > DECIDED  # by new words alone
    assert (found.verdict, found.why.partition(";")[0]) == ("undecided", "no step shows a cue")


def test_a_first_step_in_another_language_is_not_named() -> None:
    german = Step(
        role="assistant",
        content="Die Datei fehlt, deshalb nehme ich an, dass der Preis 1290 Euro war, wie es der Katalog 2023 auf "
        "Seite 118 für Familien mit 2 Kindern nennt; dazu kommen 118,50 Euro für die Sonderausstellung in Halle 77b.",
    )
    found = blame(run(LOOKS, Step(role="assistant", content="It is on the page that you have."), german), success=False)
    assert found.steps[0].step == 2
    assert found.verdict == "undecided"
    assert found.why == "1 of 3 steps is not in English, as the cues are; step 1 is as likely"


def test_blame_a_short_undecided_run_says_that_step_1_is_as_likely() -> None:
    others = [Step(role="assistant", content=f"I look at page {name}.") for name in "ab"]
    new = Step(role="assistant", content="The price list of the museum has tariffs for families and pupils too.")
    found = blame(run(*others, new), success=False)
    assert (found.steps[0].step, found.as_likely) == (2, 1)
    assert found.why.endswith("; step 1 is as likely")
    assert blame(run(others[0], new, others[1])).as_likely is None  # it is the first one anyway
    assert blame(run(others[0], FAILS, others[1], new)).as_likely is None  # a tool has step 1
    assert blame(run(*others, ASSUMES)).as_likely is None  # decided


def test_blame_in_a_long_run_nothing_is_decided() -> None:
    looks = [Step(role="assistant", content=f"I look at page {name}.") for name in "abcdefghij"]
    more = Step(role="assistant", agent="clerk", content=f"{ASSUMES.content} Assume a fallback of $77 by tariff Q9.")
    assert blame(run(*looks[: SHORT - 1], more)).verdict == "decided"
    found = blame(run(*looks, more))
    assert (found.verdict, found.right, found.as_likely, found.steps[0].step) == ("undecided", RIGHT_BELOW, None, 10)
    assert found.why.startswith("step 10 of clerk stands out")


def test_blame_a_run_that_succeeded_blames_nobody() -> None:
    found = blame(run(LOOKS, FAILS, ASSUMES, ANSWERS, success=True))
    assert (found.verdict, found.right) == ("not failed", None)
    assert "not as failed" in found.why
    assert blame(run(LOOKS, ASSUMES, success=True), success=False).verdict != "not failed"


def test_blame_a_run_of_unknown_end_is_taken_for_failed_and_says_so() -> None:
    steps = (LOOKS, FAILS, ASSUMES, ANSWERS)
    assert "not marked as failed" in blame(run(*steps)).why
    assert "not marked" not in blame(run(*steps, success=False)).why


def test_blame_handing_the_task_on_is_not_blamed() -> None:
    brief = Step(role="assistant", content=f"The task: {GOAL} Do not assume; use 12 alternative sources of 1999.")
    found = blame(run(brief, LOOKS, ASSUMES))
    assert found.steps[-1].step == 0
    assert found.steps[-1].reasons == ("only hands the task on",)


def test_blame_memories_were_known_from_when_they_were_there() -> None:
    early, late = (blame(run(ASSUMES, ANSWERS, memories=((since, ASSUMES.content),))).steps for since in (0, 1))
    assert {step.step: step.score for step in early}[0] < {step.step: step.score for step in late}[0]


def test_calls_count_as_what_a_step_does() -> None:
    calls = Step(role="assistant", content="I pay.", tool_calls=(TranscriptCall("pay", {"iban": "DE123456789"}),))
    found = blame(run(LOOKS, calls))
    assert found.steps[0].step == 1
    assert "nowhere before: de123456789" in found.steps[0].reasons


def test_blame_secrets_are_not_quoted() -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 10
    found = blame(run(Step(role="assistant", content=f"Let's assume the key {secret} works.")))
    assert "A1b2C3d4" not in repr(found)


@pytest.mark.parametrize("thing", [None, "run", [], {"id": "x"}])
def test_blame_what_is_no_transcript_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="must be a Transcript"):
        blame(thing)


@examples(30)
@given(
    st.lists(
        st.builds(
            Step,
            role=st.sampled_from(["user", "assistant", "tool"]),
            content=st.text(max_size=60),
            agent=st.none() | st.text(max_size=8),
        ),
        max_size=12,
    ),
    st.text(max_size=60),
)
def test_any_run_gets_the_same_verdict_twice(steps: list[Step], goal: str) -> None:
    found = blame(run(*steps, goal=goal))
    assert found == blame(run(*steps, goal=goal))
    assert all(0.0 <= step.score <= 1.0 + ORIGIN_WEIGHT and step.reasons for step in found.steps)
    assert found.verdict == "undecided" or found.steps[0].share >= DECIDED


@pytest.fixture(scope="module")
def labelled() -> list[tuple[dict[str, Any], coherence.Blame]]:
    path = RUNS / "whowhen.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        labels = [json.loads(line) for line in file]
    return [(one, blame(transcript)) for one, transcript in zip(labels, read_transcripts(path), strict=True)]


@pytest.mark.slow
def test_on_labelled_runs_the_first_step_is_right_as_often_as_documented(
    labelled: list[tuple[dict[str, Any], coherence.Blame]],
) -> None:
    """docs/explanation/evaluation.md: 30 of 67 and 5 of 26; position alone gets 19 of 67 and 2 of 26."""
    right = {"whowhen_algorithm": 0, "whowhen_handcrafted": 0}
    for one, found in labelled:
        right[one["source"]] += found.steps[0].step == one["labels"]["error_step"]
    assert right == {"whowhen_algorithm": 30, "whowhen_handcrafted": 5}


@pytest.mark.slow
def test_blame_decided_verdicts_are_right_more_often(labelled: list[tuple[dict[str, Any], coherence.Blame]]) -> None:
    hits: dict[str, list[bool]] = {"decided": [], "undecided": []}
    for one, found in labelled:
        hits[found.verdict].append(found.steps[0].step == one["labels"]["error_step"])
    decided, undecided = (sum(hits[verdict]) / len(hits[verdict]) for verdict in ("decided", "undecided"))
    # 25 of 45 and 10 of 48; the first is held lower, as of the runs that nobody had seen fewer were right
    assert decided == pytest.approx(RIGHT, abs=0.06)
    assert undecided == pytest.approx(RIGHT_BELOW, abs=0.02)


@pytest.mark.slow
def test_blame_where_it_says_that_step_1_is_as_likely_it_is(
    labelled: list[tuple[dict[str, Any], coherence.Blame]],
) -> None:
    said = [(one["labels"]["error_step"], found) for one, found in labelled if found.as_likely == 1]
    named, step_1 = (
        sum(label == found.steps[0].step for label, found in said) / len(said),
        sum(label == 1 for label, _ in said) / len(said),
    )
    assert step_1 == pytest.approx(named, abs=0.1)


def test_blame_tools_and_users_are_not_blamed() -> None:
    found = blame(run(Step(role="user", content="We assume a mock 77."), LOOKS, FAILS, ASSUMES))
    assert sorted(step.step for step in found.steps) == [1, 3]
