"""Scoring a recorded run, one reading a step."""

from __future__ import annotations

import msgspec

from coherence.providers import HashingEmbedder, Step, Transcript
from coherence.providers.transcript import TranscriptCall
from coherence.report.score import ScoredRun, score_transcript, without_secrets

RUN = Transcript(
    id="r",
    steps=(
        Step(role="user", content="Book a flight to Oslo"),
        Step(role="assistant", content="Searching a flight to Oslo"),
        Step(role="tool", content="flight to Oslo, 200 EUR", tool_name="search"),
        Step(role="assistant", content="zzz qqq xxx"),
        Step(role="assistant", content="Booked the flight to Oslo"),
    ),
)


def scored(run: Transcript = RUN, **options: object) -> ScoredRun:
    return score_transcript(run, embedder=HashingEmbedder(), **options)  # type: ignore[arg-type]


def test_scored_run_there_is_one_reading_a_step_numbered_like_the_step() -> None:
    run = scored()
    assert [reading.tick_seq for reading in run.readings] == [0, 1, 2, 3, 4]
    assert run.context_steps == ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4))
    assert all(not reading.errors for reading in run.readings)


def test_the_lowest_reading_is_sought_among_those_that_know_equally_much() -> None:
    run = scored()
    assert run.readings[0].coherence_index is None
    assert run.lowest is not None
    assert run.lowest.coherence_index == min(reading.coherence_index or 0.0 for reading in run.readings[1:])


def test_a_step_at_which_a_metric_does_not_apply_is_compared_too() -> None:
    steps = (
        Step(role="user", content="Pay the bill in bill.txt"),
        Step(role="assistant", content="Reading it.", tool_calls=(TranscriptCall("read_file", {"path": "bill.txt"}),)),
        Step(role="tool", content="12 EUR, to be paid to Anna", tool_name="read_file"),
        Step(role="assistant", content="It is 12 EUR."),
        Step(role="user", content="Thanks. And now sing me a song about the sea"),
        Step(role="assistant", content="zzz qqq xxx " * 20),
    )
    run = scored(Transcript(id="r", steps=steps))
    # nothing was called since the user spoke: goal_hijack does not apply to what is said then
    assert run.readings[5].metrics["goal_hijack"] is None
    assert run.readings[5] in run.comparable and run.lowest is run.readings[5]


def test_evidence_steps_the_reason_names_the_step_that_is_off() -> None:
    run = scored()
    reading = run.readings[3]
    evidence = reading.evidence["goal_drift"]
    assert run.evidence_steps(reading, evidence) == [3]
    assert run.place(reading, evidence) == "step 3 "


def test_why_says_what_the_hardest_pulling_sign_means() -> None:
    steps = (*RUN.steps, *(Step(role="tool", content=f"boom {at}", is_error=True) for at in range(4)))
    run = scored(Transcript(id="r", steps=steps))
    assert run.why(run.readings[-1]).startswith("the newest calls failed: ")


def test_latency_s_is_what_was_recorded_or_the_time_since_the_step_before() -> None:
    steps = (
        Step(role="user", content="Go", ts=10.0),
        Step(role="assistant", content="Both.", ts=12.0),
        Step(role="tool", content="one", ts=13.0),
        Step(role="tool", content="two", ts=15.0),
        Step(role="tool", content="three", ts=16.0, latency_s=0.5),
        Step(role="user", content="Next", ts=99.0),
        Step(role="assistant", content="No clock."),
        Step(role="assistant", content="After it.", ts=100.0),
        Step(role="assistant", content="A clock that was set back.", ts=90.0),
    )
    run = ScoredRun(transcript=Transcript(id="r", steps=steps), readings=(), context_steps=())
    # results of one message are told since that message; nobody waits for a user
    assert [run.latency_s(at) for at in range(9)] == [None, 2.0, 1.0, 3.0, 0.5, None, None, None, None]


def test_further_metrics_may_be_named_and_count_in_the_index() -> None:
    steps = (*RUN.steps, *(Step(role="tool", content=f"boom {at}", is_error=True) for at in range(8)))
    run = scored(Transcript(id="r", steps=steps), metrics=["error_rate"])
    assert run.readings[-1].metrics["error_rate"] == 0.8  # eight of a window of ten results
    assert run.readings[-1].losses["error_rate"] > 0  # named, it counts in the index
    assert "error_rate" not in scored(Transcript(id="r", steps=steps)).readings[-1].losses


def test_scored_run_scoring_is_causal() -> None:
    longer = Transcript(id="r", steps=(*RUN.steps, Step(role="assistant", content="something else entirely")))
    first, second = scored(), scored(longer)
    for left, right in zip(first.readings, second.readings, strict=False):
        assert left.metrics == right.metrics


POLICY = Transcript(
    id="p",
    goal="Help with order 7.",
    system="You serve a shop. Never cancel an order. The password=tiger-lily-93.",
    steps=(
        Step(role="assistant", content="I cancel it.", tool_calls=(TranscriptCall("cancel_order", {"order": "7"}),)),
        Step(role="tool", content="cancelled", tool_name="cancel_order"),
    ),
)


def test_score_transcript_what_the_system_text_forbids_is_found() -> None:
    run = scored(POLICY)
    assert "broken_constraint" in [found.rule for found in run.decisions[0].findings if found.active]
    silent = scored(msgspec.structs.replace(POLICY, system=""))
    assert "broken_constraint" not in [found.rule for found in silent.decisions[0].findings if found.active]


def test_without_secrets_one_that_two_steps_of_a_role_share_is_hidden_in_both() -> None:
    parts = "the key is gl" + "pat-a1B2c3D4e5", "F6g7H8i9J0, keep it"
    steps = [Step(role="assistant", content=parts[0]), RUN.steps[2], Step(role="assistant", content=parts[1])]
    shown = [step.content for step in without_secrets(msgspec.structs.replace(RUN, steps=tuple(steps))).steps]
    assert shown == ["the key is [redacted:gitlab-token]", RUN.steps[2].content, "[redacted:gitlab-token], keep it"]


def test_without_secrets_the_system_text_has_none() -> None:
    found = without_secrets(POLICY).system
    assert "Never cancel an order." in found and "tiger-lily" not in found
