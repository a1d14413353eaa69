from __future__ import annotations

import pytest

from coherence.tui.chart import HEIGHT, MARGIN, Chart, columns_in
from coherence.tui.lines import plain, width_of
from coherence.views.shapes import Mark, Point, Timeline


def timeline(*indices: float | None, marks: tuple[Mark, ...] = ()) -> Timeline:
    """Return ticks at the events 10, 20, 30, …"""
    bands = ["unknown" if index is None else "red" if index < 0.3 else "green" for index in indices]
    points = tuple(
        Point(seq=10 * at, ts=0.0, step=at, index=index, pressure=0.5, band=band, decision="continue", count=1)
        for at, (index, band) in enumerate(zip(indices, bands, strict=True), 1)
    )
    return Timeline(points, marks, 1, 10 * len(indices), 10 * len(indices))


def column(chart: Chart, at: int) -> list[str]:
    return [plain(line)[MARGIN + at * chart.size] for line in chart.lines()[:HEIGHT]]


def test_chart_the_height_is_the_index_in_eighths_of_a_line() -> None:
    chart = Chart(timeline(1.0, 0.5, 0.05, None), 80)
    assert column(chart, 0) == ["█", "█", "█", "█"]
    assert column(chart, 1) == [" ", " ", "█", "█"]  # 0.5 * 32 = 16 eighths
    assert column(chart, 2) == [" ", " ", " ", "▂"]  # 0.05 * 32 = 1.6, so 2 eighths
    assert column(chart, 3) == [" ", " ", " ", "·"]
    light = plain(chart.lines()[HEIGHT + 1])
    assert light[MARGIN:].split() == ["G", "G", "R", "?"]


def test_chart_an_event_belongs_to_the_tick_that_measured_it() -> None:
    chart = Chart(timeline(0.9, 0.8, 0.7), 80, chosen=11)
    assert [chart.column_of(seq) for seq in (1, 10, 11, 20, 30, 99)] == [0, 0, 1, 1, 2, 2]
    assert chart.column == 1
    cells = [chart.column_at(cell) for cell in (0, MARGIN, MARGIN + chart.size, MARGIN + 3 * chart.size)]
    assert cells == [None, 0, 1, None]


def test_chart_marks_the_most_important_first() -> None:
    marks = (Mark(5, 0.0, "firing", "told"), Mark(6, 0.0, "refusal", "refused"), Mark(25, 0.0, "outcome", "done"))
    chart = Chart(timeline(0.9, 0.8, 0.7, marks=marks), 80)
    assert plain(chart.lines()[HEIGHT + 3])[MARGIN:].split() == ["x", "="]
    assert [mark.kind for mark in chart.marks_at(0)] == ["firing", "refusal"]


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("count", [1, 7, 60, 191])
def test_chart_fits(width: int, count: int) -> None:
    indices = [at / count for at in range(count)][: columns_in(width)]
    for chosen in (None, 1, 10 * len(indices)):
        chart = Chart(timeline(*indices), width, chosen)
        assert all(width_of(line) <= max(width, MARGIN + 8) for line in chart.lines())
        assert len(chart.lines()) == HEIGHT + 5


def test_chart_the_mark_bears_the_number_of_the_chosen_step() -> None:
    indices = [0.5] * columns_in(80)
    last = plain(Chart(timeline(*indices), 80, 10 * len(indices), 2000).lines()[-1])
    assert last.endswith(" 2000▲") and width_of(((last, ""),)) <= 80
    assert "│▲7 " in plain(Chart(timeline(*indices), 80, 3, 7).lines()[-1])


def test_chart_without_a_tick_says_so() -> None:
    assert "nothing measured yet" in plain(Chart(Timeline((), (), 1, 0, 0), 80).lines()[0])
