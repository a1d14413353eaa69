from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.rolling import BUCKET_S, MAX_WINDOW_H, NEWEST, Rolling, Summary

HOUR = 3600.0


def test_summary_counts_and_means() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=True, latency_s=1.0, cost=0.5, index=1.0)
    rolling.record(1, 1.0, success=False, latency_s=2.0)
    rolling.record(2, 2.0, success=True, cost=0.25, index=0.5)
    # 2 of 3 succeed; latency (1 + 2) / 2; cost .5 + .25; index (1 + .5) / 2
    expected = Summary(3, 1, 2 / 3, 1.5, 0.75, 0.75)
    assert rolling.over_newest() == expected
    assert Rolling().over_newest() == Summary(0, 0, None, None, None, None)  # unknown, not 0


def test_failures_within_a_window_ends_within_one_bucket_of_its_length() -> None:
    rolling = Rolling()
    rolling.record(0, 0.0, success=False)
    assert rolling.failures_within(24, now_s=24 * HOUR) == 1
    assert rolling.failures_within(24, now_s=24 * HOUR + BUCKET_S) == 0


@given(st.lists(st.floats(0, 200 * HOUR), min_size=1, max_size=60), st.integers(1, 168))
def test_failures_within_windows_count_at_least_their_length_and_at_most_a_bucket_more(times: Any, hours: Any) -> None:
    times.sort()
    rolling = Rolling()
    for seq, at in enumerate(times):
        rolling.record(seq, at, success=False)
    now = times[-1]
    least = sum(at >= now - hours * HOUR for at in times)
    most = sum(at > now - hours * HOUR - BUCKET_S - 1e-6 for at in times)
    assert least <= rolling.failures_within(hours) <= most


def test_calls_within_memory_is_bounded_however_long_an_agent_lives() -> None:
    rolling = Rolling()
    for seq in range(20_000):
        rolling.record(seq, seq * 300.0, success=seq % 3 > 0)
    assert len(rolling.newest) == NEWEST
    assert len(rolling.buckets) <= MAX_WINDOW_H * 3600 / BUCKET_S + 1
    assert rolling.calls_within(MAX_WINDOW_H) >= 168 * 12  # one call each five minutes
    assert rolling.calls == 20_000
