"""The regulator's counters, its confidence, threads, an embedder, and being switched off."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hostile
import pytest
from hostile import HANGS, RAISES, lying_number, lying_text, speaking, touchy

from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator
from coherence.core.strangers import Asking, asking
from coherence.providers.hashing import HashingEmbedder


def new(*events: LLMEvent) -> Regulator:
    regulator = Regulator.for_user("ada", embedder=False)
    for event in events:
        regulator.on_event(event)
    return regulator


def test_tool_total_calls_tools_are_counted_by_turn_and_tokens_for_good() -> None:
    events: list[LLMEvent] = [LLMEvent.tool_call("a"), LLMEvent.tool_call("b"), LLMEvent.tool_call("a")]
    events += [LLMEvent.tool_result("a", True, 1.5), LLMEvent.tool_result("b", False, 2), LLMEvent.cost(5, 7, 9)]
    regulator = new(LLMEvent.turn_start("x"), *events, *events[-1:])
    assert regulator.tool_total_calls() == 3
    assert regulator.tool_counts_by_name() == {"a": 2, "b": 1}
    assert regulator.tool_total_duration_ms() == 3.5
    assert regulator.tool_failure_count() == 1
    assert regulator.total_tokens_out() == 14
    assert regulator.metrics_snapshot() == {
        "noos.confidence": 0.5,
        "noos.logprob_coverage": 0.0,
        "noos.total_tokens_out": 14.0,
        "noos.cost_cap_tokens": 10_000.0,
        "noos.tool_total_calls": 3.0,
        "noos.tool_total_duration_ms": 3.5,
        "noos.tool_failure_count": 1.0,
        "noos.implicit_corrections_count": 0.0,
    }
    regulator.on_event(LLMEvent.turn_start("y"))
    assert (regulator.tool_total_calls(), regulator.tool_counts_by_name(), regulator.total_tokens_out()) == (0, {}, 14)


@pytest.mark.parametrize(
    ("nll", "confidence"), [(1.0, 1.0), (2.5, 0.75), (4.0, 0.5), (7.0, 0.0), (9.0, 0.0), (0.1, 1.0)]
)
def test_confidence_of_tokens(nll: float, confidence: float) -> None:
    old = [LLMEvent.token("x", -5.0, 0)] * 10
    assert new(*old, *[LLMEvent.token("x", -nll, 1)] * 128).confidence() == confidence  # of the newest 128


def test_on_event_a_result_ends_a_call_of_its_turn() -> None:
    regulator = new(LLMEvent.turn_start("x"), LLMEvent.tool_call("a"), LLMEvent.turn_start("y"))
    regulator.on_event(LLMEvent.tool_call("a", '{"n": 1}'))
    regulator.on_event(LLMEvent.tool_call("b"))
    regulator.on_event(LLMEvent.tool_result("a", True, 1))
    regulator.on_event(LLMEvent.tool_result("a", True, 1))  # its call was not told
    assert [call.tool for call in regulator._pipeline.state.facts.open_calls] == ["a", "b"]
    assert [action.tool for action in regulator._pipeline.state.facts.actions] == ["a", "a"]


def test_logprob_coverage_coverage_is_the_share_of_known_tokens() -> None:
    unknown = [LLMEvent.token("x", value, 0) for value in (0.0, 0.5, None)]
    assert new(LLMEvent.token("x", -1.0, 0), *unknown).logprob_coverage() == 0.25
    assert new(*[LLMEvent.token("x", value, 0) for value in (float("nan"), float("-inf"))]).logprob_coverage() == 0.0


def test_export_json_deciding_twice_changes_nothing() -> None:
    regulator = new(LLMEvent.turn_start("Fix the login"), LLMEvent.turn_complete("Boil the eggs for ten minutes."))
    decision = regulator.with_cost_cap(5).decide()
    text = regulator.export_json()
    assert regulator.decide() == decision
    assert regulator.export_json() == text


@pytest.mark.slow
def test_tool_total_duration_ms_any_thread_may_call() -> None:
    regulator = new(LLMEvent.turn_start("Count"))

    def work(number: int) -> None:
        for n in range(100):
            regulator.on_event(LLMEvent.cost(1, 2, 1))
            regulator.on_event(LLMEvent.tool_call(f"tool{number}", f'{{"n": {n}}}'))
            regulator.on_event(LLMEvent.tool_result(f"tool{number}", True, 1))
            regulator.on_event(LLMEvent.token("x", -1.0, n))
            if n % 10 == 0:
                regulator.decide()
                Regulator.from_json(regulator.export_json(), embedder=False)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))  # raises what a thread raised
    finally:
        sys.setswitchinterval(interval)
    assert regulator.total_tokens_out() == 8 * 100 * 2
    assert regulator.tool_total_calls() == regulator.tool_total_duration_ms() == 800
    assert regulator.tool_counts_by_name() == {f"tool{number}": 100 for number in range(8)}
    assert regulator.confidence() == 1.0


def test_copy_an_embedder_is_asked_for_what_is_compared() -> None:
    regulator = Regulator.for_user("ada", embedder=HashingEmbedder(64))
    for event in (
        LLMEvent.turn_start("Refactor fetch_user to be async"),
        LLMEvent.turn_complete("Peel the onions and simmer the soup for an hour."),
    ):
        regulator.on_event(event)
    assert regulator.decide().is_scope_drift()
    assert regulator._pipeline.semantics.cache is not None
    assert regulator._pipeline.semantics.cache.embedded == 2
    words = Regulator.from_json(regulator.export_json(), embedder=False)
    words.on_event(LLMEvent.cost(1, 1, 1))
    assert words.decide().drift_score != regulator.decide().drift_score
    assert regulator.copy().decide() == regulator.decide()


def test_tool_total_calls_switched_off_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    regulator = new(*[LLMEvent.tool_call("search")] * 9)
    assert regulator.decide().is_continue()
    assert regulator.tool_total_calls() == 0
    with pytest.raises(TypeError, match="event"):
        regulator.on_event("x")  # type: ignore[arg-type]


def test_on_event_a_broken_rule_does_not_reach_the_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    regulator = new(*[LLMEvent.tool_call("search")] * 5)

    def fail(*_: object) -> None:
        raise RuntimeError("no idea")

    with monkeypatch.context() as patch:
        patch.setattr(regulator._pipeline, "fold", fail)
        assert regulator.decide().is_continue()
        regulator.on_event(LLMEvent.cost(1, 1, 1))
    assert "no decision could be made" in caplog.text
    assert "kind cost" in caplog.text
    assert regulator.decide().is_circuit_break()


@pytest.mark.parametrize("act", [*HANGS.values(), *RAISES.values()], ids=[*HANGS, *RAISES])
def test_llm_event_of_strangers_values_is_refused_or_takes_them_for_what_they_are(act: Callable[[], Any]) -> None:
    regulator = Regulator.for_user(lying_text("ada", act), embedder=False)
    with asking(Asking(0.1)):
        for bad in (speaking(act), touchy(act)):
            given: Any = bad
            for make in (
                lambda given=given: LLMEvent.turn_start(given),
                lambda given=given: LLMEvent.token("a", given, 0),
                lambda given=given: LLMEvent.cost(1, given),
                lambda given=given: LLMEvent.tool_result("Bash", given),
                lambda given=given: regulator.on_event(given),
            ):
                with pytest.raises((TypeError, ValueError)):
                    make()
    regulator.on_event(LLMEvent.turn_start(lying_text("Fix it", act)))
    regulator.on_event(LLMEvent.token("a", lying_number(float, -0.5, act), 0))
    regulator.on_event(LLMEvent.cost(lying_number(int, 3, act), lying_number(int, 4, act)))
    assert regulator.total_tokens_out() == 4 and regulator.decide().kind == "continue"
    hostile.let_go()


@pytest.mark.parametrize("act", [HANGS["hangs"], *RAISES.values()], ids=["hangs", *RAISES])
def test_regulator_with_a_broken_clock_goes_on(act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.compat.regulator.WAIT_S", 0.2)
    regulator = Regulator.for_user("ada", embedder=False, clock=act)
    regulator.on_event(LLMEvent.turn_start("Fix it"))
    regulator.on_event(LLMEvent.turn_complete("Done."))
    regulator.on_event(LLMEvent.cost(3, 4, 5))
    assert regulator.total_tokens_out() == 4 and regulator.decide().kind == "continue"
    hostile.let_go()
