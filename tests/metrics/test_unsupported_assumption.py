"""The metric over an agent's state: the same value online, in a monitor and after a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from coherence.core.config import MonitorConfig
from coherence.core.errors import UnknownSourceError
from coherence.core.events import Correction, Event, Goal, Memory, Message, ToolCall, ToolResult
from coherence.detect.assumption import AssumptionFacts
from coherence.detect.text_analysis import TextAnalysis
from coherence.metrics import UnsupportedAssumption
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.state.reducer import AgentState
from coherence.store.store import Store

NAME = "unsupported_assumption"
RUNS = Path(__file__).resolve().parents[1] / "data" / "runs" / "whowhen.jsonl.gz"
ASSUMED = "The page is empty. Let's assume that the pass costs $1290."


def after(*events: Event) -> AgentState:
    state = AgentState()
    for seq, event in enumerate(events, 1):
        state.fold(seq, float(seq), event)
    return state


def test_unsupported_assumption_a_step_without_a_word_or_a_call_is_unknown() -> None:
    with pytest.raises(UnknownSourceError, match="neither a word nor a call"):
        UnsupportedAssumption(after(Goal("Do it"), Message("assistant", " \n"))).compute()
    calls = after(Goal("Do it"), Message("assistant", ""), ToolCall("pay", Raw(b'{"iban": "DE1234567"}'), "c"))
    assert (UnsupportedAssumption(calls).compute() or 0) > 0


def value(*events: Event) -> float | None:
    return UnsupportedAssumption(after(*events)).compute()


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool, Raw(json.dumps(arguments).encode()), "a")


def test_unsupported_assumption_it_is_unknown_before_the_first_step() -> None:
    assert value() is None
    assert value(Goal("Find the price."), Message("user", "Please")) is None


def test_unsupported_assumption_an_assumption_weighs_more_than_a_statement() -> None:
    goal = Goal("Find the price of the annual pass.")
    assumed = value(goal, Message("assistant", ASSUMED))
    stated = value(goal, Message("assistant", "The page is fine. It says that the pass costs $1290."))
    assert assumed is not None
    assert stated is not None
    assert assumed > stated


@pytest.mark.parametrize(
    "source",
    [
        Message("user", "The pass costs $1290."),
        Message("system", "The pass costs $1290."),
        ToolResult("The pass costs $1290.", call_id="a", tool_name="read"),
        Memory("The pass costs $1290."),
        Correction("The pass costs $1290."),
        Goal("The pass costs $1290."),
    ],
)
def test_unsupported_assumption_what_was_told_or_shown_is_not_new(source: Event) -> None:
    state = after(source, Message("assistant", "The pass costs $1290."))
    assert UnsupportedAssumption(state).compute() == 0
    assert UnsupportedAssumption(state).explain() is None


def test_unsupported_assumption_a_memory_that_was_taken_back_was_not_told() -> None:
    assert value(Memory("The pass costs $1290.", removed=True), Message("assistant", "The pass costs $1290."))


def test_unsupported_assumption_the_evidence_quotes_the_phrase_and_names_what_is_new() -> None:
    state = after(
        Goal("Find the price of the annual pass."), Message("assistant", "I look."), Message("assistant", ASSUMED)
    )
    found = UnsupportedAssumption(state).explain()
    assert found is not None
    assert found.texts == (ASSUMED,)
    assert found.items == (1,)
    assert "1290" in found.why


def test_unsupported_assumption_another_language_is_unknown_and_says_why() -> None:
    state = after(
        Message(
            "assistant",
            "Die Datei fehlt, deshalb nehme ich an, dass der Preis in dem Katalog hundert Euro war und es noch ist, "
            "wie man es mir gesagt hat.",
        )
    )
    with pytest.raises(UnknownSourceError, match="not in English"):
        UnsupportedAssumption(state).compute()


def test_unsupported_assumption_a_call_joins_the_message_before_it() -> None:
    said, called = Message("assistant", "I cannot open it."), call("search", query="1290 euros")
    together = value(said, called)
    alone = value(said)
    assert together is not None
    assert alone is not None
    assert together > alone


def test_the_monitor_and_a_replay_read_what_the_plain_functions_say(tmp_path: Path) -> None:
    """On real runs of several agents: the value after each step, online, equals the facts' own."""
    wanted = {"whowhen/algorithm/112", "whowhen/algorithm/116", "whowhen/handcrafted/34"}
    runs = [run for run in read_transcripts(RUNS) if run.id in wanted]
    assert len(runs) == 3
    for run in runs:
        facts, expected = AssumptionFacts(), list[float | None]()
        facts.ask(TextAnalysis(run.goal))
        for at, step in enumerate(run.steps):
            if step.role == "assistant":
                facts.say(at, TextAnalysis(step.content))
            else:
                (facts.read if step.role == "tool" else facts.ask)(TextAnalysis(step.content))
            expected.append(None if facts.step is None or not facts.step.english else facts.step.value)
        config = MonitorConfig(redact=False)
        with Store(tmp_path / f"{run.id.replace('/', '-')}.db") as store:
            scored = score_transcript(
                run, metrics=[NAME], embedder=HashingEmbedder(), config=config, store=store, window=5
            )
            assert [reading.metrics[NAME] for reading in scored.readings] == expected
            [row] = store.sessions()
            report = Replay(store, row).report()
            assert (report.equal, report.differences) == (report.ticks, [])
