"""Baselines: the newest calls without the burst that called for a patch, and what lies beyond their cuts."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.baseline import METRICS, Baseline, CallOutcome, Recent, Spread


def recent(pattern: str, window: int = 500) -> Recent:
    """``+`` a success, ``-`` a failure."""
    calls = Recent(window)
    for mark in pattern:
        calls.observe(CallOutcome(mark == "+"))
    return calls


@pytest.mark.parametrize(
    ("pattern", "failures", "kept"),
    [
        ("", 5, ""),
        ("+++", 0, "+++"),
        ("++-+-", 0, "++-+-"),  # no burst: failures count like everything else
        ("+" * 25 + "-----", 5, "+" * 24),  # the last success before the burst goes with it
        ("+" * 24 + "-----", 5, "+" * 24 + "-----"),  # 23 are less than 4 * 6: the burst may be all there is
        ("+" * 32 + "-+--+---", 5, "+" * 32 + "-"),  # five failures back, then to the success before them
        ("+" * 40 + "-------", 5, "+" * 39),  # failures right before them are of the same burst
        ("-----", 5, "-----"),
        ("+" * 8 + "--", 5, "+" * 8),  # fewer failures than asked for: back to the first of them
        ("+++", 2, "+++"),  # none at all
        ("+" * 13 + "-+", 1, "+" * 12),
        ("++-+", 1, "++-+"),
    ],
)
def test_freeze_the_burst_that_triggered_is_left_out(pattern: str, failures: int, kept: str) -> None:
    baseline = recent(pattern).freeze(failures)
    assert (baseline.calls, baseline.successes) == (len(kept), kept.count("+"))


def test_freeze_leaving_out_a_burst_does_not_flatter_independent_calls() -> None:
    # Exact, over all 2**14 patterns of calls that succeed at 0.6: with the success rule the kept calls have that rate.
    kept = good = 0.0
    for code in range(2**14):
        pattern = f"{code:014b}".replace("1", "+").replace("0", "-")
        chance = 0.6 ** pattern.count("+") * 0.4 ** pattern.count("-")
        baseline = recent(pattern).freeze(2)
        if baseline.calls and pattern.count("-") >= 2:
            kept += chance * baseline.calls
            good += chance * baseline.successes
    # short patterns with fewer than two failures are left out above; they hold 1 - P = 0.6**14 + 14 * 0.4 * 0.6**13
    assert good / kept == pytest.approx(0.6, abs=0.003)


def test_recent_values_are_summed_up() -> None:
    calls = Recent()
    for value in (1.0, 2.0, 4.0, 8.0, 16.0):
        calls.observe(CallOutcome(True, latency_s=value, cost=value, index=value / 16))
    baseline = calls.freeze()
    assert baseline.latency is not None
    assert baseline.cost is not None
    assert baseline.index is not None
    # two thirds of 5 + 1 = the 4th from the good end
    assert (baseline.latency.cut, baseline.latency.within, baseline.latency.known) == (8.0, 4, 5)
    assert (baseline.cost.cut, baseline.cost.within) == (8.0, 4)
    assert (baseline.index.cut, baseline.index.within) == (2 / 16, 4)  # from the high end


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, -1.0])
def test_a_value_that_is_no_number_is_neither_known_nor_beyond(value: float | None) -> None:
    calls = Recent()
    calls.observe(CallOutcome(True, value, value, value))
    assert calls.freeze() == Baseline(1, 1)
    known = Baseline(3, 3, *[Spread(3, 1.0, 2)] * 3)
    assert list(known.beyond(CallOutcome(True, value, value, value))) == [("success", False)]


@pytest.mark.parametrize(
    ("call", "beyond"),
    [
        # up to 1.1 times 2 and down to 0.8 - 0.02 count as within the cut
        (CallOutcome(True, 2.19, 2.19, 0.781), set()),
        (CallOutcome(False, 2.21, 2.19, 0.781), {"success", "latency"}),
        (CallOutcome(True, 2.19, 2.21, 0.779), {"cost", "index"}),
    ],
)
def test_beyond_takes_hardly_worse_for_no_worse(call: CallOutcome, beyond: set[str]) -> None:
    known = Baseline(3, 3, Spread(3, 2.0, 2), Spread(3, 2.0, 2), Spread(3, 0.8, 2))
    assert {metric for metric, is_beyond in known.beyond(call) if is_beyond} == beyond
    assert [metric for metric, _ in known.beyond(call)] == list(METRICS)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6)), max_size=40), st.integers(0, 39), st.integers(0, 6))
def test_recent_it_goes_on_from_json_as_if_nothing_had_been(
    calls: list[tuple[bool, float]], stop: int, failures: int
) -> None:
    whole, parts = Recent(15), Recent(15)
    for place, (success, value) in enumerate(calls):
        if place == stop:
            parts = msgspec.json.decode(msgspec.json.encode(parts), type=Recent)
        for state in (whole, parts):
            state.observe(CallOutcome(success, value, value, min(value, 1.0)))
    assert parts == whole
    assert msgspec.json.decode(msgspec.json.encode(whole.freeze(failures)), type=Baseline) == parts.freeze(failures)
