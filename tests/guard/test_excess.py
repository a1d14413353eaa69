from itertools import product
from math import comb, exp, inf, lgamma, log

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.excess import SAME, WORSE, Excess


def begun(beyond: int, within: int, limit: float = 40.0) -> Excess:
    return Excess.against(beyond=beyond, within=within, margin=0.1, limit=limit)


def log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def capital(beyond: int, within: int, seen_beyond: int, seen_within: int) -> float:
    """The closed form: a mixture of fixed rates against the beta-binomial law of the order of the calls."""
    a, b = beyond + 1.0, float(within)
    null = log_beta(a + seen_beyond, b + seen_within) - log_beta(a, b)
    rates = [(a / (a + b) + moved * b / (a + b), stake) for moved, stake in WORSE]
    return sum(stake * exp(seen_beyond * log(r) + seen_within * log(1 - r) - null) for r, stake in rates)


@given(st.integers(0, 60), st.integers(1, 400), st.lists(st.booleans(), max_size=80))
def test_evidence_is_the_closed_form_in_any_order(beyond: int, within: int, calls: list[bool]) -> None:
    excess = begun(beyond, within)
    for call in calls:
        excess.take(call)
    expected = capital(beyond, within, sum(calls), len(calls) - sum(calls))
    assert excess.harm == pytest.approx(expected, rel=1e-9)


def ever_reached(beyond: int, within: int, limit: float, rate: float, calls: int = 100) -> float:
    """The exact probability that calls beyond the cut at a rate ever give so much evidence, or an upper bound of it."""
    at = {0: 1.0}
    total = 0.0
    for number in range(1, calls + 1):
        after: dict[int, float] = {}
        for seen, chance in at.items():
            after[seen] = after.get(seen, 0.0) + chance * (1 - rate)
            after[seen + 1] = after.get(seen + 1, 0.0) + chance * rate
        over = (seen for seen in sorted(after) if capital(beyond, within, seen, number - seen) >= limit)
        least = next(over, number + 1)  # with more beyond it counts as reached even where it is not: fewer is better
        total += sum(chance for seen, chance in after.items() if seen >= least)
        at = {seen: chance for seen, chance in after.items() if seen < least}
    return total


@pytest.mark.parametrize(("calls", "rate"), [(5, 0.4), (20, 0.4), (20, 0.1), (20, 0.02), (20, 0.8)])
def test_false_alarms_are_exactly_within_the_limit(calls: int, rate: float) -> None:
    # Nothing is simulated: all outcomes of the baseline, then all walks of 100 patched calls at the same rate.
    total = 0.0
    for beyond in range(calls):  # with none within there is no bet
        chance = comb(calls, beyond) * rate**beyond * (1 - rate) ** (calls - beyond)
        total += chance * ever_reached(beyond, calls - beyond, 20.0, rate)
    assert 0 < total <= 1 / 20


def test_a_lucky_baseline_taken_for_the_truth_would_alarm_too_often() -> None:
    # The near miss: 2 failures of 20 calls, where 0.3 is true. As an estimate it is no evidence, as 10,000 calls it is.
    assert ever_reached(2, 18, 20.0, 0.3) < 0.3
    assert ever_reached(1_000, 9_000, 20.0, 0.3) > 0.9


def test_a_better_patch_is_shown_to_do_no_harm_sooner() -> None:
    needed = []
    for every in (10, 40):  # every tenth call beyond as before, or every fortieth
        excess = begun(50, 450)
        while excess.safe < 20:
            seen = excess.seen_beyond + excess.seen_within + 1
            excess.take(seen % every == 0)
        needed.append(seen)
        assert excess.harm < 1
    assert needed[1] < needed[0] < 150


def test_calls_at_the_margin_are_not_shown_harmless() -> None:
    excess = begun(50, 450)
    for call in range(500):
        excess.take(call % 5 == 0)  # 0.2 = 0.1 + the margin
    assert excess.safe < 20


def test_nothing_can_get_worse_than_nothing() -> None:
    excess = begun(30, 0)
    for _ in range(50):
        excess.take(True)
    assert excess.harm == 1.0
    excess.take(False)
    assert excess.harm == 1.0


def test_unpatched_calls_take_the_place_of_the_baseline() -> None:
    excess = begun(10, 90)
    excess.compare(True)
    assert (excess.beyond, excess.within, excess.frozen) == (10.0, 90.0, 100)  # until a patched call closes the block
    excess.take(False)
    assert (excess.beyond, excess.within, excess.frozen) == (10.0, 81.0, 90)  # ten calls are gone, one of them beyond
    for call in range(1, 100):
        excess.compare(call % 2 == 0)
        excess.take(call % 2 == 0)
    assert (excess.beyond, excess.within, excess.frozen) == (50.0, 50.0, 0)
    assert excess.harm < 2  # half of the patched calls failing is what all calls do now


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("patched", "others"), [(1, 1), (1, 4), (3, 1)])
def test_a_block_is_a_fair_bet_at_each_common_rate(patched: int, others: int, rate: float) -> None:
    # The mean over all outcomes of a block is 1 at most.
    mean = 0.0
    for calls in product((True, False), repeat=patched + others):
        excess = begun(50, 450)
        excess.same_time = True
        for call in calls[:patched]:
            excess.take(call)
        excess.block = (*excess.block[:2], sum(calls[patched + 1 :]), others - 1 - sum(calls[patched + 1 :]))
        if others > 1:  # as if the patched call were the last one of the block
            assert excess.harm == 1.0
        excess.compare(calls[patched])
        mean += rate ** sum(calls) * (1 - rate) ** (patched + others - sum(calls)) * excess.harm
    assert 0.3 < mean <= 1.0


def test_without_unpatched_calls_the_reference_counts_again() -> None:
    excess = begun(50, 450)
    excess.compare(False)
    for _ in range(11):  # the first one closes a block, ten lonely ones end it
        excess.take(False)
    assert not excess.same_time
    before = excess.harm
    excess.take(True)
    assert excess.harm > before


def test_evidence_stays_finite() -> None:
    for call in (True, False):
        excess = begun(1, 1_000_000)
        for _ in range(20_000):
            excess.take(call)
        assert 0.0 <= excess.harm < inf
        assert 0.0 <= excess.safe < inf
        assert msgspec.json.decode(msgspec.json.encode(excess), type=Excess) == excess


def test_stakes_begin_with_one() -> None:
    assert sum(stake for _, stake in WORSE) == pytest.approx(1)
    assert sum(stake for _, stake in SAME) == pytest.approx(1)
