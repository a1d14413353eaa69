"""One appraiser, fed events and readings by hand."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from coherence.baseline.appraiser import Appraiser, AppraiserState, SignalBaseline
from coherence.core.config import Budget, MonitorConfig, PressureConfig
from coherence.core.decisions import Appraisal, Mode
from coherence.core.events import Event, Message, ToolResult, Usage
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.detect.detector import Observed
from coherence.state.reducer import AgentState


def reading(**metrics: float | None) -> Reading:
    found: FrozenDict[str, float | None] = FrozenDict(metrics)
    return Reading(tick_seq=1, ts=0.0, metrics=found, coherence_index=None, band=Band.UNKNOWN, coverage=0.0)


class Agent:
    def __init__(self, config: MonitorConfig | None = None, budget: Budget | None = None) -> None:
        self.config = config or MonitorConfig()
        self.state = AgentState(self.config)
        self.appraiser = Appraiser(self.state, budget)
        self.seq = 0

    @property
    def mode(self) -> str:
        return str(self.appraiser.mode)

    @property
    def mood(self) -> AppraiserState:
        return self.appraiser.mood

    def do(self, *events: Event) -> None:
        for event in events:
            self.seq += 1
            self.state.fold(self.seq, float(self.seq), event)
            self.appraiser.observe(Observed.of(event))

    def good(self, n: int = 1) -> None:
        for _ in range(n):
            self.do(ToolResult(f"result {self.seq}", tool_name=f"tool {self.seq}"))

    def bad(self, n: int = 1) -> None:
        for _ in range(n):
            self.do(ToolResult(f"error {self.seq}", error=True, tool_name=f"tool {self.seq}"))

    def measure(self, **values: float | None) -> Appraisal:
        """Take a step and appraise what was measured at it."""
        self.good()
        return self.appraiser.appraise(reading(**values))


def quiet(**numbers: Any) -> MonitorConfig:
    """Without anything that depends on errors or on how new a baseline is."""
    return MonitorConfig(pressure=PressureConfig(cold_std=0.0, **numbers))


def test_usual_a_sample_is_compared_before_it_is_learned() -> None:
    agent = Agent(quiet())
    agent.measure(uncertainty=0.2)
    signal = agent.measure(uncertainty=0.56).signals["uncertainty"]
    # against 0.2 alone: (0.56 - 0.2) / 0.18; had it been learned first, usual would be 0.2288
    assert [signal.usual, signal.z] == pytest.approx([0.2, 2.0])
    assert agent.mood.baselines["uncertainty"].mean == pytest.approx(0.08 * 0.56 + 0.92 * 0.2)


def test_mood_a_new_baseline_is_trusted_more_and_more() -> None:
    agent = Agent()
    for _ in range(12):
        agent.measure(uncertainty=0.2)
        baseline = agent.mood.baselines["uncertainty"]
        std = 0.18 + 0.14 * (1 - min(baseline.count / 10, 1.0)) ** 6
        probe = Agent()
        probe.appraiser.data = msgspec.msgpack.decode(msgspec.msgpack.encode(agent.mood), type=AppraiserState)
        assert probe.measure(uncertainty=0.4).signals["uncertainty"].z == pytest.approx(0.2 / std)


def test_mood_what_comes_while_the_agent_fails_is_not_learned() -> None:
    agent = Agent()
    agent.good(20)
    before = msgspec.to_builtins(agent.mood.baselines)
    agent.bad(50)
    agent.appraiser.appraise(reading(uncertainty=0.9, drift=0.9))
    agent.do(Usage(1_000, 1_000, 1.0))
    after = msgspec.to_builtins(agent.mood.baselines)
    assert {name: after[name] for name in before} == before
    assert all(after[name]["count"] == 0 for name in after.keys() - before.keys())


def test_mood_a_run_of_failures_does_not_become_the_new_normal() -> None:
    agent = Agent()
    agent.good(30)
    agent.bad(500)
    assert agent.mood.baselines["error_rate"].mean == 0.0
    assert agent.mode == "block"
    agent.good(10)  # while the errors leave the window, rates below 0.55 are learned: 0.5, 0.4, 0.3, 0.2, 0.1, 0
    assert agent.mood.baselines["error_rate"].mean < 0.12


def test_mood_a_sample_too_unusual_is_not_learned_until_it_lasts() -> None:
    agent = Agent(quiet())
    for _ in range(10):
        agent.measure(uncertainty=0.1)
    for _ in range(20):  # z = (0.9 - 0.1) / 0.18 = 4.4, pressure 0.81 >= 0.5
        agent.measure(uncertainty=0.9)
        assert agent.mood.baselines["uncertainty"].mean == pytest.approx(0.1)
    agent.measure(uncertainty=0.9)  # the 21st in a row: this is how the agent is now
    assert agent.mood.baselines["uncertainty"].mean == pytest.approx(0.08 * 0.9 + 0.92 * 0.1)


def test_mood_a_rate_of_errors_never_becomes_usual_however_long_it_lasts() -> None:
    agent = Agent()
    for _ in range(60):  # nine of ten fail; the one that does not is the only moment to learn at
        agent.bad(9)
        agent.good()
    assert agent.mood.baselines["error_rate"].mean < 0.01
    assert agent.mood.baselines["error_rate"].refused > 20


def test_signal_baseline_a_rate_of_errors_presses_even_where_it_is_usual() -> None:
    agent = Agent()
    agent.mood.baselines["error_rate"] = SignalBaseline(mean=0.6, count=50)
    for _ in range(5):
        agent.bad()
        agent.good()
    # 5 of 10 is less than usual, so z is 0; as such it presses with (0.5 - 0.1) / 0.9
    assert agent.mood.signals["error_rate"].pressure == pytest.approx(4 / 9)


def test_appraise_a_second_tick_after_a_step_teaches_nothing() -> None:
    agent = Agent()
    agent.measure(uncertainty=0.2)
    for _ in range(5):
        agent.appraiser.appraise(reading(uncertainty=0.4))
    assert agent.mood.baselines["uncertainty"].count == 1


def test_appraiser_state_baselines_survive_a_restart() -> None:
    agent = Agent()
    for value in (0.1, 0.2, 0.3):
        agent.measure(uncertainty=value)
    kept = msgspec.msgpack.encode(agent.mood)
    again = Agent()
    again.appraiser.data = msgspec.msgpack.decode(kept, type=AppraiserState)
    again.state.restore(agent.state.facts)
    assert again.measure(uncertainty=0.5) == agent.measure(uncertainty=0.5)


def test_mood_errors_in_a_row_have_the_written_least_pressures() -> None:
    agent = Agent()
    agent.good(30)
    pressures = []
    for _ in range(9):
        agent.bad()
        pressures.append(agent.mood.pressure)
    # 0.76 holds from the 7th on; the rate's own floor 0.10 + 0.60 (rate - 0.2) / 0.8 stays below until 0.7
    assert pressures == [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.76, 0.76, 0.76]
    assert agent.mood.floor == "9 errors in a row"


def test_mood_identical_calls_with_identical_results_have_the_written_least_pressures() -> None:
    agent = Agent(quiet(weights={"repetition": 0.0}))
    pressures = []
    for _ in range(20):
        agent.do(ToolResult("clean", tool_name="git status"))
        pressures.append(agent.mood.pressure)
    assert pressures[:5] == [0.0, 0.0, 0.0, 0.0, 0.15]
    assert pressures[7] == 0.25  # guide at the 8th
    assert pressures[14:] == [0.45] * 6  # and never warn
    assert agent.mood.floor == "20 identical calls with identical results in a row"


def test_usage_presses_by_its_share_of_a_budget_too() -> None:
    agent = Agent(budget=Budget(tokens=1_000, cost_usd=1.0))
    agent.do(Usage(475, 0, 0.5))
    # sigmoid((0.475 - 0.5) / 0.15) = 0, and at 50 % it is still 0
    assert agent.mood.signals["token_usage"].pressure == agent.mood.signals["cost"].pressure == 0.0
    agent.do(Usage(475, 0, 0.45))
    # 95 % of both: z = 0.45 / 0.15 = 3, and the velocity is as usual
    assert agent.mood.signals["token_usage"].pressure == pytest.approx(0.5)
    assert agent.mood.signals["cost"].pressure == pytest.approx(0.5)


def test_mode_a_full_context_guides_and_a_half_full_one_does_not() -> None:
    agent = Agent(MonitorConfig(context_tokens=1_000))
    for used, pressure in ((500, 0.0), (800, 0.2689414213699951), (950, 0.5)):  # z = 0, 2, 3
        agent.do(Usage(used, 0))
        assert agent.mood.signals["context_exhaustion"].pressure == pytest.approx(pressure)
        assert agent.mode == "observe"
    agent.do(Usage(1_000, 0))
    assert agent.mode == "guide"


def test_appraiser_goal_coherence_presses_when_it_falls() -> None:
    agent = Agent(quiet())
    agent.measure(goal_coherence=0.8)
    signal = agent.measure(goal_coherence=0.4).signals["goal_coherence"]
    assert [signal.value, signal.z] == pytest.approx([0.6, 2.0])  # (0.6 - 0.2) / 0.2


def test_appraiser_drift_counts_only_beside_errors_or_uncertainty() -> None:
    agent = Agent(quiet())
    agent.measure(drift=0.1)
    assert agent.measure(drift=1.0).pressure == 0.0  # a change of topic
    unsure = agent.measure(drift=1.0, uncertainty=0.31)
    assert unsure.pressure > 0.25


def test_mood_an_unknown_signal_is_calm_or_left_out() -> None:
    calm, left_out = Agent(quiet()), Agent(quiet(unknown_is_calm=False))
    for agent in (calm, left_out):
        agent.measure(uncertainty=0.0)
        agent.measure(uncertainty=1.0)  # z = 5.6, pressure 0.93
    pressure = calm.mood.signals["uncertainty"].pressure
    # its weight is 1 of all 10.3, against 1 of those of uncertainty, error rate and repetition (3.5)
    assert calm.mood.pressure == pytest.approx(0.7 * pressure / 10.3 + 0.3 * pressure)
    assert left_out.mood.pressure == pytest.approx(0.7 * pressure / 3.5 + 0.3 * pressure)


HOSTILE = [
    Usage(input_tokens=-5, cost_usd=math.nan),
    Usage(input_tokens=-(10**30), output_tokens=10**30),
    Usage(output_tokens=2**53 + 1, cost_usd=math.inf),
    Usage(cost_usd=-math.inf),
    Usage(cost_usd=-1.0),
    ToolResult("ok", duration_s=math.inf),
    ToolResult("ok", duration_s=math.nan),
    Message("assistant", "\x00" * 500),
]


@pytest.mark.parametrize("event", HOSTILE, ids=repr)
def test_an_impossible_number_changes_no_baseline_and_no_mode(event: Event) -> None:
    agent, spared = Agent(), Agent()
    for one in (agent, spared):
        for at in range(20):
            one.do(Usage(1_000 + at, 100, 0.01), ToolResult(f"{at}", tool_name=f"{at}"))
    agent.do(event)
    assert agent.mode == "observe"
    for one in (agent, spared):
        one.do(Usage(1_000, 100, 0.01), ToolResult("next", tool_name="next"))
    for name in ("token_usage", "cost"):
        assert agent.mood.baselines[name] == spared.mood.baselines[name]
    assert all(math.isfinite(baseline.mean + baseline.variance) for baseline in agent.mood.baselines.values())
    agent.do(Usage(100_000, 10_000, 1.0))
    assert agent.mode == "guide"  # a x100 spike still shows


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300, -5.0])
def test_mood_an_impossible_reading_poisons_nothing(bad: float) -> None:
    agent = Agent(quiet())
    for _ in range(5):
        agent.measure(uncertainty=0.2, drift=0.2, goal_coherence=0.5)
    agent.good()
    agent.appraiser.appraise(reading(uncertainty=bad, drift=bad, goal_coherence=bad))
    assert 0.0 <= agent.mood.pressure <= 1.0
    assert ("uncertainty" in agent.mood.signals) is math.isfinite(bad)  # NaN and infinity are unknown
    for _ in range(5):
        appraisal = agent.measure(uncertainty=0.2, drift=0.2, goal_coherence=0.5)
    assert appraisal.mode is Mode.OBSERVE
    assert all(0.0 <= baseline.mean <= 1.0 for baseline in agent.mood.baselines.values())


@pytest.mark.parametrize(
    ("usage", "signal", "value"),
    [
        (Usage(0), "token_usage", 0.0),
        (Usage(999), "token_usage", math.log(1_000) / math.log(10_000_001)),  # log1p(999) / log1p(1e7) = 0.4286
        (Usage(2**53), "token_usage", 1.0),
        (Usage(cost_usd=0.0), "cost", 0.0),
        (Usage(cost_usd=1.0), "cost", math.log(1e6 + 1) / math.log(1e9 + 1)),  # 2/3
        (Usage(cost_usd=1e12), "cost", 1.0),
    ],
)
def test_mood_the_velocity_of_tokens_and_cost_is_logarithmic(usage: Usage, signal: str, value: float) -> None:
    agent = Agent()
    agent.do(usage)
    found = agent.mood.signals[signal]
    assert found.value == pytest.approx(value)
    assert (found.usual, found.z) == (None, 0.0), "the first sample of a life is compared with nothing"
