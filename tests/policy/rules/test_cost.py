"""Spirals foreseen before they are there, budgets that end soon, and a context that fills."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Compaction, Usage
from coherence.policy.rules.cost import ContextExhaustionRule, CostSpiral, forecast, usual_level
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)


def spent(tokens: Sequence[float], config: MonitorConfig | None = None) -> AgentState:
    state = AgentState(config)
    for seq, count in enumerate(tokens, 1):
        state.fold(seq, float(seq), Usage(input_tokens=int(count)))
    return state


def spiral(tokens: Sequence[float]) -> Finding:
    finding = CostSpiral()(spent(tokens), None, CALM)
    assert finding is not None
    return finding


def test_cost_spiral_without_model_calls_it_does_not_apply() -> None:
    assert CostSpiral()(AgentState(), None, CALM) is None


@pytest.mark.parametrize("factor", [1.3, 1.5, 2.0])
def test_cost_spiral_growth_by_a_factor_is_foreseen_before_ten_times_the_usual(factor: float) -> None:
    life = [4_000.0] * 10
    while not spiral(life).active:
        life.append(life[-1] * factor)
        assert life[-1] < 10 * 4_000.0
    found = spiral(life)
    assert 0.5 <= found.score <= 1.0 and found.evidence == tuple(range(len(life) - 4, len(life) + 1))


def test_cost_spiral_what_it_says() -> None:
    # log1.5 of the window over 4,000 is 0, 0, 1, 2, 3: mean 1.2, slope (2 * 1 + 3 * 2) / 10 = 0.8, so 1.5^0.8 = 1.38;
    # residuals 0.4, -0.4, -0.2, 0, 0.2: s^2 = 0.4 / 3. Five calls on (distance 7) 1.2 + 5.6 = 6.8 +- 2.353 *
    # sqrt(0.4 / 3 * (1 + 0.2 + 4.9)) = 2.12: 4,000 * 1.5^4.68 = 26,700 and 4,000 * 1.5^8.92 = 149,000.
    found = spiral([4_000] * 10 + [6_000, 9_000, 13_500])
    assert found.why == (
        "the tokens of a model call grew 1.4-fold each call, from 4,000 to 13,500 within 5 calls; "
        "5 calls on, 27,000 to 150,000 are expected where 4,000 would be usual"
    )
    assert found.severity == "guide"
    assert spiral([4_000] * 10 + [6_000, 9_000, 13_500, 20_250]).severity == "warn"  # 5 x the usual by now


@pytest.mark.parametrize(
    "life",
    [
        [4_000 + 1_500 * at for at in range(30)],  # even growth
        [200 * (at + 1) for at in range(30)],  # even growth from nothing
        [4_000] * 10 + [4_400, 4_840, 5_324, 5_856],  # 10 % a call
        [4_000] * 10 + [40_000] * 4,  # one leap
        [4_000] * 10 + [24_000, 44_000, 64_000, 84_000],  # large files one after another: the same amount each call
        [9_000, 1_000, 12_000, 900] * 6,  # two models in turn
        [150_000] * 12 + [20_000, 30_000, 45_000, 67_500],  # after a compaction, below what was usual
        [9_000] * 10 + [500, 1_000, 2_000, 4_000, 8_000],  # below what was usual before
        [1_000, 2_000, 4_000, 8_000, 16_000, 1_100, 2_200, 4_400, 8_800, 17_000],  # each task begins like that
        [4_000] * 4 + [6_000, 9_000, 13_500, 20_250],  # too early to know what is usual
    ],
)
def test_cost_spiral_healthy_growth_stays_quiet(life: list[int]) -> None:
    for end in range(1, len(life) + 1):
        assert not spiral(life[:end]).active


def test_cost_spiral_it_is_quiet_again_once_calls_are_small() -> None:
    life = [4_000.0] * 10 + [6_000.0, 9_000.0, 13_500.0]
    assert spiral(life).active
    assert spiral([*life, 4_000.0]).score == 0.0


def test_cost_spiral_money_spirals_too() -> None:
    state = AgentState()
    for seq, dollars in enumerate([0.01] * 10 + [0.02, 0.04, 0.08], 1):
        state.fold(seq, float(seq), Usage(cost_usd=dollars))
    found = CostSpiral()(state, None, CALM)
    assert found is not None and found.active
    assert found.why.startswith(
        "the US dollars of a model call grew 1.7-fold each call, from 0.01 to 0.08 within 5 calls"
    )


@pytest.mark.parametrize(
    "tokens", [[2**53] * 30, [0] * 30, [1] * 15 + [2**53] * 15, [10**at for at in range(15)] * 2, [1, 10**15] * 15]
)
def test_cost_spiral_numbers_of_any_size_are_taken(tokens: list[int]) -> None:
    for end in range(1, 31):
        assert 0.0 <= spiral(tokens[:end]).score <= 1.0


def test_the_interval_of_a_forecast_holds_what_comes_without_noise() -> None:
    values = [3.0] * 5 + [1.5**at * 4.0 for at in range(5)]
    expected = forecast(values, 4)
    assert expected is not None
    assert expected.growth == pytest.approx(1.5)
    assert expected.lower == pytest.approx(4.0 * 1.5**8) == expected.upper
    assert expected.usual == 3.0
    noisy = forecast([*values[:-1], values[-1] * 1.1], 4)
    assert noisy is not None and noisy.lower < 4.0 * 1.5**8 < noisy.upper


def test_forecast_the_interval_is_that_of_the_textbook() -> None:
    # log2 of the window is 0, 1, 2, 3, 5: mean 2.2, slope (-1 + 3 + 2 * 5) / 10 = 1.2, residuals 0.2, 0, -0.2, -0.4,
    # 0.4: s^2 = 0.4 / 3. One step ahead (distance 3): 2.2 + 3.6 = 5.8 +- 2.353 sqrt(0.4 / 3 * (1 + 0.2 + 0.9)).
    expected = forecast([1.0] * 5 + [1.0, 2.0, 4.0, 8.0, 32.0], 1)
    assert expected is not None
    margin = 2.353 * (0.4 / 3 * 2.1) ** 0.5
    assert expected.lower == pytest.approx(2 ** (5.8 - margin))
    assert expected.upper == pytest.approx(2 ** (5.8 + margin))
    assert expected.growth == pytest.approx(2**1.2)


def test_usual_level_what_is_usual_follows_even_growth_but_not_a_single_peak() -> None:
    assert usual_level([1.0, 2.0, 3.0, 4.0, 5.0], 10) == 15.0
    assert usual_level([5.0, 5.0, 9.0, 5.0, 5.0], 10) == 9.0
    assert usual_level([5.0, 4.0, 3.0, 2.0, 1.0], 10) == 5.0


def full(tokens: Sequence[float], size: int | None = 100_000) -> Finding | None:
    return ContextExhaustionRule()(spent(tokens, MonitorConfig(context_tokens=size)), None, CALM)


def test_context_exhaustion_rule_a_context_that_is_nearly_full_says_when_it_will_be() -> None:
    found = full([70_000, 75_000, 80_000])
    assert found is not None
    assert (found.active, found.severity, found.score, found.threshold) == (True, "guide", 0.8, 0.8)
    assert found.why == "80,000 of 100,000 tokens of context are used (80%); at 5,000 more a call it is full in 4 calls"
    assert found.evidence == (3,)
    nearly = full([79_999])
    assert nearly is not None and not nearly.active
    late = full([90_000, 95_000])
    assert late is not None and late.severity == "warn" and late.why.endswith("full in 1 call")
    over = full([90_000, 120_000])
    assert over is not None and (over.score, over.why) == (1.0, "120,000 of 100,000 tokens of context are used (120%)")


def test_context_exhaustion_rule_growth_before_a_compaction_does_not_count() -> None:
    found = full([20_000, 90_000, 10_000, 80_000, 82_000])
    assert found is not None and found.why.endswith(
        "at 36,000 more a call it is full in 1 call"
    )  # (70,000 + 2,000) / 2


def test_context_exhaustion_rule_a_small_context_is_quiet_and_an_unknown_one_does_not_apply() -> None:
    found = full([30_000])
    assert found is not None and (found.score, found.active, found.why) == (0.3, False, "")
    assert full([90_000], None) is None and full([]) is None
    state = spent([90_000], MonitorConfig(context_tokens=100_000))
    state.fold(2, 2.0, Compaction("short"))
    assert ContextExhaustionRule()(state, None, CALM) is None
