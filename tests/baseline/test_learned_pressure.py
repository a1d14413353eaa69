from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.baseline.learned_pressure import ENOUGH, learn_pressure
from coherence.core.config import PressureConfig
from coherence.core.decisions import Appraisal, Mode, Signal
from coherence.core.events import Source
from coherence.core.readings import FrozenDict
from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder

START = PressureConfig()


def ticks(n: int, z: float = 0.5, pressure: float = 0.1, floor: str = "") -> list[Appraisal]:
    signals: FrozenDict[str, Signal] = FrozenDict(uncertainty=Signal(0.2, 0.1, z, pressure))
    return [Appraisal(seq=at, pressure=pressure, mode=Mode.OBSERVE, signals=signals, floor=floor) for at in range(n)]


def test_learn_pressure_too_short_a_history_teaches_nothing() -> None:
    assert learn_pressure(START, ticks(ENOUGH - 1), "agent a") == START
    assert learn_pressure(START, ticks(ENOUGH), "agent a").learned_from == "200 calm ticks of agent a"


def test_learn_pressure_moments_of_failure_are_left_out() -> None:
    failing = ticks(500, pressure=0.9, z=9.0, floor="8 errors in a row")
    assert learn_pressure(START, failing, "agent a") == START
    calm = ticks(ENOUGH)
    assert learn_pressure(START, [*calm, *failing], "agent a") == learn_pressure(START, calm, "agent a")


def test_learn_pressure_the_shift_puts_the_99_percent_quantile_of_z_at_a_pressure_of_a_quarter() -> None:
    # log 3 + 2 = 3.0986: 1 / (1 + e^(3.0986 - 2)) = 1 / (1 + 3)
    assert learn_pressure(START, ticks(300, z=2.0), "agent a").shift == 3.0986


def test_learn_pressure_the_blend_shrinks_as_far_as_single_signals_are_loud() -> None:
    assert learn_pressure(START, ticks(300, pressure=0.25), "agent a").max_share == 0.3
    assert learn_pressure(START, ticks(300, pressure=0.5), "agent a").max_share == 0.15  # 0.3 * 0.25 / 0.5


def test_learn_pressure_the_thresholds_lie_above_what_the_pressure_would_have_been() -> None:
    learned = learn_pressure(START, ticks(300, z=6.0, pressure=0.25), "agent a")
    # shift 5 (bounded), so each tick's pressure is sigmoid(6 - 5) = 0.7311; times 0.7 * 1/10.3 + 0.3
    assert learned.shift == 5.0
    assert learned.guide == pytest.approx(0.7311 * (0.7 / 10.3 + 0.3) + 0.05, abs=1e-4)
    assert [learned.warn, learned.block] == pytest.approx([learned.guide + 0.1, learned.guide + 0.35])


def test_learn_pressure_however_loud_a_history_was_an_agent_can_still_be_blocked() -> None:
    signals: FrozenDict[str, Signal] = FrozenDict({name: Signal(1.0, 0.0, 9.0, 1.0) for name in START.weights})
    loud = [Appraisal(seq=at, pressure=1.0, mode=Mode.BLOCK, signals=signals) for at in range(300)]
    learned = learn_pressure(START, loud, "agent a")
    # every quantile is 1, so each threshold is at its bound; 0.76 is what the 7th error in a row reaches
    assert (learned.guide, learned.warn, learned.block) == (0.40, 0.60, 0.76)


@examples(50)
@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1)), min_size=1, max_size=5))
def test_learn_pressure_what_is_learned_is_bounded_and_in_order_and_a_burst_of_errors_still_blocks(
    kinds: list[tuple[float, float]],
) -> None:
    history = [tick for z, pressure in kinds for tick in ticks(ENOUGH, z, pressure)]
    learned = learn_pressure(START, history, "agent a")
    assert 0.22 <= learned.guide <= 0.40 <= learned.warn <= 0.60 < 0.65 <= learned.block <= 0.76
    assert 2.5 <= learned.shift <= 5.0
    assert 0.1 <= learned.max_share <= 0.3
    assert learned.streak_floor[0] < learned.guide  # an isolated error is none of these
    assert learned.streak_floor[4] >= learned.warn  # warn at the 5th error in a row
    assert learned.streak_floor[6] >= learned.block  # block at the 7th


def live(path: Path, session: str, calls: int, source: Source = "api") -> PressureConfig:
    """Live a calm session, then fail; return what its thresholds were."""
    with Monitor(
        store=path, session=session, source=source, embedder=HashingEmbedder(), config={"learn_pressure": True}
    ) as m:
        for at in range(calls):
            m.tool_result(f"page {at} of the book", tool=("Read", "Grep")[at % 2])
        m.decide()
        verdict = m.result
        assert verdict is not None
        for at in range(8):
            m.tool_result(f"error {at}", error=True, tool="Bash")
        assert m.decide().kind == "block"
        learned = verdict.appraisal.learned_from
        assert learned in m.decide().message
        return PressureConfig(learned_from=learned)


def test_learned_pressure_a_second_session_says_from_whose_history_it_learned(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    assert live(path, "one", 220).learned_from == ""
    learned = live(path, "two", 5).learned_from
    assert learned.endswith("calm ticks of agent main")
    assert int(learned.split()[0]) >= 200


def test_learned_pressure_sessions_of_tests_teach_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    live(path, "one", 220, source="test")
    assert live(path, "two", 5).learned_from == ""
