"""Rows and cards of sessions, of guidance and of steps, without a terminal."""

from __future__ import annotations

import msgspec
import pytest

from coherence.tui.agent_rows import Columns, card_of, card_title, counts_of, rows_of
from coherence.tui.agent_tree import tree_of
from coherence.tui.guidance_rows import REFUSED, VERDICTS, firing_lines, standing, told_rows
from coherence.tui.help_page import PAGE
from coherence.tui.lines import Line, plain, width_of
from coherence.tui.palette import OUTCOMES
from coherence.tui.step_lines import line_of, lines_of
from coherence.views.shapes import (
    EventView,
    FiringView,
    Overview,
    RefusalView,
    SessionLine,
    SessionView,
    StepView,
)

LINE = SessionLine(
    agent="coder", session="s1", parent=None, source="api", started=0.0, last_ts=90.0, steps=1_234, events=9,
    band="green", worst="green", index=0.9, pressure=0.1, cause="", decision="continue", strip="g", spark=(0.5,),
    goal="", tokens=0, cost_usd=None, context=None, label=None, rules=(), refused=0, outcome="", live=False,
)  # fmt: skip

FIRING = FiringView(
    id="retry-1", agent="coder", session="s1", seq=5, ts=80.0, pattern="retry", arm="treatment", delivered=True,
    text="Do something else.", effect="pressure +0.20 after 5 steps", verdict="worse", label=None,
)  # fmt: skip

REFUSAL = RefusalView(
    id="1", seq=9, ts=85.0, tool="", why="8 errors in a row", unblocked=False, label=None, rules=("pressure",)
)

STEP = StepView(
    seq=0, step=3, first=7, last=9, events=(), metrics={}, inverted=(), index=None, band="unknown", pressure=None,
    decision="block", message="the budget of 8,000 tokens is used", findings=(), firings=(),
)  # fmt: skip


def changed(**changes: object) -> SessionLine:
    return msgspec.structs.replace(LINE, **changes)


def row(width: int, **changes: object) -> str:
    ((_, (first, *_)),) = rows_of(tree_of([changed(**changes)]), width, 100.0, ())
    assert width_of(first) == width
    return plain(first)


def card(*firings: FiringView, line: SessionLine = LINE, refusals: tuple[RefusalView, ...] = ()) -> str:
    view = SessionView(line=line, firings=firings, refusals=refusals, lessons=(), ended="")
    return "\n".join(map(plain, card_of(line, view, 90, 100.0)))


