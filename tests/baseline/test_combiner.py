"""The combiner: monotone, near the fixed sum until proven better, and back when the proof turns."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.baseline.combiner import (
    ALPHA,
    BOUND,
    MAX_WAITING,
    Combination,
    Combiner,
    learn,
    risk_of,
    risks_of,
    weighted,
)
from coherence.core.readings import Band, FrozenDict, Reading

NAMES = tuple("abcdef")
START = dict.fromkeys(NAMES, 0.25)
RISKS = st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1))


def some_runs(
    seed: int, count: int, *, bad: float, tells: str = "", by: float = 0.0
) -> list[tuple[dict[str, float], bool]]:
    """Runs of six metrics; in bad ones the metric ``tells`` is higher by ``by``, the rest says nothing."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        good = bool(rng.random() >= bad)
        risks = dict(zip(NAMES, rng.beta(2, 6, len(NAMES)).tolist(), strict=True))
        if tells and not good:
            risks[tells] = min(risks[tells] + by, 1.0)
        found.append((risks, good))
    return found


def auroc(weights: dict[str, float], runs: list[tuple[dict[str, float], bool]]) -> float:
    bad = [weighted(weights, risks) or 0.0 for risks, good in runs if not good]
    fine = [weighted(weights, risks) or 0.0 for risks, good in runs if good]
    return float(np.mean([(one > other) + 0.5 * (one == other) for one in bad for other in fine]))


@given(st.lists(st.tuples(RISKS, st.booleans()), max_size=60), RISKS)
def test_weighted_before_there_is_proof_it_stays_within_the_bound_and_weights_are_never_negative(
    runs: list[tuple[dict[str, float], bool]], risks: dict[str, float]
) -> None:
    combiner = learn(START, runs)
    now = combiner.combination()
    assert all(weight >= 0.0 for weight in now.learned.values())
    assert sum(now.learned.values()) == pytest.approx(sum(START.values()))
    risk, fixed = now.risk(risks), weighted(START, risks)
    assert (risk is None) == (fixed is None)
    if risk is not None and fixed is not None:
        assert 0.0 <= risk <= 1.0
        if not now.proven:
            assert abs(risk - fixed) <= BOUND + 1e-12


@given(st.lists(st.tuples(RISKS, st.booleans()), max_size=60), RISKS, st.sampled_from(NAMES), st.floats(0, 1))
def test_more_risk_of_one_metric_never_lowers_the_sum(
    runs: list[tuple[dict[str, float], bool]], risks: dict[str, float], name: str, more: float
) -> None:
    now = learn(START, runs).combination()
    low, high = {**risks, name: min(more, risks.get(name, 0.0))}, {**risks, name: max(more, risks.get(name, 0.0))}
    for combination in (now, msgspec.structs.replace(now, proven=True)):
        one, other = combination.risk(low), combination.risk(high)
        assert one is not None and other is not None and one <= other + 1e-12


def test_weights_a_metric_that_tells_is_found_and_beats_the_fixed_sum() -> None:
    runs = some_runs(1, 400, bad=0.4, tells="c", by=0.3)
    combiner = learn(START, runs)
    assert combiner.proven and combiner.changed == 1
    fresh = some_runs(2, 200, bad=0.5, tells="c", by=0.3)
    learned, fixed = auroc(combiner.weights(), fresh), auroc(START, fresh)
    assert learned > fixed + 0.1
    assert max(combiner.weights(), key=lambda name: combiner.weights()[name]) == "c"


@pytest.mark.slow
def test_learn_it_does_not_leave_the_fixed_sum_for_noise() -> None:
    """1,000 agents whose metrics say nothing, 80 runs each: at most 5 % ever switch, however often one looks."""
    switched = sum(learn(START, some_runs(seed, 80, bad=0.4)).changed > 0 for seed in range(1_000))
    assert switched / 1_000 <= ALPHA


