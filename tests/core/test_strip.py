from __future__ import annotations

from html.parser import HTMLParser

from coherence import CoherenceSensor, Fleet, Monitor
from coherence.core.signs import said
from coherence.providers import HashingEmbedder, StaticState


class Cells(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.titles: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "span":
            self.titles.append(dict(attrs)["title"] or "")


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
        assert titles[-1] == f"tick {reading.tick_seq}: {reading.short()}, {said(reading.cause)}"
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
