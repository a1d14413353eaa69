"""States: every code, both directions of movement, names, and what follows from each."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.router.lines import LINES, TERMS, line_scores
from coherence.guard.router.policy import AUTO_APPLY, KNOBS, RULES, policy_of
from coherence.guard.router.states import NAMES, Line, State, make_state

CODES = ["".join(bits) for bits in itertools.product("01", repeat=6)]
SCORES = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=6, max_size=6)
TRENDS = st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=6, max_size=6)


def first(score: float | None, trend: float | None = None) -> Line:
    return make_state([score, 1, 1, 1, 1, 1], [trend, None, None, None, None, None]).lines[0]


@pytest.mark.parametrize("code", CODES)
def test_make_state_every_state_is_reached_from_measures(code: str) -> None:
    measures = {}
    for line, bit in zip(LINES, code, strict=True):
        for name, term in TERMS[line].items():
            measures[name] = term.good if bit == "1" else term.bad
    state = make_state(line_scores(measures))
    assert state.code == code
    assert state.changed == "111111"  # all yin lines are at 0, so all of them move
    assert state.name == NAMES.get(code, "mixed")


def test_a_line_is_yang_from_060_on() -> None:
    assert first(0.60).yang
    assert not first(0.5999).yang
    assert first(None).yang
    assert first(None).moving is None


def test_a_yin_line_moves_below_045_whatever_its_trend() -> None:
    assert first(0.4499).moving == "rising"
    assert first(0.4499, -0.4).moving == "rising"
    assert first(0.45).moving is None


@pytest.mark.parametrize(
    ("score", "trend", "moving"),
    [
        (0.50, 0.25, "rising"),  # forecast 0.75
        (0.50, 0.24, None),
        (0.70, -0.26, "falling"),  # forecast 0.44
        (0.70, -0.25, None),  # forecast 0.45
        (1.0, -0.56, "falling"),
        (0.60, 0.4, None),  # a yang line that rises stays
        (0.50, -0.04, None),  # a yin line that falls, and is not yet too weak
    ],
)
def test_the_trend_moves_a_line_in_both_directions(score: float, trend: float, moving: str | None) -> None:
    assert first(score, trend).moving == moving


@given(SCORES, TRENDS)
def test_changed_is_the_code_with_the_moving_lines_turned(
    scores: list[float | None], trends: list[float | None]
) -> None:
    state = make_state(scores, trends)
    turned = [str(int(bit != (number in state.moving))) for number, bit in enumerate(map(int, state.code), 1)]
    assert state.changed == "".join(turned)
    for line in state.lines:
        assert line.moving != ("falling" if not line.yang else "rising")


@pytest.mark.parametrize(("code", "name"), sorted(NAMES.items()))
def test_make_state_the_classic_eight_have_their_names(code: str, name: str) -> None:
    assert make_state([float(bit) for bit in code]).name == name


@pytest.mark.parametrize("scores", [[1.0] * 5, [1.0] * 7, [1.1, *[1.0] * 5], [-0.1, *[1.0] * 5]])
def test_make_state_other_than_six_scores_in_range_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        make_state(scores)
    with pytest.raises(ValueError, match="trends"):
        make_state([1.0] * 6, [2.0] * 6)


@given(SCORES, TRENDS)
def test_make_state_a_patch_is_small_and_within_its_bounds(
    scores: list[float | None], trends: list[float | None]
) -> None:
    state = make_state(scores, trends)
    patch = policy_of(state)
    assert len(patch) <= 8
    assert len(json.dumps(patch)) < 200
    assert patch.pop(AUTO_APPLY, False) is False
    for key, value in patch.items():
        low, high = sorted((KNOBS[key].calm, KNOBS[key].strict))
        assert low <= value <= high
        assert type(value) is type(KNOBS[key].calm)
    if not state.known:
        assert patch == {}


def strictness(state: State) -> dict[str, float]:
    """Return how strict each key is, from 0 (calm) to 1."""
    patch = policy_of(state)
    return {key: (patch[key] - knob.calm) / (knob.strict - knob.calm) for key, knob in KNOBS.items()}


@pytest.mark.parametrize("code", CODES)
def test_make_state_a_further_weak_line_never_loosens_a_patch(code: str) -> None:
    here = strictness(make_state([float(bit) for bit in code]))
    for at in range(6):
        weaker = strictness(make_state([0.0 if at == other else float(bit) for other, bit in enumerate(code)]))
        assert all(weaker[key] >= here[key] for key in KNOBS)
        own = {key for key in RULES[LINES[at]] if key != "canary_share"}
        assert all(weaker[key] == 1.0 for key in own)


def test_make_state_calm_values_come_back_only_where_all_lines_with_a_say_are_known() -> None:
    assert policy_of(make_state([1.0] * 6)) == {key: knob.calm for key, knob in KNOBS.items()}
    partly = policy_of(make_state([1.0, 1.0, 1.0, 1.0, None, 1.0]))  # collaboration has a say in two keys
    assert set(KNOBS) - set(partly) == {"serial", "canary_share"}
    weak = policy_of(make_state([None, 0.0, None, None, None, None]))
    assert weak == {"canary_share": 0.05, "serial": True, "context_share": 0.75}


def test_make_state_a_falling_line_is_treated_as_weak_before_it_is() -> None:
    calm, falling = make_state([1.0] * 6), make_state([0.8, *[1.0] * 5], [-0.4, *[0.0] * 5])
    assert calm.code == falling.code
    assert policy_of(falling)["fallback"] is True
    assert policy_of(calm)["fallback"] is False


def test_make_state_weak_governance_makes_a_patch_wait_for_a_person() -> None:
    assert policy_of(make_state([*[1.0] * 5, 0.0]))[AUTO_APPLY] is False
    assert AUTO_APPLY not in policy_of(make_state([1.0] * 6))
