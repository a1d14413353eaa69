"""Cards for notebooks: light first, escaped, small, without script, and without the texts that may not be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from coherence import Decision, Monitor, MonitorConfig, Reading
from coherence.core.cards import card, cause_line, decision_card, light_of, moment, reading_card
from coherence.core.decisions import Finding
from coherence.core.readings import Band, Evidence, Failure, FrozenDict
from coherence.providers import HashingEmbedder
from coherence.report.left_out import LeftOut
from coherence.report.runs import Runs, read_runs
from coherence.report.score import ScoredRun

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x1b[31m\u202e\ud800"
ALLOWED = {
    *("div", "b", "i", "span", "ul", "li", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "rect", "path", "title"),
}
ATTRIBUTES = {
    *(
        "style",
        "scope",
        "viewbox",
        "width",
        "height",
        "role",
        "aria-label",
        "x",
        "y",
        "d",
        "fill",
        "preserveaspectratio",
    ),
}
MAX_BYTES = 40_000


class Card(HTMLParser):
    """Reads a card, and refuses whatever could run, load, or be left open."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""
        html.encode("utf-8")
        assert len(html.encode()) <= MAX_BYTES
        assert re.search(r"url\(|@import|https?:|[\x00-\x08\x0b-\x1f]", html) is None
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {*ALLOWED, "wbr"} and {name for name, _ in attrs} <= ATTRIBUTES
        if tag != "wbr":  # which has no end
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> str:
    return " ".join(Card(html).text.split())


def fail(m: Monitor, count: int = 6, text: str = "ImportError: no module named yaml") -> None:
    for _ in range(count):
        m.message("assistant", "I run the tests.")
        m.tool_result(text, error=True, call=m.tool_call("Bash", {"command": "pytest"}))
    m.decide()


@pytest.fixture
def m() -> Iterator[Monitor]:
    with Monitor(agent="builder", goal="Make the tests pass", embedder=False) as made:
        yield made


def test_monitor_card_the_light_comes_first_then_what_and_why(m: Monitor) -> None:
    fail(m)
    m.usage(tokens_in=12_000, tokens_out=300, cost_usd=0.0123)
    told = read(m._repr_html_())
    result = m.result
    assert result is not None and result.reading is not None
    index, pressure = result.reading.coherence_index, result.appraisal.pressure
    assert told.startswith(
        f"◆ O orange builder/1 index {index:.2f} · decision warn · pressure {pressure:.2f} · 6 calls"
    )
    # 12,000 read and 300 written
    assert "12,300 tokens, $0.0123" in told and " UTC " in told and "Goal: Make the tests pass" in told
    assert result.decision.message in told


def test_monitor_card_takes_in_what_was_recorded_just_now(m: Monitor) -> None:
    m.message("assistant", "I look at the login first.")
    assert len(m.history()) <= 1  # it may still be measured
    assert read(m._repr_html_()).startswith("● G green builder/1 index ")


def test_monitor_card_an_empty_one_says_what_to_do() -> None:
    with Monitor(agent="a", embedder=False) as m:
        told = read(m._repr_html_())
    assert told == "○ ? unknown a/1 Nothing was measured yet: it is, after the agent's first message or tool result."


def test_monitor_card_a_closed_one_says_so_and_shows_the_same(m: Monitor) -> None:
    fail(m)
    before = m._repr_html_()
    m.close()
    assert "closed" not in read(before) and "· closed" in read(m._repr_html_())
    assert m._repr_html_().replace(" · closed", "") == before
    empty = Monitor(embedder=False)
    empty.close()
    assert "closed Nothing was measured yet" in read(empty._repr_html_())


def test_monitor_card_measures_nothing_and_records_nothing(m: Monitor) -> None:
    fail(m)
    events = m.events()
    m._repr_html_()
    assert m.events() == events


def test_monitor_card_one_that_is_switched_off_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    with Monitor(agent="a", goal="Do it.", embedder=False) as m:
        m.message("assistant", "Done.")
        assert read(m._repr_html_()).startswith("○ ? unknown a/1")


def test_monitor_card_without_texts_has_no_word_of_the_agent() -> None:
    config = MonitorConfig(privacy="no-text")
    with Monitor(agent="a", goal="Find the treasure.", embedder=False, config=config) as m:
        fail(m, text="no such island")
        html = m._repr_html_()
        decision = m.known_decision
    assert "island" in decision.message, "the words are in memory, and are not shown"
    assert not re.search("treasure|island|pytest|tests", html)
    told = read(html)
    assert told.startswith("◆ O orange a/1") and "active rules: " in told and "bash_retry" in told


def test_reading_card_says_which_signs_take_how_much(m: Monitor) -> None:
    fail(m)
    reading = m.latest
    assert reading is not None
    told = read(reading._repr_html_())
    assert told.startswith(f"◆ O orange index {reading.coherence_index:.2f} tick {reading.tick_seq} · 20")
    for name, loss in sorted(reading.losses.items(), key=lambda it: -it[1])[:3]:
        assert f"takes {loss:.2f}" in told, name
    assert "the newest calls failed" in told and "failure_streak" in told and "why unknown" in told


