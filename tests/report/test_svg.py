"""Drawings: gaps, points, cells."""

from __future__ import annotations

import re

import msgspec
import pytest

from coherence.core.readings import Band
from coherence.providers import HashingEmbedder, Step, Transcript
from coherence.report.score import score_transcript
from coherence.report.svg import axis, chart, strip


def line(drawing: str) -> str:
    match = re.search(r'class="line" d="([^"]*)"', drawing)
    assert match is not None
    return match[1]


def test_chart_an_unknown_value_leaves_a_gap() -> None:
    # five steps, 1000 wide: step centres at 100, 300, ...; y is 100 at value 0
    assert line(chart([0.0, 1.0, None, 0.5, 0.25])) == "M100 100L300 0M700 50L900 75"


def test_chart_a_value_between_two_gaps_is_a_point() -> None:
    assert line(chart([None, 0.5, None])) == "M500 50h0"


def test_chart_the_background_shows_the_bands_in_stretches() -> None:
    drawing = chart([1.0, 1.0, 0.1, None], bands=[Band.GREEN, Band.GREEN, Band.RED, None])
    assert re.findall(r'<rect class="t (\w)" x="([\d.]+)" width="([\d.]+)"', drawing) == [
        ("g", "0", "500"),
        ("r", "500", "250"),
        ("u", "750", "250"),
    ]
    assert re.findall(r">([A-Z])</text>", drawing) == ["G", "R"]


@pytest.mark.parametrize(("count", "ticks"), [(1, [0]), (8, list(range(8))), (9, [0, 2, 4, 6, 8]), (1000, None)])
def test_the_axis_has_a_few_round_numbers(count: int, ticks: list[int] | None) -> None:
    shown = [int(number) for number in re.findall(r">(\d+)</text>", axis(range(count)))]
    assert len(shown) <= 8
    assert ticks is None or shown == ticks


def test_a_strip_has_a_cell_a_step_and_merges_when_there_are_many() -> None:
    steps = [Step(role="user", content="goal"), *(Step(role="assistant", content=f"word {n}") for n in range(4))]
    few = score_transcript(Transcript(id="r", steps=tuple(steps)), embedder=HashingEmbedder(16)).readings
    readings = [msgspec.structs.replace(few[min(at, 4)], tick_seq=at) for at in range(601)]
    assert strip(readings[:5]).count("<title>") == 5
    assert "step 0: nothing known" in strip(readings[:5])
    merged = strip(readings)  # 601 steps in cells of 3
    assert merged.count("<title>") == 201
    assert "steps 3 to 5, lowest: " in merged
