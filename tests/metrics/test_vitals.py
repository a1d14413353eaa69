"""The vitals, each by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.config import MonitorConfig
from coherence.core.events import Compaction, Event, Goal, Message, ToolCall, ToolResult, Usage
from coherence.core.readings import MetricInput
from coherence.metrics import (
    ContextExhaustion,
    Drift,
    GoalCoherence,
    RecentErrorRate,
    Repetition,
    Uncertainty,
)
from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState
from coherence.testing import metric_input

NOTHING = metric_input()
E1, E2 = [1.0, 0.0], [0.0, 1.0]
HEDGED = "Hmm, perhaps it is the parser; I'm not sure, it might be the lexer."


def after(*events: Event, config: MonitorConfig | None = None) -> AgentState:
    state = AgentState(config)
    for seq, event in enumerate(events, 1):
        state.fold(seq, float(seq), event)
    return state


def result(text: str = "ok", *, error: bool = False, tool: str = "Read") -> ToolResult:
    return ToolResult(text, error=error, tool_name=tool)


def said(*texts: str) -> list[Event]:
    return [Message("assistant", text) for text in texts]


def results(pattern: str) -> list[Event]:
    """Return a result a letter, ``x`` an error; no two alike."""
    return [result(f"{at}", error=letter == "x", tool=f"tool {at}") for at, letter in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "rate"),
    [
        ("", None),
        ("x", 0.1),  # nine that are missing count as good
        (".", 0.0),
        ("x.x.", 0.2),
        ("xxxxxxxxxx", 1.0),
        ("xxxxx..........", 0.0),  # out of the window of ten
        ("xxxxx.....x", 0.5),  # the first is out, a new one in
    ],
)
def test_the_recent_error_rate_is_windowed(pattern: str, rate: float | None) -> None:
    assert RecentErrorRate(after(*results(pattern))).compute() == rate


@pytest.mark.parametrize(
    ("events", "share"),
    [
        ([], None),
        ([result()], None),
        ([result("a"), result("b")], 0.0),
        ([result(), result()], 0.1),  # one of ten repeats; eight that are missing count as new
        ([result()] * 10, 0.9),
        ([result()] * 30, 0.9),
        ([result("same", tool="Read"), result("same", tool="Grep")], 0.0),  # another call
        ([result("a"), result("b")] * 5, 0.8),  # two different ones
        (said("one"), None),
        (said("one", "two"), 0.0),
        (said("one", "one", "two"), 0.1),
        (said(*["Z" * 500, "Y" * 500, "X" * 500]), 0.3),  # different, but monotonous
        ([*said("one", "one", "one"), result("a"), result("a")], 0.2),  # the higher share
    ],
)
def test_repetition_is_the_share_of_what_was_just_done_or_said(events: list[Event], share: float | None) -> None:
    assert Repetition(after(*events)).compute() == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("usage", "share"),
    [
        ([Usage(250, 0)], 0.25),
        ([Usage(700, 100), Usage(300, 100)], 0.4),  # the newest, with what it answered
        ([Usage(5_000, 0)], 1.0),
        ([Usage(None, 100)], None),
        ([Usage(500, 0), Compaction("short")], None),  # what is left after a compaction is not known
        ([], None),
    ],
)
def test_context_exhaustion_is_the_newest_calls_share_of_the_window(usage: list[Event], share: float | None) -> None:
    state = after(*usage, config=MonitorConfig(context_tokens=1_000))
    assert ContextExhaustion(state).compute() == share


@pytest.mark.parametrize(
    ("events", "value"),
    [
        (said("The index is off by one."), 0.0),
        (said(HEDGED), 0.4),  # 4 hedges (hmm, perhaps, not sure, might) in 14 words count as 4 / 25 / 0.08 > 1
        (said(HEDGED, "Done."), 0.2),  # 0.40 of the mean of 1 and 0
        (said(HEDGED, "Read.", "Edited.", "Tested."), 0.0),  # only the last three count
        (said("Perhaps."), 0.2),  # 0.40 * 1 / 25 / 0.08
    ],
)
def test_uncertainty_hears_hedging(events: list[Event], value: float) -> None:
    assert Uncertainty(after(*events)).compute(NOTHING) == pytest.approx(value)


def test_uncertainty_counts_retries_of_what_failed() -> None:
    def call(arguments: bytes, *, error: bool) -> list[Event]:
        return [ToolCall("Bash", msgspec.Raw(arguments), "1"), ToolResult("no", error=error, call_id="1")]

    failed = call(b'{"a":1}', error=True)
    assert Uncertainty(after(*failed, *failed)).compute(NOTHING) == pytest.approx(0.1)  # 0.20 * 1 of 2
    assert Uncertainty(after(*failed, *call(b'{"a":2}', error=True))).compute(NOTHING) == 0.0  # another call
    good = call(b'{"a":1}', error=False)
    assert Uncertainty(after(*good, *good)).compute(NOTHING) == 0.0  # nothing had failed


@pytest.mark.parametrize(
    ("wanted", "texts", "value"),
    [
        ("json", ["words"], 0.15),
        ("json", ['{"a": 1}'], 0.0),
        ("prose", ["words", "```py\n1\n```"], 0.15),
        (None, ["a", "b", "c", "```py\n1\n```"], 0.0),  # four messages have no usual form yet
        (None, ["a", "b", "c", "d", "```py\n1\n```"], 0.15),  # 4 of 5 were prose
        (None, ["a", "b", "- c\n- d", "- e\n- f", "```py\n1\n```"], 0.0),  # 2 of 5 are no usual form
    ],
)
def test_uncertainty_notices_another_form(wanted: Any, texts: list[str], value: float) -> None:
    state = after(*said(*texts), config=MonitorConfig(output_format=wanted))
    assert Uncertainty(state).compute(NOTHING) == pytest.approx(value)


def test_uncertainty_hears_an_agent_turn_to_and_fro_in_meaning() -> None:
    state = after(*said("to", "fro", "to again"))
    back = metric_input(context=[E1, E2, E1])
    # the third is nearer to the first (1) than to the second (0): 2 * 1 of 3 turns, 0.25 * 2/3
    assert Uncertainty(state).compute(back) == pytest.approx(0.25 * 2 / 3)
    onwards = metric_input(context=[E1, E1, E2])
    assert Uncertainty(state).compute(onwards) == 0.0
    often = after(*said("to", "fro", "to again", "fro again", "to once more"))
    assert Uncertainty(often).compute(metric_input(context=[E1, E2, E1, E2, E1])) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("goals", "context", "value"),
    [
        ([E1], [E1], 0.0),
        ([E1], [E2], 0.7),  # 0.7 * (1 - 0)
        ([E1, E2], [[0.6, 0.8]], 0.7 * 0.2),  # the nearest goal counts
        ([E1], [E2, E1, E1, E1, E1, E1], 0.0),  # only the last five
        ([E1], [[-1.0, 0.0]], 0.7),  # opposite is no more than 1
    ],
)
def test_drift_of_text_is_the_distance_from_the_nearest_goal(goals: Any, context: Any, value: float) -> None:
    measured = Drift(after()).compute(metric_input(goals=goals, context=context))
    assert measured == pytest.approx(value, abs=2e-4)  # vectors are rounded to float16


def test_drift_of_behaviour_is_the_divergence_of_the_latest_tools_from_the_sessions() -> None:
    data = metric_input(goals=[E1], context=[E1])
    ten = [result(f"{at}", tool="Read") for at in range(10)]
    other = [result(f"{at}", tool="Bash") for at in range(10)]
    assert Drift(after(*ten, *other[:9])).compute(data) == pytest.approx(0.0, abs=1e-6)  # 19 are too few
    assert Drift(after(*ten, *ten)).compute(data) == pytest.approx(0.0, abs=1e-6)
    # Bash (0, 1) against Read and Bash (1/2, 1/2), whose middle is (1/4, 3/4):
    # (log2(1 / 0.75) + 0.5 log2(0.5 / 0.25) + 0.5 log2(0.5 / 0.75)) / 2 = 0.3113
    divergence = (math.log2(4 / 3) + 0.5 + 0.5 * math.log2(2 / 3)) / 2
    assert Drift(after(*ten, *other)).compute(data) == pytest.approx(0.3 * divergence, abs=1e-6)


@pytest.mark.parametrize(
    ("goals", "context", "value"),
    [
        ([E1], [E1], 1.0),
        ([E1], [E2], 0.0),
        ([E1], [E2, [0.6, 0.8]], 0.6 / math.sqrt(0.6**2 + 1.8**2)),  # the sum is (0.6, 1.8)
        ([E1], [[-1.0, 0.0]], 0.0),  # no less than 0
        ([E1], [E2, E1, E1, E1, E1, E1], 1.0),  # only the last five
        ([E1], [E1, [-1.0, 0.0]], None),  # no direction is left
    ],
)
def test_goal_coherence_is_the_cosine_of_the_means(goals: Any, context: Any, value: float | None) -> None:
    measured = GoalCoherence().compute(metric_input(goals=goals, context=context))
    assert measured == (None if value is None else pytest.approx(value, abs=2e-4))  # float16


@pytest.mark.parametrize("make", [lambda: Drift(after()), GoalCoherence])
@pytest.mark.parametrize("data", [NOTHING, metric_input(goals=[E1]), metric_input(context=[E1])])
def test_goal_coherence_without_goals_or_context_distance_is_unknown(
    make: Callable[[], Any], data: MetricInput
) -> None:
    assert make().compute(data) is None


TEXTS = st.text(max_size=40) | st.sampled_from([HEDGED, "", "- a\n- b", "{}", "Z" * 500])
EVENTS = st.one_of(
    st.builds(Message, st.sampled_from(["assistant", "user", "tool"]), TEXTS),
    st.builds(result, TEXTS, error=st.booleans(), tool=st.sampled_from(["Read", "Bash"])),
    st.builds(Usage, st.integers(0, 10**6), st.integers(0, 10**6)),
    st.builds(Goal, TEXTS),
    st.builds(Compaction, TEXTS),
)


@given(st.lists(EVENTS, max_size=40))
def test_vitals_every_one_stays_in_range_whatever_happened(events: list[Event]) -> None:
    state = after(*events, config=MonitorConfig(context_tokens=1_000))
    vectors = HashingEmbedder(16).embed_batch(state.get_recent_context())
    goals = HashingEmbedder(16).embed_batch(state.get_goals())
    data = MetricInput(
        goals=goals, goals_texts=state.get_goals(), context=vectors, context_texts=state.get_recent_context()
    )
    values: list[float | None] = [metric.compute(data) for metric in (Uncertainty(state), Drift(state))]
    values += [metric(state).compute() for metric in (RecentErrorRate, Repetition, ContextExhaustion)]
    values.append(GoalCoherence().compute(data))
    assert all(value is None or 0.0 <= value <= 1.0 + 1e-6 for value in values)


def test_vitals_a_reading_holds_every_vital_or_the_reason_why_not() -> None:
    with Monitor(goal="fix the parser", embedder=HashingEmbedder()) as m:
        m.message("assistant", "Reading the parser.")
        m.tool_result("ok", tool="Read")
        m.decide()
        reading = m.latest
    assert reading is not None
    assert reading.unknown["token_usage"] == "no budget of tokens is set"
    assert reading.unknown["cost"] == "no budget of money is set"
    assert "context_tokens" in reading.unknown["context_exhaustion"]
    known = {"uncertainty", "drift", "goal_coherence", "error_rate"}
    assert all(reading.metrics[name] is not None for name in known)


class Shouting:
    name, inverted = "shouting", False

    def compute(self, data: MetricInput, /) -> float | None:
        return 0.5


def test_unmeasured_a_metric_that_takes_vectors_is_unknown_with_its_reason_where_nothing_is_embedded() -> None:
    with Monitor(goal="fix the parser", metrics=[Shouting()], embedder=False, config={"weights": "classic"}) as m:
        m.message("assistant", "READING THE PARSER.")
        m.decide()
        reading = m.latest
    assert reading is not None
    assert reading.metrics["shouting"] is None
    assert reading.unknown["shouting"] == "it takes vectors, and nothing is embedded"
    assert reading.coverage == 0.0  # it alone weighs in the classic index


def test_vitals_a_vital_can_weigh_in_the_index_and_pressure_cannot() -> None:
    with Monitor(embedder=HashingEmbedder(), config={"weights": {"error_rate": 1.0}}) as m:
        for at in range(5):
            m.tool_result(f"{at}", error=True, tool="Bash")
        m.decide()
        assert m.latest is not None
        assert m.latest.coherence_index == pytest.approx(0.5)  # 1 - 5 of 10
        assert "pressure" not in m.latest.metrics
        assert "pressure" not in m.vitals