def test_decision_card_names_the_active_findings_and_colours_the_word(m: Monitor) -> None:
    with Monitor(embedder=False) as calm:
        calm.message("assistant", "I begin.")
        assert read(calm.decide()._repr_html_()).startswith("▷ continue decision at event ")
    fail(m)
    decision = m.decide()
    told = read(decision._repr_html_())
    assert told.startswith(f"◆ O warn decision at event {decision.seq} {decision.message}")
    assert "bash_retry warn 1.00, needs 0.50" in told and "look at what the error names" in told
    refused = m.check("Bash", {"command": "rm -rf /"})
    assert read(refused._repr_html_()).startswith("■ R block decision at event ")
    assert "no rule has anything to say" in read(Decision(seq=0, kind="continue")._repr_html_())


def test_card_hostile_text_in_every_field_stays_text(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with Monitor(agent=EVIL, session=EVIL, goal=EVIL, store=store, embedder=HashingEmbedder(16)) as m:
        for _ in range(7):
            m.message("assistant", EVIL)
            m.tool_result(EVIL, error=True, call=m.tool_call(EVIL, {EVIL: EVIL}))
        decision = m.decide()
        reading = m.latest
        assert reading is not None
        shown = [m._repr_html_(), decision._repr_html_(), reading._repr_html_()]
    runs = read_runs(store)
    shown += [runs[0]._repr_html_(), runs._repr_html_()]
    for html in shown:
        Card(html)
        assert "<script" not in html and "<img" not in html
    assert "<script>alert(1)</script>" in read(shown[0])


def test_card_fields_that_only_a_plug_in_fills_are_escaped_and_cut() -> None:
    long = EVIL * 200
    evil: FrozenDict[str, float] = FrozenDict({f"{long}{at}": 0.5 for at in range(60)})
    reading = Reading(
        tick_seq=1,
        ts=float("inf"),
        metrics=FrozenDict({**evil, EVIL: None}),
        coherence_index=0.5,
        band=Band.ORANGE,
        coverage=1.0,
        errors=(Failure(long, long, long),) * 9,
        unknown=FrozenDict({EVIL: long}),
        losses=FrozenDict(evil),
        evidence=FrozenDict({name: Evidence(long, "context", (1,), (long,)) for name in evil}),
        cause=long,
        scale=long,
    )
    finding = Finding(rule=long, severity="block", active=True, score=1.0, threshold=0.5, why=long, action=long)
    decision = Decision(seq=1, kind="block", findings=(finding,) * 30, message=long)
    assert "9 errors" in read(reading_card(reading)) and "and 31 metrics more" in read(reading_card(reading))
    assert "and 25 findings more" in read(decision_card(decision))
    read(card(Band.RED, long, [EVIL, ""], [""]))


@pytest.mark.parametrize("steps", [130, pytest.param(300, marks=pytest.mark.slow)])
def test_cards_stay_small_after_a_long_life(tmp_path: Path, steps: int) -> None:
    with Monitor(store=tmp_path / "s.db", goal="&" * 5_000, embedder=False) as m:
        for at in range(steps):
            m.message("assistant", "&" * 500 + str(at))
            m.tool_result("&" * 500, error=True, call=m.tool_call("Bash", {"command": "&" * 500}))
            m.decide()
        html = m._repr_html_()
        assert len(m.history()) == 256 and html.count("<rect") == 60
        read(html)
    runs = read_runs(tmp_path / "s.db")
    read(runs[0]._repr_html_())
    told = read(Runs(list(runs) * 50, rest=LeftOut(milder=3))._repr_html_())
    assert "and 30 runs more; 3 milder sessions left out" in told


def test_runs_html_without_a_run_says_so() -> None:
    assert read(Runs([])._repr_html_()).startswith("○ ? unknown no run The store holds no session")


def test_run_card_the_worst_light_comes_first_with_its_step(tmp_path: Path) -> None:
    with Monitor(store=tmp_path / "s.db", agent="a", goal="Clean up.", embedder=False) as m:
        m.message("assistant", "I clean up.")
        m.check("Bash", {"command": "rm -rf /"})
        m.message("assistant", "Then I look at what is there.")
    run: ScoredRun = read_runs(tmp_path / "s.db")[0]
    assert run.worst_band == "green", "only the refused call was red"
    told = read(run._repr_html_())
    assert told.startswith("■ R red a/1 2 steps") and "worst decision block" in told and "1 call refused" in told
    # one message was complete, and the call was the fourth event: goal, message, tick, call
    assert f"step 1 #{run.first_events[0]}: call of Bash refused: {run.decisions[0].message[:40]}" in told
    assert "worst decision block at step 1 #4" in told


def test_card_names_break_at_their_joints_alone() -> None:
    drawn = card(Band.GREEN, "tau_airline/2026-11-28")
    assert "tau_<wbr>airline/<wbr>2026-<wbr>11-<wbr>28" in drawn and read(drawn) == "● G green tau_airline/2026-11-28"
    assert "anywhere" not in drawn


def test_light_of_is_the_worse_of_band_and_decision() -> None:
    reading = Reading(tick_seq=1, ts=0.0, metrics=FrozenDict(), coherence_index=0.9, band=Band.GREEN, coverage=1.0)
    assert light_of(reading, Decision(seq=1, kind="continue")) is Band.GREEN
    assert light_of(reading, Decision(seq=1, kind="block")) is Band.RED
    assert light_of(None, None) is Band.UNKNOWN
    assert cause_line(reading) == "nothing stands out" and moment(float("nan")) == moment(1e300) == ""
