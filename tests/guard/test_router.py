"""The state router: every state is reached, both directions of movement, and a patch that is small and never looser."""

from __future__ import annotations

import itertools
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.classic_router import classic_state
from coherence.guard.router import AUTO_APPLY, CALM, KNOWN, TABLE, Line, State, StateRouter, measures_of
from coherence.monitor.monitor import Monitor

CODES = ["".join(bits) for bits in itertools.product("01", repeat=6)]
GUARDS = {"success_rate", "consecutive_failures", "latency_ratio", "cost_ratio", "coherence_index"}
"""Measures that do not stand among a call's metrics."""


class Call(msgspec.Struct):
    success: bool
    duration_s: float | None = None
    index: float | None = None


def diagnose(traces: list[Any], **before: float | None) -> State:
    return StateRouter().diagnose(traces=traces, before_metrics=before)


def analyze(traces: list[Any], keys: Any = None, **before: float | None) -> dict[str, Any] | None:
    return StateRouter(keys).analyze(agent_id="a", traces=traces, before_metrics=before)


def state_of(scores: Any, trends: Any = (None,) * 6) -> State:
    return State(tuple(map(Line, TABLE, scores, trends)))


def measures(code: str) -> dict[str, float]:
    """Return measures that make a code, all at the ends of their terms."""
    rows = zip(TABLE.values(), code, strict=True)
    return {name: ends[bit == "0"] for row, bit in rows for name, ends in row.terms.items()}


@pytest.mark.parametrize("code", CODES)
def test_state_router_reaches_every_state_from_measures_and_from_calls_alone(code: str) -> None:
    state = diagnose([], **measures(code))
    assert state.code == code
    assert state.changed == "111111"  # all yin lines are at 0, so all of them move
    metrics = {name: value for name, value in measures(code).items() if name not in GUARDS}
    call = {"success": code[0] == "1", "duration_s": 1.0, "metrics": metrics}
    assert diagnose([call] * 20).code == code


def test_table_gives_no_measure_to_two_lines() -> None:
    assert len(KNOWN) == sum(len(row.terms) for row in TABLE.values())


@pytest.mark.parametrize(
    ("known", "score"),
    [
        ({"success_rate": 0.8, "pressure": None}, 0.8),
        ({"success_rate": 0.9, "error_rate": 0.1}, 0.825),  # terms 0.9 and 0.8
        ({"success_rate": 1.0, "error_rate": 0.5, "pressure": 0.0, "coherence_index": 0.9}, 0.375),  # mean 3/4, worst 0
        ({"success_rate": math.nan, "goal_coherence": 0.0, "colour": 1.0}, None),
    ],
)
def test_a_score_is_half_the_mean_and_half_the_worst_of_what_is_known(known: Any, score: float | None) -> None:
    assert diagnose([], **known).lines[0].score == score


@pytest.mark.parametrize(
    ("score", "trend", "yang", "moving"),
    [
        (None, None, True, None),
        (0.60, None, True, None),
        (0.5999, None, False, None),
        (0.4499, -0.4, False, "rising"),  # too weak to stay, whatever its trend
        (0.45, None, False, None),
        (0.50, 0.25, False, "rising"),  # forecast 0.75
        (0.50, 0.24, False, None),
        (0.70, -0.26, True, "falling"),  # forecast 0.44
        (0.70, -0.25, True, None),  # forecast 0.45
        (0.60, 0.4, True, None),  # a yang line that rises stays
    ],
)
def test_a_line_is_yang_from_060_on_and_its_trend_moves_it_in_both_directions(
    score: float | None, trend: float | None, yang: bool, moving: str | None
) -> None:
    line = Line("stability", score, trend)
    assert (line.yang, line.moving) == (yang, moving)


def test_a_state_has_the_name_and_the_policy_of_the_classic_router() -> None:
    named = {
        code: (state.name, state.policy) for code in CODES if (state := state_of(map(float, code))).name != "mixed"
    }
    assert named == {
        "111111": ("qian", "canary_explore"),
        "000000": ("kun", "conserve_and_rollback_bias"),
        "100100": ("zhen", "fast_recover"),
        "010010": ("kan", "reduce_complexity"),
        "000001": ("bo", "rollback_recent_change"),
        "100000": ("fu", "gradual_restore"),
        "101010": ("jiji", "solidify"),
        "010101": ("weiji", "continue_canary"),
    }
    assert state_of(map(float, "110000")).policy == "observe_and_bound"


