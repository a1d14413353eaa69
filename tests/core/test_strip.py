from __future__ import annotations

from html.parser import HTMLParser

import pytest

from coherence import CoherenceSensor, Fleet, Monitor
from coherence.core.readings import Band, excerpt
from coherence.core.signs import said
from coherence.core.strip import COLOURS, INKS, SIGNS, TITLE_LENGTH, strip_svg, worst_of_parts
from coherence.providers import HashingEmbedder, StaticState


class Cells(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self._in_title = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        if self._in_title:
            self.titles.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.titles[-1] += data


def test_strip_html_a_monitor_has_one_cell_a_reading_that_names_the_cause() -> None:
    with Monitor(agent="a<b>", goal="fix the login", embedder=False) as m:
        assert repr(m) == "<Monitor 'a<b>' session '1': no reading yet>"
        for _ in range(12):
            m.tool_call("Bash", {"command": "pytest"})
            m.tool_result("ImportError: no module named x", error=True)
        m.decide()
        reading = m.latest
        assert reading is not None and reading.band != "green"
        assert repr(m).startswith(f"<Monitor 'a<b>' session '1': {reading.short()}, pressure ")
        html = m._repr_html_()
        assert "a<b>" not in html and "a&lt;b&gt;" in html
        titles = Cells(html).titles
        assert len(titles) == len(m.history())
        assert titles[-1] == excerpt(f"tick {reading.tick_seq}: {reading.short()}, {said(reading.cause)}", TITLE_LENGTH)
    assert repr(m).endswith(", closed>")


def test_strip_html_a_sensor_and_a_fleet_tell_where_they_stand() -> None:
    sensor = CoherenceSensor(StaticState(goals=["a"], context=["b"]), embedder=HashingEmbedder())
    assert repr(sensor) == "<CoherenceSensor 4 metrics: no reading yet>"
    sensor.measure_sync()
    assert repr(sensor).startswith("<CoherenceSensor 4 metrics: tick 1  unknown  coverage ")
    assert len(Cells(sensor._repr_html_()).titles) == 1
    with Fleet(embedder=False) as fleet:
        assert repr(fleet) == "<Fleet without agents>"
        assert fleet._repr_html_() == "<div>no agents</div>"
        fleet.agent("coder").message("assistant", "I read login.py.")
        fleet.agent("coder").decide()
        latest = fleet.agent("coder").latest
        assert latest is not None and repr(fleet) == f"<Fleet coder {latest.short()}>"
        assert len(Cells(fleet._repr_html_()).titles) == len(fleet.agent("coder").history())


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("band", list(Band))
def test_badge_html_words_are_readable_and_bands_differ_by_more_than_colour(band: Band) -> None:
    dark, light = sorted((luminance(COLOURS[band]), luminance(INKS[band])))
    assert (light + 0.05) / (dark + 0.05) >= 4.5
    assert len(set(SIGNS.values())) == len(Band) == len({sign[-1] for sign in SIGNS.values()})


def test_strip_svg_a_long_run_has_sixty_cells_that_show_the_worst_of_their_parts() -> None:
    bands = [Band.GREEN] * 500
    bands[7], bands[499] = Band.RED, Band.UNKNOWN
    titles = [f"step {at}" for at in range(500)]
    html = strip_svg(bands, titles)
    shown = Cells(html).titles
    # 500 / 60: the first cell is steps 0 to 7, the last 491 to 499, of which the green ones count
    assert len(shown) == 60 and shown[0] == "step 7" and shown[-1] == "step 491"
    assert "bands, oldest first: 1 red, 498 green, 1 unknown" in html
    assert worst_of_parts([], 5) == [] and strip_svg([], []) == ""
