"""Outcome risk: its values, where there is none, and that runs of other agents get none."""

from math import exp
from pathlib import Path

import msgspec
import pytest

from coherence import Monitor
from coherence.core.events import Event, Message, ToolCall, ToolResult
from coherence.metrics import OutcomeRisk
from coherence.providers import HashingEmbedder, StaticState
from coherence.providers.readers import read_transcripts
from coherence.report.score import record_step
from coherence.state.reducer import AgentState

RUNS = Path(__file__).parents[1] / "data" / "runs"
BOOKING = "My booking is H9ZU1C and I need to change it."


def state_after(*events: Event) -> AgentState:
    state = AgentState()
    for seq, event in enumerate(events, 1):
        state.fold(seq, float(seq), event)
    return state


def risk(*events: Event) -> float:
    value = OutcomeRisk(state_after(*events)).compute()
    assert value is not None
    return value


def test_outcome_risk_the_risk_is_the_logistic_of_the_mean_of_the_cues() -> None:
    # 10 words: asked 0; one reply without a refusal: 1 - 0.5 / 2 = 0.75; no search: score 0.25
    assert risk(
        Message("user", BOOKING), Message("assistant", "Of course."), Message("user", "Thanks")
    ) == pytest.approx(1 / (1 + exp(-7 * (0.25 - 0.42))))


def test_outcome_risk_a_long_request_and_a_search_raise_it_and_a_refusal_lowers_it() -> None:
    start, thanks = Message("user", BOOKING), Message("user", "Thanks")
    done, refused = Message("assistant", "Done."), Message("assistant", "I am unable to do that.")
    search = (ToolCall("find_flight", msgspec.Raw(b"{}"), "c"), ToolResult("[]", call_id="c"))
    plain = risk(start, done, thanks)
    assert risk(start, refused, thanks) < plain
    assert risk(start, *search, *search, done, thanks) > plain
    assert risk(Message("user", f"{BOOKING} {BOOKING} {BOOKING}"), done, thanks) > plain


def test_outcome_risk_one_call_is_told_in_the_singular() -> None:
    search = [
        event
        for id in "cd"
        for event in (ToolCall("find_flight", msgspec.Raw(b"{}"), id), ToolResult("[]", call_id=id))
    ]
    state = state_after(Message("user", BOOKING), *search, Message("assistant", "Done."), Message("user", "Thanks"))
    found = OutcomeRisk(state).explain()
    assert found is not None and " 1 call of the tool called just before" in found.why


def test_outcome_risk_the_evidence_names_the_cues_and_an_interval() -> None:
    state = state_after(Message("user", BOOKING), Message("assistant", "I cannot."), Message("user", "Oh"))
    metric = OutcomeRisk(state)
    value, why = metric.compute(), metric.explain()
    assert value is not None and why is not None
    assert "longest request 10 words, 1 of 1 replies refuse" in why.why
    low, high = (float(number) for number in why.why.split("; ")[1].split(",")[0].split(" to "))
    assert low < value < high


def test_why_unknown_a_provider_that_is_no_state_of_an_agent_has_none() -> None:
    metric = OutcomeRisk(StaticState())  # type: ignore[arg-type]
    assert metric.compute() is None and metric.explain() is None and "monitor" in metric.why_unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agentdojo", "whowhen", "swebench_mini"])
def test_why_unknown_no_run_of_another_kind_of_agent_gets_a_risk(name: str) -> None:
    for transcript in list(read_transcripts(RUNS / f"{name}.jsonl.gz"))[::7]:
        with Monitor(goal=transcript.goal, config={"tick": "manual"}, embedder=HashingEmbedder()) as monitor:
            for step in transcript.steps:
                record_step(monitor, step, [])
            monitor.flush()
            metric = OutcomeRisk(monitor.state)
            assert metric.compute() is None
            assert metric.why_unknown.startswith("not calibrated for this kind of agent: ")
            if name == "swebench_mini":
                assert "cannot be told from the transcript" in metric.why_unknown


def test_outcome_risk_a_monitor_measures_it_by_name_with_reason_and_evidence() -> None:
    with Monitor(embedder=HashingEmbedder(), config={"metrics": ["outcome_risk"], "tick": "manual"}) as monitor:
        monitor.message("user", BOOKING)
        monitor.decide()
        assert monitor.latest is not None
        assert monitor.latest.metrics["outcome_risk"] is None
        assert "several turns" in monitor.latest.unknown["outcome_risk"]
        monitor.message("assistant", "Done.")
        monitor.message("user", "Thanks")
        monitor.decide()
        assert monitor.latest.metrics["outcome_risk"] == pytest.approx(1 / (1 + exp(-7 * (0.25 - 0.42))))
