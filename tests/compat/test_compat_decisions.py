"""Every kind of decision fires, and nearly fires."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from coherence.compat.decisions import Decision
from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator

TASK = "Refactor fetch_user to be async"
SOUP = "Peel the onions and simmer the soup for an hour."


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def new(cap: int | None = None) -> Regulator:
    regulator = Regulator.for_user("ada", embedder=False, clock=Clock())
    return regulator if cap is None else regulator.with_cost_cap(cap)


def tell(regulator: Regulator, *events: LLMEvent) -> Decision:
    for event in events:
        regulator.on_event(event)
    return regulator.decide()


def judged(*qualities: float) -> list[LLMEvent]:
    return [LLMEvent.quality_feedback(quality) for quality in qualities]


def called(name: str, count: int, args: str | None = None) -> list[LLMEvent]:
    return [LLMEvent.tool_call(name, args)] * count


def failed(name: str, error: str) -> list[LLMEvent]:
    return [LLMEvent.tool_call(name), LLMEvent.tool_result(name, False, 5, error)]


def turn(request: str, answer: str = "Done, as you asked.") -> list[LLMEvent]:
    return [LLMEvent.turn_start(request), LLMEvent.turn_complete(answer)]


GOES_ON = (None, None)


@pytest.mark.parametrize(
    ("cap", "out", "qualities", "mean"),
    [
        (1000, 1000, (0.4, 0.4, 0.4), 0.4000000000000001),  # added up as the contract does
        (1000, 5000, (0.9, 0.9, 0.1, 0.1, 0.1), pytest.approx(0.1)),
        (0, 0, (0.1, 0.1, 0.1), pytest.approx(0.1)),
        (1000, 999, (0.4, 0.4, 0.4), None),  # one token less
        (1000, 1000, (0.5, 0.5, 0.5), None),  # a mean of 0.5 is not below
        (1000, 5000, (0.1, 0.1), None),  # two judgements
        (1000, 10_000_000, (), None),  # no budget: nobody judged
    ],
)
def test_decide_a_cap_breaks_that_is_reached_by_work_whose_last_three_judgements_average_below_a_half(
    cap: int, out: int, qualities: tuple[float, ...], mean: object
) -> None:
    decision = tell(new(cap), LLMEvent.cost(10**9, out, 1), *judged(*qualities))
    assert decision.is_circuit_break() == (mean is not None) != decision.is_continue()
    if decision.reason is not None:
        assert (decision.reason.kind, decision.reason.tokens_spent) == ("cost_cap_reached", out)
        assert (decision.reason.tokens_cap, decision.reason.mean_quality_last_n) == (cap, mean)


def test_is_circuit_break_a_cap_may_be_lowered_and_the_totals_stay() -> None:
    regulator = new()
    assert regulator.cost_cap_tokens() == 10_000
    assert tell(regulator, LLMEvent.cost(0, 600, 1), *judged(0.4, 0.4, 0.4)).is_continue()
    assert regulator.with_cost_cap(600) is regulator
    assert regulator.decide().is_circuit_break()
    assert regulator.total_tokens_out() == 600


@pytest.mark.parametrize(
    ("qualities", "found"),
    [
        ((0.64, 0.5, 0.35), (3, 0.29)),
        ((0.8, 0.5, 0.19), (3, 0.61)),
        ((0.4, 0.9, 0.1), (3, 0.3)),
        # falls of just 0.15, whatever floats make of them
        ((0.5, 0.45, 0.35), (3, 0.15)),
        ((0.8, 0.5, 0.3, 0.2, 0.15), (3, 0.15)),
        ((0.7, 0.2, 0.55), (3, 0.15)),
        ((0.49, 0.4, 0.34), (3, 0.15)),
        ((0.65, 0.34, 0.5), (3, 0.15)),
        ((0.1, 0.1, 0.1, 0.1, 0.1), (5, 0.0)),  # bad all the time
        ((0.1, 0.1, 0.1, 0.1), GOES_ON),
        ((0.5, 0.45, 0.36), GOES_ON),  # a fall of 0.14
        ((0.9, 0.7, 0.5, 0.3), GOES_ON),  # a mean of 0.5, of the last three
        ((0.45, 0.45, 0.45, 0.45, 0.45), GOES_ON),  # five, but the mean is not below 0.4
    ],
)
def test_decide_quality_breaks_that_falls_by_015_over_three_judgements_or_is_bad_for_five(
    qualities: tuple[float, ...], found: tuple[int | None, float | None]
) -> None:
    decision = tell(new(), *judged(*qualities))
    if found == GOES_ON:
        assert decision.is_continue()
        return
    reason = decision.reason
    assert reason is not None and reason.mean_delta is not None
    assert (reason.kind, reason.turns) == ("quality_decline_no_recovery", found[0])
    assert reason.mean_delta == pytest.approx(found[1]) and (found[0] == 5 or reason.mean_delta >= 0.15)


# Failures that come back.


def test_is_continue_the_fourth_equal_failure_breaks() -> None:
    regulator = new()
    assert tell(regulator, LLMEvent.turn_start(TASK), *failed("find", "no such user") * 3).is_continue()
    reason = tell(regulator, *failed("find", "no such user")).reason
    assert reason is not None
    assert (reason.kind, reason.failure_count) == ("repeated_failure_pattern", 4)
    assert reason.cluster == "find: no such user"


def test_is_circuit_break_a_failure_in_three_turns_breaks_until_the_next_turn() -> None:
    regulator = new()
    for request in ("find Ada", "find Bob"):
        assert tell(regulator, LLMEvent.turn_start(request), *failed("find", "no such user")).is_continue()
    assert tell(regulator, LLMEvent.turn_start("find Cy"), *failed("find", "no such user")).is_circuit_break()
    assert tell(regulator, LLMEvent.turn_start("thanks, never mind")).is_continue()


# Loops.


@pytest.mark.parametrize("count", [5, 8])
def test_compat_decisions_five_equal_calls_break(count: int) -> None:
    reason = tell(new(), *called("search", count)).reason  # no turn is needed
    assert reason is not None
    assert (reason.kind, reason.tool_name) == ("repeated_tool_call_loop", "search")
    assert reason.consecutive_count == count


@pytest.mark.parametrize(
    "events",
    [
        called("search", 4),
        [*called("search", 4), *called("open", 1)],
        [*called("search", 5), *called("open", 1)],
        [*called("search", 4), LLMEvent.turn_start("next"), *called("search", 1)],
        [LLMEvent.tool_call("read", f'{{"path": "{name}.py"}}') for name in ("auth", "main", "users", "forms", "cli")],
    ],
    ids=["four", "another tool", "five and another tool", "another turn", "other arguments"],
)
def test_is_continue_calls_that_are_no_loop_go_on(events: list[LLMEvent]) -> None:
    assert tell(new(), *events).is_continue()


# Scope drift.


def test_is_scope_drift_an_answer_off_the_task_warns() -> None:
    decision = tell(new(), *turn(TASK, SOUP))
    assert decision.is_scope_drift()
    assert decision.drift_score is not None
    assert decision.drift_score >= 0.5
    assert "onions" in (decision.drift_tokens or ())
    assert "async" in (decision.task_tokens or ())
    assert decision.suggestion is not None
    assert decision.suggestion.endswith("Compare the answer with what was asked.")


def test_is_continue_the_score_is_told_below_the_threshold_too() -> None:
    decision = tell(new(), *turn(TASK, "I refactored fetch_user, it is async now."))
    assert decision.is_continue()
    assert decision.drift_score is not None
    assert 0.0 <= decision.drift_score < 0.5
    assert decision.drift_tokens is None


@pytest.mark.parametrize(
    ("request_text", "answer", "words"),
    [
        (f"{TASK}. Do not add logging or error handling.", "Done: added logging and error handling", 2),
        (f"{TASK}. Do not add logging.", "async def fetch_user(i):\n    logger.info(i)\n    return await db.get(i)", 1),
        (f"{TASK}, no telemetry please.", "It is async, and I wired up telemetry.", 1),
        (f"{TASK}, and stop adding telemetry.", "It is async. Telemetry was added.", 1),
        ("Keep the lookup logic unchanged. Make it async.", "I rewrote the lookup logic and made it async.", 1),
        ("\u4e0d\u8981\u6dfb\u52a0\u65e5\u5fd7\u3002", "\u5df2\u6dfb\u52a0\u4e86\u65e5\u5fd7\u3002", 1),
    ],
)
def test_is_scope_drift_forbidden_things(request_text: str, answer: str, words: int) -> None:
    decision = tell(new(), *turn(request_text, answer))
    assert decision.is_scope_drift()
    assert len(decision.drift_tokens or ()) == words


def test_is_scope_drift_drift_is_of_the_turn_and_of_an_answer() -> None:
    regulator = new()
    tell(regulator, *turn("How long must onion soup simmer?", SOUP))
    assert tell(regulator, LLMEvent.turn_start(TASK)).drift_score is None
    assert tell(regulator, LLMEvent.turn_complete("")).drift_score is None
    assert tell(regulator, LLMEvent.turn_complete(SOUP)).is_scope_drift()  # though it once was the task
    assert tell(regulator, LLMEvent.turn_start("")).is_continue()


# Unsure words.


def tokens(*logprobs: float) -> list[LLMEvent]:
    return [LLMEvent.token("x", logprob, index) for index, logprob in enumerate(logprobs)]


def answered(logprobs: Iterable[float]) -> list[LLMEvent]:
    return [LLMEvent.turn_start(TASK), *tokens(*logprobs), LLMEvent.turn_complete("fetch_user is async now.")]


def test_a_long_run_of_unlikely_tokens_is_low_confidence() -> None:
    # -3 is 5 %; of 100 tokens a run of log10(100 * 0.9 / 0.01) = 3.95, so 4, comes about once in 100 answers
    assert tell(new(), *answered([-0.1] * 48 + [-3.0] * 4 + [-0.1] * 48)).is_low_confidence()
    assert tell(new(), *answered([-0.1] * 48 + [-3.0] * 3 + [-0.1] * 49)).is_continue()
    assert tell(new(), *answered([-0.1] * 96 + [-3.0] * 4)).is_low_confidence()
    assert tell(new(), *answered([-0.1] * 46 + [-3.0, -3.0, 0.0, -3.0, -3.0] + [-0.1] * 50)).is_continue()


def test_is_continue_low_confidence_ends_with_the_turn() -> None:
    regulator = new()
    tell(regulator, *answered([-3.0] * 50))
    assert tell(regulator, LLMEvent.turn_start("And the tests?")).is_continue()


def test_compat_decisions_the_order_of_kinds() -> None:
    """Each next event makes a decision that comes before all so far; undone in turn they come back."""
    regulator = new(100)
    assert tell(regulator, *answered([-3.0] * 50)).kind == "low_confidence_spans"
    for text in ("use anyio", "no threads", "keep the name"):
        regulator.on_event(LLMEvent.user_correction(text, True))
    assert regulator.decide().kind == "procedural_warning"
    assert tell(regulator, LLMEvent.turn_start(TASK), *tokens(*[-3.0] * 50), LLMEvent.turn_complete(SOUP)).kind == (
        "scope_drift_warn"
    )
    kinds = [(called("search", 5), "repeated_tool_call_loop"), (failed("find", "no such user") * 4, "")]
    kinds += [(judged(0.6, 0.4, 0.3), "quality_decline_no_recovery"), ([LLMEvent.cost(1, 100, 1)], "cost_cap_reached")]
    for events, kind in kinds:
        reason = tell(regulator, *events).reason
        assert reason is not None
        assert reason.kind == (kind or "repeated_failure_pattern")
    active = {finding.rule for finding in regulator.decide().findings if finding.active}
    assert {"cost_cap_reached", "quality_decline_no_recovery", "repeated_failure_pattern"} <= active
