"""The router as a strategy: calls and measures in, a patch out, and nothing else."""

from __future__ import annotations

import itertools
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.router.lines import LINES, TERMS
from coherence.guard.router.measures import measures_of
from coherence.guard.router.policy import KNOBS
from coherence.guard.router.states import State
from coherence.guard.router.strategy import StateRouter
from coherence.guard.router.windows import WINDOW, two_windows
from coherence.monitor.monitor import Monitor

GUARDS = {"success_rate", "consecutive_failures", "latency_ratio", "cost_ratio", "coherence_index"}
"""Measures that do not stand among a call's metrics."""

ROUTER = StateRouter()


class Call(msgspec.Struct):
    success: bool
    duration_s: float | None = None
    index: float | None = None


def diagnose(traces: list[Any], **before: float | None) -> State:
    return ROUTER.diagnose(traces=traces, before_metrics=before)


def analyze(traces: list[Any], **before: float | None) -> dict[str, Any] | None:
    return ROUTER.analyze(agent_id="a", traces=traces, before_metrics=before)


@pytest.mark.parametrize("code", ["".join(bits) for bits in itertools.product("01", repeat=6)])
def test_every_state_is_reached_from_calls_alone(code: str) -> None:
    metrics = {
        name: term.good if bit == "1" else term.bad
        for line, bit in zip(LINES, code, strict=True)
        for name, term in TERMS[line].items()
        if name not in GUARDS
    }
    call = {"success": code[0] == "1", "duration_s": 1.0, "metrics": metrics}
    assert diagnose([call] * 20).code == code


def test_analyze_a_good_time_that_turns_bad_is_seen_as_falling_before_it_is_weak() -> None:
    good, mixed = [Call(True)] * 10, [Call(True)] * 7 + [Call(False)] * 3
    state = diagnose(good + mixed)  # 1.0, then 0.7: forecast 0.4
    assert (state.code, state.lines[0].moving, state.changed) == ("111111", "falling", "011111")
    patch = analyze(good + mixed)
    assert patch == {"fallback": True, "timeout_factor": 1.25, "canary_share": 0.0}
    assert diagnose(mixed + mixed).moving == ()  # as weak, and steady


def test_diagnose_a_bad_time_that_turns_good_rises() -> None:
    worse, better = [Call(False)] * 8 + [Call(True)] * 2, [Call(True)] * 5 + [Call(False)] * 5
    assert diagnose(worse + better).lines[0].moving == "rising"  # 0.2, then 0.5: forecast 0.8


def test_diagnose_calls_that_become_slower_and_dearer_weaken_efficiency() -> None:
    fast, slow = {"success": True, "duration_s": 1.0, "cost": 0.01}, {"success": True, "duration_s": 2.5, "cost": 0.01}
    assert diagnose([fast] * 10 + [slow] * 10).lines[1].score == 0.25  # terms 0 and 1
    assert diagnose([fast] * 20).lines[1].score == 1.0


def test_diagnose_how_long_calls_below_a_millisecond_take_says_nothing() -> None:
    calls = [{"success": True, "duration_s": 1e-5}] * 10 + [{"success": True, "duration_s": 9e-4}] * 10
    assert diagnose(calls).lines[1].score == 1.0
    assert diagnose(calls[:10] + [{"success": True, "duration_s": 0.002}] * 10).lines[1].score == 0.0  # 2 : 1


def test_diagnose_only_the_newest_calls_count() -> None:
    old, new = [Call(False)] * 10_000, [Call(True)] * (2 * WINDOW)
    assert diagnose(old + new) == diagnose(new)
    assert two_windows([Call(True)] * 9)[1] is None
    assert two_windows([Call(True)] * 10)[1] is not None


def test_strategy_values_are_kept_within_reason() -> None:
    calls = [{"duration_s": 1e-9, "cost": -1.0}] * 5 + [{"duration_s": 1e9, "cost": 1.0}] * 5
    later, _ = two_windows(calls)
    assert later["latency_ratio"] == 1e6
    assert "cost_ratio" not in {name for name, value in later.items() if value is not None}  # it was nothing before


def test_diagnose_measures_of_now_go_before_what_calls_tell() -> None:
    assert diagnose([Call(True)] * 20, success_rate=0.0).lines[0].score == 0.0
    assert diagnose([Call(True)] * 20, success_rate=None).lines[0].score == 1.0


def test_state_router_nothing_known_asks_for_nothing() -> None:
    assert analyze([]) is None
    assert analyze([{}] * 30) is None
    assert StateRouter(keys=["pin_route"]).analyze(agent_id="a", traces=[Call(False)] * 10) is None


def test_analyze_a_patch_holds_configuration_and_no_diagnosis() -> None:
    patch = analyze([Call(False)] * 20)
    assert patch is not None
    assert set(patch) <= {*KNOBS, "auto_apply"}
    assert analyze([Call(False)] * 20) == patch


def test_analyze_only_keys_that_the_configuration_has_are_patched() -> None:
    router = StateRouter(keys=["fallback"])
    assert router.analyze(agent_id="a", traces=[Call(False)] * 5) == {"fallback": True}
    withheld = router.analyze(agent_id="a", traces=[Call(False)] * 5, before_metrics={"budget": 1.0})
    assert withheld == {"fallback": True, "auto_apply": False}
    assert router.analyze(agent_id="a", traces=[], before_metrics={"budget": 1.0}) is None


@pytest.mark.parametrize(("keys", "error"), [("fallback", TypeError), (["colour"], ValueError), ([3], TypeError)])
def test_state_router_keys_that_do_not_exist_are_refused(keys: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="keys"):
        StateRouter(keys=keys)


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
def test_analyze_whatever_the_calls_hold_nothing_is_raised(traces: list[Any], before: dict[str, Any]) -> None:
    patch = ROUTER.analyze(agent_id="a", traces=traces, before_metrics=before)
    assert patch is None or all(math.isfinite(value) for value in patch.values())


def test_diagnose_a_failing_agent_is_weak_where_it_fails_and_a_calm_one_nowhere() -> None:
    with Monitor(goal="make the tests pass", embedder=False, budget={"calls": 8}, source="test") as m:
        for attempt in range(8):
            call = m.tool_call("Bash", {"command": f"pytest -k test_{attempt}"})
            m.tool_result(f"E{attempt}: assertion failed", error=attempt > 0, call=call)
        m.decide()
        state = ROUTER.diagnose(traces=[], before_metrics=measures_of(m.result))
    weak = [line.name for line in state.lines if not line.yang]
    assert "stability" in weak  # seven errors in a row
    assert "governance" in weak  # 8 of 8 calls are used
    assert "routing" not in weak
    with Monitor(goal="make the tests pass", embedder=False, budget={"calls": 80}, source="test") as m:
        for attempt in range(8):
            call = m.tool_call("Bash", {"command": f"pytest -k test_{attempt}"})
            m.tool_result(f"{attempt} passed", call=call)
        m.decide()
        calm = ROUTER.diagnose(traces=[], before_metrics=measures_of(m.result))
    assert calm.code == "111111"
    assert set(measures_of(None).values()) == {None}
