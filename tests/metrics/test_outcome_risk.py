"""Outcome risk: why it is unknown, and the number that is not shown."""

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
    value = OutcomeRisk(state_after(*events)).estimate()
    assert value is not None
    return value


def test_estimate_is_the_logistic_of_the_mean_of_the_cues() -> None:
    # 10 words: asked 0; one reply without a refusal: 1 - 0.5 / 2 = 0.75; no search: score 0.25
    assert risk(
        Message("user", BOOKING), Message("assistant", "Of course."), Message("user", "Thanks")
    ) == pytest.approx(1 / (1 + exp(-7 * (0.25 - 0.42))))


def test_estimate_a_long_request_and_a_search_raise_it_and_a_refusal_lowers_it() -> None:
    start, thanks = Message("user", BOOKING), Message("user", "Thanks")
    done, refused = Message("assistant", "Done."), Message("assistant", "I am unable to do that.")
    search = (ToolCall("find_flight", msgspec.Raw(b"{}"), "c"), ToolResult("[]", call_id="c"))
    plain = risk(start, done, thanks)
    assert risk(start, refused, thanks) < plain
    assert risk(start, *search, *search, done, thanks) > plain
    assert risk(Message("user", f"{BOOKING} {BOOKING} {BOOKING}"), done, thanks) > plain


def test_why_unknown_a_provider_that_is_no_state_of_an_agent_has_none() -> None:
    metric = OutcomeRisk(StaticState())  # type: ignore[arg-type]
    assert metric.compute() is None and metric.estimate() is None and "monitor" in metric.why_unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agentdojo", "whowhen", "swebench_mini"])
def test_why_unknown_no_run_of_another_kind_of_agent_gets_a_risk(name: str) -> None:
    for transcript in list(read_transcripts(RUNS / f"{name}.jsonl.gz"))[::7]:
        with Monitor(goal=transcript.goal, config={"tick": "manual"}, embedder=HashingEmbedder()) as monitor:
            for step in transcript.steps:
                record_step(monitor, step, [])
            monitor.flush()
            metric = OutcomeRisk(monitor.state)
            assert metric.estimate() is None
            assert metric.why_unknown.startswith("not calibrated for this kind of agent: ")
            if name == "swebench_mini":
                assert "cannot be told from the transcript" in metric.why_unknown


def test_outcome_risk_a_monitor_shows_it_as_unknown_and_says_why() -> None:
    with Monitor(embedder=HashingEmbedder(), config={"metrics": ["outcome_risk"], "tick": "manual"}) as monitor:
        monitor.message("user", BOOKING)
        monitor.decide()
        assert monitor.latest is not None
        assert monitor.latest.metrics["outcome_risk"] is None
        assert "several turns" in monitor.latest.unknown["outcome_risk"]
        monitor.message("assistant", "Done.")
        monitor.message("user", "Thanks")
        monitor.decide()
        assert monitor.latest.metrics["outcome_risk"] is None
        assert monitor.latest.unknown["outcome_risk"].startswith("no better than the number of steps")
        assert OutcomeRisk(monitor.state).estimate() == pytest.approx(1 / (1 + exp(-7 * (0.25 - 0.42))))