def joined(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


@pytest.mark.parametrize("width", [70, 78, 98, 118, 158])
@pytest.mark.parametrize("outcome", ["", *OUTCOMES])
@pytest.mark.parametrize("label", [None, "good", "bad"])
def test_rows_outcome_and_label_are_in_the_row(width: int, outcome: str, label: str | None) -> None:
    text = row(width, outcome=outcome, label=label)
    assert (f" {OUTCOMES[outcome][0]} " in text) if outcome else "✓" not in text
    assert (label or "coder") in text
    assert width < 94 or outcome in text
    assert width_of(Columns(width).head()) == width


@pytest.mark.parametrize("width", [40, 70, 78, 118])
def test_rows_a_long_name_keeps_its_session(width: int) -> None:
    text = row(width, agent="scout-with-a-very-long-name-in-production-eu-west-1", session="run-7")
    assert " · run-7" in text and "…" in text
    assert " · run-7 ─" in plain(card_title(changed(agent="a" * 99, session="run-7"), width))


def test_rows_what_is_unknown_is_no_zero() -> None:
    assert "–" in row(118)[-25:] and "1,234" in row(118)
    assert "– tokens, –" in card()


def test_rows_a_green_light_that_is_no_longer_measured_says_so() -> None:
    ((_, lines),) = rows_of(tree_of([changed(cause="not measured: 12 steps")]), 80, 100.0, ())
    assert "not measured: 12 steps" in plain(lines[1])


def test_counts_of_are_shorter_where_there_is_no_room() -> None:
    overview = Overview((LINE, changed(session="s2", band="red")), 2, 2, 9, ("coder",), ())
    assert plain(counts_of(overview, ())) == "■ 1 red  ● 1 green  2 sessions"
    assert plain(counts_of(overview, (), brief=True)) == "■ 1R  ● 1G  2 sessions"


def test_card_of_tells_what_came_after_the_last_guidance_that_was_delivered() -> None:
    newer = msgspec.structs.replace(FIRING, seq=7, delivered=False, verdict="")
    assert "no better after it: pressure +0.20" in card(FIRING) and "last delivered" not in card(FIRING)
    text = card(FIRING, newer)
    assert "ago, not delivered: “Do" in text and "the last delivered one: no better after it: pressure" in text
    assert "none was delivered" in card(newer)
    assert "pressure" not in card(newer).partition("helped")[2].partition("label")[0]


def test_standing_what_an_agent_had_done_is_over_when_it_goes_on() -> None:
    view = SessionView(line=LINE, firings=(), refusals=(REFUSAL,), lessons=(), ended="")
    assert standing(view) == []
    blocked = changed(decision="block")
    assert standing(msgspec.structs.replace(view, line=blocked)) == [REFUSAL]
    call = msgspec.structs.replace(REFUSAL, tool="Bash", rules=("harmful_call",))
    assert standing(msgspec.structs.replace(view, refusals=(call,))) == [call]
    assert standing(msgspec.structs.replace(view, refusals=(msgspec.structs.replace(call, unblocked=True),))) == []
    assert "all calls (u lets it go on): 8 errors" in card(line=blocked, refusals=(REFUSAL,))


def test_told_rows_name_what_was_not_delivered_and_refusals_in_a_row() -> None:
    offered = msgspec.structs.replace(FIRING, delivered=False, verdict="", effect="nothing can be known")
    several = msgspec.structs.replace(REFUSAL, count=4, since=6)
    text = joined([line for _, lines in told_rows([offered, FIRING], [several], 90, 100.0) for line in lines])
    assert "· not delivered 20 s ago" in text and "- delivered 20 s ago" in text
    assert "events 6–9  all calls" in text and "nothing can be known" not in text
    text = joined(firing_lines(offered, 90, 100.0))
    assert "not delivered" in text and "nothing can be known" not in text


def test_lines_of_a_step_that_was_not_measured_says_why_it_was_decided_so() -> None:
    assert "the budget of 8,000 tokens is used" in joined(lines_of(STEP, 90, 100.0))
    text = joined(lines_of(msgspec.structs.replace(STEP, firings=(FIRING,)), 90, 100.0))
    assert "\n guidance\n" in text and "told the agent" not in text


def test_line_of_leads_to_the_event_and_to_the_text_in_it() -> None:
    events = (EventView(7, 1.0, "message", "user", text="first"), EventView(8, 1.0, "message", "user", text="x\n" * 30))
    step = msgspec.structs.replace(STEP, events=(*events, EventView(9, 1.0, "message", "user", text="the End")))
    lines = lines_of(step, 90, 100.0, sought="end")
    at = line_of(lines, 9)
    assert plain(lines[at]).startswith("    9 user") and ("End", "mark") in lines[at + 1]
    long = EventView(8, 1.0, "message", text="x\n" * 30 + "end")
    far = lines_of(msgspec.structs.replace(step, events=(events[0], long)), 90, 100.0, sought="end")
    assert ("end", "mark") in far[line_of(far, 8) + 1]
    assert line_of(lines, 99) == 0


def test_help_has_every_sign_of_guidance_and_outcomes() -> None:
    text = joined(PAGE)
    for sign, words, _ in VERDICTS.values():
        assert f"{sign} {words or 'not known'} " in text
    assert f"{REFUSED} refused" in text and all(f"{OUTCOMES[each][0]} {each}" in text for each in OUTCOMES)
    assert all(width_of(line) <= 67 for line in PAGE)
