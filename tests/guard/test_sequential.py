from itertools import product
from math import comb, inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.sequential import SAME, Excess
from guard.helpers import capital, mixture


def begun(beyond: int, within: int, limit: float = 40.0) -> Excess:
    return Excess.against(beyond=beyond, within=within, margin=0.1, limit=limit)


@given(st.integers(0, 60), st.integers(1, 400), st.lists(st.booleans(), max_size=80))
def test_excess_evidence_is_the_closed_form_in_any_order(beyond: int, within: int, calls: list[bool]) -> None:
    excess = begun(beyond, within)
    for call in calls:
        excess.observe(call)
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


@pytest.mark.parametrize(("calls", "rate"), [(5, 0.4), pytest.param(20, 0.1, marks=pytest.mark.slow), (20, 0.8)])
def test_sequential_false_alarms_are_exactly_within_the_limit(calls: int, rate: float) -> None:
    # Nothing is simulated: all outcomes of the baseline, then all walks of 100 patched calls at the same rate.
    total = 0.0
    for beyond in range(calls):  # with none within there is no bet
        chance = comb(calls, beyond) * rate**beyond * (1 - rate) ** (calls - beyond)
        total += chance * ever_reached(beyond, calls - beyond, 20.0, rate)
    assert 0 < total <= 1 / 20


@pytest.mark.parametrize(("beyond", "within", "tolerable"), [(50, 450, 50.5 / 501 + 0.1), (475, 25, 1 - 12.75 / 501)])
def test_excess_evidence_of_no_harm_is_the_closed_form(beyond: int, within: int, tolerable: float) -> None:
    excess = begun(beyond, within)
    for call in range(60):
        excess.observe(call % 12 == 0)
    rate = (beyond + 0.5) / 501  # variance of a beta distribution: rate (1 - rate) / (size + 1)
    size = tolerable * (1 - tolerable) * 502 / (rate * (1 - rate)) - 1
    rates = [(rate * times, stake) for times, stake in SAME]
    assert excess.safe == pytest.approx(mixture(rates, (tolerable * size, (1 - tolerable) * size), 5, 55), rel=1e-9)


def test_excess_nothing_can_get_worse_than_nothing() -> None:
    excess = begun(30, 0)
    for _ in range(50):
        excess.observe(True)
    assert excess.harm == 1.0
    excess.observe(False)
    assert excess.harm == 1.0


def test_compare_unpatched_calls_take_the_place_of_the_baseline() -> None:
    excess = begun(10, 90)
    excess.compare(True)
    assert (excess.beyond, excess.within, excess.frozen) == (10.0, 90.0, 100)  # until a patched call closes the block
    excess.observe(False)
    assert (excess.beyond, excess.within, excess.frozen) == (10.0, 81.0, 90)  # ten calls are gone, one of them beyond
    for call in range(1, 100):
        excess.compare(call % 2 == 0)
        excess.observe(call % 2 == 0)
    assert (excess.beyond, excess.within, excess.frozen) == (50.0, 50.0, 0)
    assert excess.harm < 2  # half of the patched calls failing is what all calls do now


def played(kinds: str, outcomes: tuple[bool, ...]) -> Excess:
    """``p`` a patched call, ``u`` an unpatched one; true = beyond the cut."""
    excess = begun(50, 450)
    excess.same_time = True
    for kind, is_beyond in zip(kinds, outcomes, strict=True):
        if kind == "p":
            excess.observe(is_beyond)
        else:
            excess.compare(is_beyond)
    return excess


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("kinds", ["pu", "up", "uuuup" + "u", "pppu" + "p", "uuuppp", "uuppu" + "up"])
def test_excess_blocks_are_a_fair_bet_at_each_common_rate(kinds: str, rate: float) -> None:
    # The mean over all outcomes of the calls is 1 at most.
    mean = 0.0
    for calls in product((True, False), repeat=len(kinds)):
        mean += rate ** sum(calls) * (1 - rate) ** (len(calls) - sum(calls)) * played(kinds, calls).harm
    assert 0.2 < mean <= 1.0 + 1e-12


def test_a_block_is_a_slice_of_each_kind() -> None:
    # One bet on ten unpatched calls, one of them beyond, and then ten patched ones, four of them beyond.
    slices = (*[False] * 9, True), (*[False] * 6, *[True] * 4)
    before = begun(50, 450)
    usual, expected = 50.5 / 501, 0.0
    for rate, stake in zip(before.worse_rates, before.worse, strict=True):
        mean = (rate + usual) / 2
        won = (rate / mean) ** 4 * ((1 - rate) / (1 - mean)) ** 6
        expected += stake * won * (usual / mean) * ((1 - usual) / (1 - mean)) ** 9
    assert played("u" * 10 + "p" * 9, slices[0] + slices[1][:-1]).harm == 1.0
    whole = played("u" * 10 + "p" * 10, slices[0] + slices[1])
    assert whole.harm == pytest.approx(expected, rel=1e-12)
    assert whole.block == (0, 0, 0, 0)
    assert expected > 1.5
    # The other order, and slices that are interrupted, as far as they are the same.
    assert played("p" * 9 + "u" * 9, (*[True] * 9, *[False] * 9)).harm > 100
    cut = played("u" * 10 + "p" * 9 + "u", (*slices[0], *slices[1][:-1], True))
    assert cut.harm != 1.0
    assert cut.block == (0, 0, 1, 0)


@pytest.mark.parametrize("beyond", [450, 475, 499])
def test_excess_where_few_calls_succeed_losing_them_all_is_not_shown_harmless(beyond: int) -> None:
    excess = begun(beyond, 500 - beyond)
    for _ in range(2_000):
        excess.observe(True)
        assert excess.safe < 20


def test_compare_without_unpatched_calls_the_reference_counts_again() -> None:
    excess = begun(50, 450)
    excess.compare(False)
    for _ in range(11):  # the first one closes a block, ten lonely ones end it
        excess.observe(False)
    assert not excess.same_time
    before = excess.harm
    excess.observe(True)
    assert excess.harm > before


def test_excess_evidence_stays_finite() -> None:
    for call in (True, False):
        excess = begun(1, 1_000_000)
        for _ in range(20_000):
            excess.observe(call)
        assert 0.0 <= excess.harm < inf
        assert 0.0 <= excess.safe < inf
        assert msgspec.json.decode(msgspec.json.encode(excess), type=Excess) == excess
