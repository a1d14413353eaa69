"""The classic router's codes and moving lines: values measured on it, binary floats and substrings included."""

from __future__ import annotations

from typing import Any

import pytest

from coherence.guard.classic_router import classic_state


def calls(count: int, good: int, seconds: float = 1.0, error: str = "boom", **more: Any) -> list[dict[str, Any]]:
    return [
        {"success": at < good, "duration_sec": seconds, "error": None if at < good else error, "task": "", **more}
        for at in range(count)
    ]


ALL_WORDS = "schema handoff quota"
FIVE = {"consecutive_failures": 5}


@pytest.mark.parametrize(
    ("traces", "metrics", "scores", "code", "moving"),
    [
        ([], {}, (1, 1, 0.5, 1, 1, 1), "110111", ()),
        # three good ones of 1, 2, 2.001 and 2.75 seconds; 1 - 2.75 / 5 is 0.44999999999999996
        (calls(3, 3, 1.0), {}, (1, 0.8, 0.75, 1, 1, 1), "111111", ()),
        (calls(3, 3, 2.0), {}, (1, 0.6, 0.75, 1, 1, 1), "111111", ()),
        (calls(3, 3, 2.001), {}, None, "101111", ()),
        (calls(3, 3, 2.75), {}, None, "101111", (2,)),
        # ten calls, 6, 5 and 4 good ones
        (calls(10, 6), {}, (0.6, 0.8, 0.85, 1, 1, 1), "111111", ()),
        (calls(10, 5), {}, None, "011111", ()),
        (calls(10, 4), {}, None, "011111", (1,)),
        # three failures
        (calls(3, 0), {}, (0, 0.8, 0.85, 1, 1, 1), "011111", (1,)),
        (calls(3, 0, error="rate limit 429"), {}, None, "011110", (1, 6)),
        (calls(3, 0, error="async error"), {}, None, "011101", (1, 5)),
        (calls(3, 0, error="AUTHOR"), {}, None, "011110", (1, 6)),  # words are found inside other words
        (calls(3, 0, task="support model"), {}, None, "011011", (1, 4)),
        (calls(3, 0, context={"team": "collab"}), {}, None, "011101", (1, 5)),
        (calls(3, 3, context={"team": "collab"}), {}, None, "111111", ()),  # of failures only
        (calls(3, 0), {"consecutive_failures": 3}, None, "010111", (1, 3)),
        (calls(3, 0), {"consecutive_failures": 2}, None, "011111", (1,)),
        # metrics of the window go before the calls
        (calls(3, 3, 9.0), {"success_rate": 0.2, "avg_duration_sec": 0.0}, (0.2, 1, 0.75, 1, 1, 1), "011111", (1,)),
        # everything at once
        (calls(5, 0, 9.0, ALL_WORDS), FIVE, (0, 0, 0.35, 0, 0, 0), "000000", (1, 2, 3, 4, 5, 6)),
        (calls(10, 5, 1.0, ALL_WORDS), {}, (0.5, 0.8, 0.85, 0.5, 0.5, 0.5), "011000", ()),
    ],
)
def test_classic_state_is_that_of_the_classic_router(
    traces: list[dict[str, Any]], metrics: dict[str, float], scores: Any, code: str, moving: Any
) -> None:
    state = classic_state(traces, metrics)
    assert (state.code, state.moving) == (code, moving)
    assert scores is None or tuple(line.score for line in state.lines) == scores
    assert state.changed == "".join("1" if at in moving else bit for at, bit in enumerate(code, 1))