def strictness(state: State) -> dict[str, float]:
    """Return how strict each entry is: its distance from the calm value."""
    return {key: abs(value - CALM[key]) for key, value in state.patch().items() if key != AUTO_APPLY}


@pytest.mark.parametrize("code", CODES)
def test_a_further_weak_line_never_loosens_a_patch(code: str) -> None:
    here = strictness(state_of(map(float, code)))
    for at, row in enumerate(TABLE.values()):
        weaker = state_of(0.0 if at == other else float(bit) for other, bit in enumerate(code))
        assert all(strictness(weaker)[key] >= here[key] for key in CALM)
        assert all(weaker.patch()[key] == value for key, value in row.asks.items() if key != "canary_share")


@given(
    st.lists(st.none() | st.floats(0, 1), min_size=6, max_size=6),
    st.lists(st.none() | st.floats(-1, 1), min_size=6, max_size=6),
)
def test_a_patch_is_small_and_within_what_the_table_asks_for(
    scores: list[float | None], trends: list[float | None]
) -> None:
    state = state_of(scores, trends)
    patch = state.patch()
    assert patch.pop(AUTO_APPLY, False) is False
    for key, value in patch.items():
        assert value in (CALM[key], *(row.asks.get(key) for row in TABLE.values()))
    assert scores != [None] * 6 or patch == {}
    assert state.changed == "".join(str(int(line.yang != bool(line.moving))) for line in state.lines)


def test_calm_values_come_back_only_where_all_lines_with_a_say_are_known() -> None:
    assert state_of([1.0] * 6).patch() == CALM
    partly = state_of([1.0, 1.0, 1.0, 1.0, None, 1.0]).patch()  # collaboration has a say in two entries
    assert set(CALM) - set(partly) == {"serial", "canary_share"}
    weak = state_of([None, 0.0, None, None, None, None]).patch()
    assert weak == {"canary_share": 0.05, "serial": True, "context_share": 0.75}


def test_a_good_time_that_turns_bad_is_treated_as_weak_before_it_is() -> None:
    good, mixed = [Call(True)] * 10, [Call(True)] * 7 + [Call(False)] * 3
    state = diagnose(good + mixed)  # 1.0, then 0.7: forecast 0.4
    assert (state.code, state.lines[0].moving, state.changed) == ("111111", "falling", "011111")
    assert analyze(good + mixed) == {"fallback": True, "timeout_factor": 1.25, "canary_share": 0.0}
    assert diagnose(mixed + mixed).moving == ()  # as weak, and steady
    worse, better = [Call(False)] * 8 + [Call(True)] * 2, [Call(True)] * 5 + [Call(False)] * 5
    assert diagnose(worse + better).lines[0].moving == "rising"  # 0.2, then 0.5: forecast 0.8


@pytest.mark.parametrize(
    ("before", "after", "score"),
    [
        ((1.0, 0.01), (2.5, 0.01), 0.25),  # terms 0 and 1
        ((1.0, 0.01), (1.0, 0.01), 1.0),
        ((1e-5, None), (9e-4, None), 1.0),  # calls below a millisecond count as so long
        ((1e-5, None), (0.002, None), 0.0),  # 2 : 1
        ((1.0, 0.0), (1.0, 1.0), 1.0),  # it cost nothing before: no ratio
    ],
)
def test_calls_that_become_slower_and_more_expensive_weaken_efficiency(before: Any, after: Any, score: float) -> None:
    calls = [{"success": True, "duration_s": one[0], "cost": one[1]} for one in [before] * 10 + [after] * 10]
    assert diagnose(calls).lines[1].score == score


def test_analyze_patches_only_entries_that_the_configuration_has() -> None:
    assert analyze([Call(False)] * 5, ["fallback"]) == {"fallback": True}
    assert analyze([Call(False)] * 5, ["fallback"], budget=1.0) == {"fallback": True, "auto_apply": False}
    assert analyze([], ["fallback"], budget=1.0) is None
    nothing: list[Any]
    for nothing in ([], [{}] * 30):
        assert analyze(nothing) is None
    for keys, error in (("fallback", TypeError), (["colour"], ValueError), ([3], TypeError)):
        with pytest.raises(error, match="keys"):
            StateRouter(keys=keys)  # type: ignore[arg-type]


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["success", "duration_s", "cost", "index", "metrics", "pressure"]), inner, max_size=5
        ),
    ),
    max_leaves=20,
)


