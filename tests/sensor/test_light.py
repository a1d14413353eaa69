"""One light: index, band and decision out of one function, which cannot disagree."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.decisions import KINDS, DecisionKind
from coherence.core.readings import POLICY, Band, FrozenDict, scale_in_words
from coherence.core.scale import Curve, Scale
from coherence.core.signs import said
from coherence.sensor.light import (
    ANY,
    BANDS,
    DEFAULT_CURVE,
    PRIOR,
    Asked,
    Edges,
    combine,
    monitor_scale,
    scale_for,
    share_of_risk,
    shipped_scales,
    with_own,
)

STUCK = Scale(
    name="test",
    embedder="",
    base=-3.5,
    curves=FrozenDict(stall=Curve((0.2, 0.6), (0.0, 3.0)), drift=Curve((0.0, 1.0), (0.0, 2.0))),
    asks=FrozenDict(ungrounded_answer="guide"),
)

VALUES = st.none() | st.floats(0.0, 1.0)
RULES = st.sampled_from(["pressure", "ungrounded_answer", "budget.calls", "mine"])
ASKED = st.lists(st.builds(Asked, RULES, st.sampled_from(KINDS), st.booleans()), max_size=4)
EDGES = st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3, unique=True).map(lambda found: sorted(found)[::-1])


@given(stall=VALUES, drift=VALUES, asked=ASKED, edges=EDGES, prior=st.floats(0.001, 0.9))
def test_combine_index_band_and_decision_never_disagree(
    stall: float | None, drift: float | None, asked: list[Asked], edges: list[float], prior: float
) -> None:
    light = combine({"stall": stall, "drift": drift}, STUCK, asked, edges=edges, prior=prior)
    allowed = {
        Band.UNKNOWN: {"continue"},
        Band.GREEN: {"continue"},
        Band.YELLOW: {"continue", "guide"},
        Band.ORANGE: {"warn"},
        Band.RED: {"block"},
    }
    assert light.kind in allowed[light.band]
    if light.index is None:
        assert light.band is Band.UNKNOWN and light.risk is None
        return
    limits = (1.0, *edges, 0.0)
    place = BANDS.index(light.band)
    assert limits[place + 1] <= light.index <= limits[place]
    assert place == 0 or light.index < limits[place]  # an edge belongs to the better band


@given(low=st.floats(0.0, 1.0), high=st.floats(0.0, 1.0), drift=VALUES)
def test_combine_more_of_a_sign_is_never_better(low: float, high: float, drift: float | None) -> None:
    low, high = sorted((low, high))
    risks = [combine({"stall": value, "drift": drift}, STUCK).risk or 0.0 for value in (low, high)]
    assert risks[0] <= risks[1]


def test_combine_the_sum_of_log_odds_is_the_risk() -> None:
    light = combine({"stall": 0.4, "drift": 0.5}, STUCK)
    odds = -3.5 + 1.5 + 1.0  # the base, half of the stall's curve, half of the drift's
    assert light.risk == pytest.approx(1.0 / (1.0 + math.exp(-odds)))
    assert dict(light.pulls) == pytest.approx({"stall": 1.5, "drift": 1.0})
    assert (light.cause, light.coverage) == ("stall", 1.0)
    assert sum(share_of_risk(light).values()) == pytest.approx(light.risk)


def test_combine_a_prior_moves_the_odds_by_its_own() -> None:
    shipped, doubled = (combine({"stall": 0.4}, STUCK, prior=prior).risk or 0.0 for prior in (PRIOR, 0.06))
    ratio = doubled / (1 - doubled) / (shipped / (1 - shipped))
    assert ratio == pytest.approx(0.06 / 0.94 / (PRIOR / (1 - PRIOR)))


def test_combine_what_is_unknown_is_silent_and_lowers_the_coverage() -> None:
    light = combine({"stall": 0.4, "drift": None}, STUCK)
    assert light.risk == combine({"stall": 0.4}, STUCK).risk
    assert light.coverage == pytest.approx(3.0 / 5.0)
    assert combine({"stall": None, "drift": None}, STUCK).band is Band.UNKNOWN
    assert combine({}, STUCK).index is None


@pytest.mark.parametrize(
    ("kind", "band", "decision"),
    [
        ("continue", Band.GREEN, "continue"),
        ("guide", Band.YELLOW, "guide"),
        ("warn", Band.ORANGE, "warn"),
        ("block", Band.RED, "block"),
    ],
)
def test_combine_what_a_rule_asks_for_colours_the_light(kind: DecisionKind, band: Band, decision: str) -> None:
    light = combine({"stall": 0.0}, STUCK, [Asked("mine", kind)])
    assert (light.band, light.kind) == (band, decision)
    assert light.risk == combine({"stall": 0.0}, STUCK).risk  # the calibrated value is kept
    assert light.cause == ("mine" if kind != "continue" else "")


def test_combine_a_block_by_policy_is_red_even_where_nothing_is_known() -> None:
    asked = [Asked("budget.calls", "block", policy=True)]
    for signs in ({"stall": 0.0}, {"stall": None}):
        light = combine(signs, STUCK, asked)
        assert (light.band, light.kind, light.cause) == (Band.RED, "block", POLICY)
        assert light.index is not None and light.index < Edges().orange


def test_combine_signs_alone_never_block() -> None:
    light = combine({"stall": 1.0, "drift": 1.0}, msgspec_replace(STUCK, base=20.0))
    assert light.risk is not None and light.risk > 0.999
    assert (light.band, light.kind) == (Band.ORANGE, "warn")


def msgspec_replace(scale: Scale, *, base: float) -> Scale:
    return Scale(name=scale.name, embedder=scale.embedder, base=base, curves=scale.curves, asks=scale.asks)


def test_with_own_a_metric_of_somebody_else_has_the_stated_curve() -> None:
    scale = with_own(STUCK, ["mine", "stall"])
    assert scale.curves["mine"] == DEFAULT_CURVE and scale.curves["stall"] == STUCK.curves["stall"]
    assert with_own(STUCK, ["stall"]) is STUCK


def test_shipped_scales_rise_and_say_what_they_mean() -> None:
    scales = shipped_scales()
    assert scale_for("unheard of") is scales[ANY] is scale_for(None)
    assert len(scales) == 2
    for scale in scales.values():
        assert scale.base < -2.0  # a step without a sign is on its course
        for name, curve in scale.curves.items():
            assert list(curve.values) == sorted(set(curve.values))
            assert list(curve.log_odds) == sorted(curve.log_odds) and curve.log_odds[0] == 0.0
            assert said(name) != name


@pytest.mark.parametrize("name", ["own-0123abcd", "hashing-own-0123abcd", "events-own-0123abcd"])
def test_scale_in_words_one_that_calibrate_fitted_is_said_to_be_of_own_runs(name: str) -> None:
    fitted = f"scale {name}, fitted on your own runs"
    assert scale_in_words(name) == fitted
    assert scale_in_words(f"{name}+60 own runs") == f"{fitted}, adjusted by 60 labelled runs of this agent"
    assert scale_in_words("well-known-1") == "scale well-known-1"


def test_monitor_scale_a_given_one_must_be_of_the_embedder_in_use() -> None:
    given = msgspec.structs.replace(STUCK, embedder="e-1")
    assert monitor_scale("e-1", [], [], given) == given
    assert monitor_scale(None, [], [], STUCK) == STUCK, "it has no curve of an embedder"
    assert monitor_scale("e-1", ["ungrounded_answer"], ["mine"], given).asks == {}
    assert "mine" in monitor_scale("e-1", [], ["mine"], given).curves
    with pytest.raises(ValueError, match="scale 'test' was fitted with the embedder 'e-1', and the monitor has 'e-2'"):
        monitor_scale("e-2", [], [], given)
    with pytest.raises(ValueError, match="has none with a fingerprint: pass that embedder, or fit a scale"):
        monitor_scale(None, [], [], given)