def test_risk_it_goes_back_when_the_fixed_sum_turns_out_to_be_better() -> None:
    """First only ``c`` tells; then ``a`` and ``c`` take turns at misleading, which only their sum withstands."""
    combiner = learn(START, some_runs(3, 400, bad=0.4, tells="c", by=0.3))
    assert combiner.changed == 1
    for block in range(100):
        right, wrong = ("a", "c") if block // 4 % 2 == 0 else ("c", "a")
        combiner.observe({right: 0.2, wrong: 0.8}, good=True)
        combiner.observe({right: 0.9, wrong: 0.2}, good=False)
        if combiner.changed == 2:
            break
    assert not combiner.proven
    risk = combiner.combination().risk({"a": 1.0, "c": 0.0})
    assert risk is not None and abs(risk - 0.5) <= BOUND + 1e-12


def test_learn_labels_that_are_swapped_all_the_time_prove_nothing() -> None:
    runs = [
        (risks, good != (at % 2 == 0)) for at, (risks, good) in enumerate(some_runs(5, 400, bad=0.5, tells="c", by=0.3))
    ]
    assert not learn(START, runs).proven


def test_combiner_runs_are_judged_before_they_are_learned() -> None:
    """The first block can show no difference: nothing had been learned before it."""
    combiner = Combiner(start=START)
    combiner.observe({"a": 0.1, "b": 0.9}, good=True)
    combiner.observe({"a": 0.9, "b": 0.2}, good=False)
    assert combiner.blocks == 1 and combiner.fixed_loss == combiner.learned_loss == 0.0
    assert combiner.weights()["a"] > START["a"] > combiner.weights()["b"]


def test_combiner_what_it_cannot_use_teaches_nothing() -> None:
    combiner = Combiner(start=START)
    for _ in range(5):
        combiner.observe({"unknown": 1.0}, good=False)
        combiner.observe({}, good=True)
    assert combiner == Combiner(start=START)
    assert Combiner(start={}).combination().risk({"a": 1.0}) is None


def test_combiner_it_is_bounded_and_goes_on_from_its_bytes() -> None:
    runs = some_runs(6, 300, bad=0.3, tells="b", by=0.2)
    whole, half = learn(START, runs), learn(START, runs[:150])
    half = msgspec.msgpack.decode(msgspec.msgpack.encode(half), type=Combiner)
    for risks, good in runs[150:]:
        half.observe(risks, good=good)
    assert half == whole
    waiting = learn(START, [({"a": 0.5}, True)] * 500)
    assert len(waiting.good) == MAX_WAITING and waiting.blocks == 0


def test_the_risk_of_a_reading_is_one_minus_the_index_until_there_is_proof() -> None:
    reading = Reading(
        tick_seq=1,
        ts=0.0,
        metrics=FrozenDict(a=0.8, b=0.9, c=None),
        coherence_index=0.45,
        band=Band.YELLOW,
        coverage=1.0,
    )
    assert risk_of(reading) == pytest.approx(0.55)
    start: FrozenDict[str, float] = FrozenDict(a=0.5, b=0.5)
    learned: FrozenDict[str, float] = FrozenDict(a=0.9, b=0.1)
    inverted = frozenset({"a"})
    assert risks_of(reading.metrics, inverted) == {"a": 0.8, "b": pytest.approx(0.1)}
    assert risk_of(reading, Combination(start), inverted) == pytest.approx(0.55)
    assert risk_of(reading, Combination(start, learned), inverted) == pytest.approx(0.55 + BOUND)
    assert risk_of(reading, Combination(start, learned, True), inverted) == pytest.approx(0.9 * 0.8 + 0.1 * 0.1)
    assert risk_of(msgspec.structs.replace(reading, coverage=0.0)) is None
    zeroed = msgspec.structs.replace(reading, coherence_index=0.25)  # as where an unknown value counts as 0
    nothing = Combiner(start={"a": 0.5, "b": 0.5, "c": 0.5}).combination()
    assert risk_of(zeroed, nothing, inverted) == 0.75, "no label has taught anything"
