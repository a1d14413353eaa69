"""The classic router's codes and moving lines: values measured on it, binary floats and substrings included."""

from __future__ import annotations

from typing import Any

import pytest

from coherence.guard.router.classic import classic_lines, classic_state


def calls(count: int, good: int, seconds: float = 1.0, error: str = "boom", **more: Any) -> list[dict[str, Any]]:
    return [
        {"success": at < good, "duration_sec": seconds, "error": None if at < good else error, "task": "", **more}
        for at in range(count)
    ]


ALL_WORDS = "schema handoff quota"
CASES = [
    # no calls
    ([], {}, (1, 1, 0.5, 1, 1, 1), "110111", (), "mixed"),
    # three good ones of 1, 2, 2.001 and 2.75 seconds; 1 - 2.75 / 5 is 0.44999999999999996
    (calls(3, 3, 1.0), {}, (1, 0.8, 0.75, 1, 1, 1), "111111", (), "qian"),
    (calls(3, 3, 2.0), {}, (1, 0.6, 0.75, 1, 1, 1), "111111", (), "qian"),
    (calls(3, 3, 2.001), {}, None, "101111", (), "mixed"),
    (calls(3, 3, 2.75), {}, None, "101111", (2,), "mixed"),
    # ten calls, 6, 5 and 4 good ones
    (calls(10, 6), {}, (0.6, 0.8, 0.85, 1, 1, 1), "111111", (), "qian"),
    (calls(10, 5), {}, None, "011111", (), "mixed"),
    (calls(10, 4), {}, None, "011111", (1,), "mixed"),
    # three failures
    (calls(3, 0), {}, (0, 0.8, 0.85, 1, 1, 1), "011111", (1,), "mixed"),
    (calls(3, 0, error="rate limit 429"), {}, None, "011110", (1, 6), "mixed"),
    (calls(3, 0, error="async error"), {}, None, "011101", (1, 5), "mixed"),
    (calls(3, 0, task="support model"), {}, None, "011011", (1, 4), "mixed"),
    (calls(3, 0), {"consecutive_failures": 3}, None, "010111", (1, 3), "mixed"),
    (calls(3, 0), {"consecutive_failures": 2}, None, "011111", (1,), "mixed"),
    # everything at once
    (
        calls(5, 0, 9.0, ALL_WORDS),
        {"consecutive_failures": 5},
        (0, 0, 0.35, 0, 0, 0),
        "000000",
        (1, 2, 3, 4, 5, 6),
        "kun",
    ),
    (calls(10, 5, 1.0, ALL_WORDS), {}, (0.5, 0.8, 0.85, 0.5, 0.5, 0.5), "011000", (), "mixed"),
]


@pytest.mark.parametrize(("traces", "metrics", "scores", "code", "moving", "name"), CASES)
def test_classic_inputs_give_the_classic_states(
    traces: list[dict[str, Any]], metrics: dict[str, float], scores: Any, code: str, moving: Any, name: str
) -> None:
    state = classic_state(classic_lines(traces, metrics))
    assert (state.code, state.moving, state.name) == (code, moving, name)
    if scores is not None:
        assert state.scores == scores
    assert state.changed == "".join("1" if at in moving else bit for at, bit in enumerate(code, 1))


def test_classic_lines_words_are_found_inside_other_words() -> None:
    for text, line in (("gene rated", 6), ("GENERATED", 6), ("author", 6), ("json5", 4), ("resync", 5)):
        expected = "".join("0" if at in (1, line) else "1" for at in range(1, 7))
        assert classic_state(classic_lines(calls(3, 0, error=text))).code == expected
    assert classic_state(classic_lines(calls(3, 0, context={"team": "collab"}))).code == "011101"
    assert classic_state(classic_lines(calls(3, 3, context={"team": "collab"}))).code == "111111"  # only of failures


def test_classic_lines_metrics_of_the_window_go_before_the_calls() -> None:
    metrics = {"success_rate": 0.2, "avg_duration_sec": 0.0, "consecutive_failures": 0}
    assert [score for _, score in classic_lines(calls(3, 3, 9.0), metrics)][:2] == [0.2, 1.0]


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4, 5], [1] * 6, [1, 2, 3, 4, 5, 7], []])
def test_classic_state_other_than_the_six_lines_are_refused(numbers: list[int]) -> None:
    with pytest.raises(ValueError, match="each once"):
        classic_state([(number, 1.0) for number in numbers])


def test_classic_state_a_line_moves_below_045_and_not_at_it() -> None:
    assert classic_state(list(enumerate((0.45, 0.4499, 1, 1, 1, 1), 1))).moving == (2,)


def test_classic_lines_long_texts_are_cut() -> None:
    long = "x" * 1_000_000
    assert classic_state(classic_lines(calls(3, 0, error=long + "model", task="quota"))).code == "011110"