@given(st.lists(JUNK, max_size=50), st.dictionaries(st.sampled_from(["pressure", "budget", "x"]), JUNK))
def test_analyze_raises_nothing_whatever_the_calls_hold(traces: list[Any], before: dict[str, Any]) -> None:
    patch = analyze(traces, None, **before)
    assert patch is None or all(math.isfinite(value) for value in patch.values())
    for line in diagnose(traces, **before).lines:
        assert line.score is None or 0.0 <= line.score <= 1.0
        assert line.trend is None or -1.0 <= line.trend <= 1.0


@pytest.mark.parametrize("failing", [True, False])
def test_measures_of_a_failing_agent_are_weak_where_it_fails(failing: bool) -> None:
    with Monitor(goal="make the tests pass", embedder=False, budget={"calls": 8 if failing else 80}) as m:
        for attempt in range(8):
            call = m.tool_call("Bash", {"command": f"pytest -k test_{attempt}"})
            text = f"E{attempt}: assertion failed" if failing else f"{attempt} passed"
            m.tool_result(text, error=failing and attempt > 0, call=call)
        m.decide()
        state = diagnose([], **measures_of(m.result))
    weak = {line.name for line in state.lines if not line.yang}
    # Seven errors in a row, and 8 of 8 calls are used.
    assert weak >= {"stability", "governance"} if failing else weak == set()
    assert "routing" not in weak
    assert set(measures_of(None).values()) == {None}


def calls(count: int, good: int, seconds: float = 1.0, error: str = "boom", **more: Any) -> list[dict[str, Any]]:
    return [
        {"success": at < good, "duration_sec": seconds, "error": None if at < good else error, "task": "", **more}
        for at in range(count)
    ]


ALL_WORDS = "schema handoff quota"
FIVE = {"consecutive_failures": 5}


@pytest.mark.parametrize(
    ("traces", "metrics", "scores", "code", "moving"),
    [
        ([], {}, (1, 1, 0.5, 1, 1, 1), "110111", ()),
        # three good ones of 1, 2, 2.001 and 2.75 seconds; 1 - 2.75 / 5 is 0.44999999999999996
        (calls(3, 3, 1.0), {}, (1, 0.8, 0.75, 1, 1, 1), "111111", ()),
        (calls(3, 3, 2.0), {}, (1, 0.6, 0.75, 1, 1, 1), "111111", ()),
        (calls(3, 3, 2.001), {}, None, "101111", ()),
        (calls(3, 3, 2.75), {}, None, "101111", (2,)),
        # ten calls, 6, 5 and 4 good ones
        (calls(10, 6), {}, (0.6, 0.8, 0.85, 1, 1, 1), "111111", ()),
        (calls(10, 5), {}, None, "011111", ()),
        (calls(10, 4), {}, None, "011111", (1,)),
        # three failures
        (calls(3, 0), {}, (0, 0.8, 0.85, 1, 1, 1), "011111", (1,)),
        (calls(3, 0, error="rate limit 429"), {}, None, "011110", (1, 6)),
        (calls(3, 0, error="async error"), {}, None, "011101", (1, 5)),
        (calls(3, 0, error="AUTHOR"), {}, None, "011110", (1, 6)),  # words are found inside other words
        (calls(3, 0, task="support model"), {}, None, "011011", (1, 4)),
        (calls(3, 0, context={"team": "collab"}), {}, None, "011101", (1, 5)),
        (calls(3, 3, context={"team": "collab"}), {}, None, "111111", ()),  # of failures only
        (calls(3, 0), {"consecutive_failures": 3}, None, "010111", (1, 3)),
        (calls(3, 0), {"consecutive_failures": 2}, None, "011111", (1,)),
        # metrics of the window go before the calls
        (calls(3, 3, 9.0), {"success_rate": 0.2, "avg_duration_sec": 0.0}, (0.2, 1, 0.75, 1, 1, 1), "011111", (1,)),
        # everything at once
        (calls(5, 0, 9.0, ALL_WORDS), FIVE, (0, 0, 0.35, 0, 0, 0), "000000", (1, 2, 3, 4, 5, 6)),
        (calls(10, 5, 1.0, ALL_WORDS), {}, (0.5, 0.8, 0.85, 0.5, 0.5, 0.5), "011000", ()),
    ],
)
def test_classic_state_is_that_of_the_classic_router(
    traces: list[dict[str, Any]], metrics: dict[str, float], scores: Any, code: str, moving: Any
) -> None:
    state = classic_state(traces, metrics)
    assert (state.code, state.moving) == (code, moving)
    assert scores is None or tuple(line.score for line in state.lines) == scores
    assert state.changed == "".join("1" if at in moving else bit for at, bit in enumerate(code, 1))
