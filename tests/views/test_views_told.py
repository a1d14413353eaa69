"""Firings, refusals, timelines, comparisons and what the other rooms know, compared with what the commands say."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from guard.helpers import BOUNDS, Memory, Proposes

from coherence.cli.main import main
from coherence.fleet.fleet import Fleet
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.policy.experiment import judge_pattern
from coherence.store.recount import count_uncounted
from coherence.store.rows import EventRow, FiringOutcomeRow, FiringRow
from coherence.store.store import Store
from coherence.views.shapes import FiringView
from coherence.views.told import UNHEARD
from coherence.views.views import Views
from views.recorded import begun, fails, works


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def explained(path: Path, id: str) -> dict[str, Any]:
    """Return what ``coherence explain`` says."""
    found: dict[str, Any] = json.loads(CliRunner().invoke(main, ["explain", id, "--store", str(path), "--json"]).stdout)
    return found


def same(firing: FiringView, told: dict[str, Any]) -> None:
    assert (firing.id, firing.pattern, firing.arm, firing.seq, firing.ts, firing.text, firing.label) == (
        told["firing"], told["pattern"], told["arm"], told["seq"], told["ts"], told["text"], told["label"],
    )  # fmt: skip
    assert firing.delivered == (told["delivered"] is not None)


def test_firings_are_told_with_delivery_effect_and_label_as_by_explain(path: Path) -> None:
    with begun(path) as m:
        fired = fails(m, 13)
        m.label(fired[0], good=False)
        m.label(fired[1], good=True)
    with Views(path) as views:
        found = views.firings()
        assert [each.id for each in found] == fired[::-1] and len(found) > 2
        assert found == views.firings(agent="a") == views.firings(agent="a", session="s") == views.firings(session="s")
        assert views.session("a", "s").firings == found
        assert views.firings(agent="nobody") == () and views.firings(limit=2) == found[:2]
        for each in found:
            same(each, explained(path, each.id))
        first = found[-1]
        assert (first.label, found[-2].label, found[-3].label) == ("bad", "good", None)
        # as it fails on, the pressure has risen five actions later and the newest action failed
        outcome = next(each for each in explained(path, first.id)["outcomes"] if each["horizon"] == 5)
        sign = "+" if outcome["pressure_change"] < 0 else "−"
        assert first.effect.startswith(f"pressure {sign}{abs(outcome['pressure_change']):.2f} after 5 steps")
        assert "error not resolved" in first.effect and first.verdict == "worse"
        newest = found[0]
        assert not newest.delivered and newest.effect == UNHEARD and newest.verdict == ""
        marks = {mark.seq: mark for mark in views.timeline("a", "s").marks if mark.kind == "firing"}
        assert sorted(marks) == sorted(each.seq for each in found)
        assert marks[first.seq].text.startswith(f"{first.pattern}: {first.text[:20]}")


def test_firings_without_an_outcome_say_so_and_a_recovery_helped(path: Path) -> None:
    with begun(path) as m:
        (fired,) = fails(m, 2)
        m.delivered(fired)
        m.flush()
        with Views(path) as views:
            (before,) = views.firings()
        for number in range(6):
            call = m.tool_call("Bash", {"command": "pytest"})
            m.tool_result(f"{number} passed", call=call)
            m.decide()
    with Views(path) as views:
        (after,) = views.firings()
    assert (before.effect, before.verdict, before.delivered) == ("not measured yet", "", True)
    assert after.effect.endswith("error resolved") and after.verdict == "better"


def test_refusals_are_told_with_their_end_and_label_as_by_explain(path: Path) -> None:
    with begun(path, goal="Tell me what is in this folder. Do not delete data.") as m:
        m.message("user", "Tell me what is in this folder. Do not delete data.")
        one = m.check("Bash", {"command": "rm -rf data"})
        two = m.check("Bash", {"command": "rm -rf /"})
        three = m.check("Bash", {"command": "rm -r data"})
        assert not (one or two or three)
        m.flush()
        with Views(path) as views:
            line = views.overview().lines[0]
            assert line.refused == 3  # as many as were asked about
            assert line.decision == "block" and line.cause == three.message[: len(line.cause) - 1] + line.cause[-1:]
        m.confirm(one)
        m.unblock("a person looked", decision=three)
        m.flush()
    with Views(path) as views:
        session = views.session("a", "s")
        assert [each.seq for each in session.refusals] == [three.seq, two.seq, one.seq]
        for each in session.refusals:
            told = explained(path, each.id)
            assert (each.tool, each.why, each.label, each.ts) == (
                told["tool"], told["text"], told["label"], told["ts"],
            )  # fmt: skip
            assert each.unblocked == (told["overridden"] is not None)
            assert list(each.rules) == [finding["rule"] for finding in told["findings"]]
        newest, _, oldest = session.refusals
        assert (newest.unblocked, newest.reason, oldest.label) == (True, "a person looked", "good")
        kinds = [mark.kind for mark in views.timeline("a", "s").marks]
        assert kinds.count("refusal") == 3 and "unblock" in kinds
        step = views.step("a", "s", two.seq)
        assert two.seq in [each.seq for each in step.refusals] and step.decision == "block"


def test_refusals_of_a_kind_are_told_as_one_unless_they_differ_in_what_they_refuse(path: Path) -> None:
    with begun(path, goal="Tell me what is in this folder.") as m:
        for command in ("rm -rf /", "rm -rf /", "rm -rf ~", "rm -rf /"):
            assert m.check("Bash", {"command": command}).kind == "block"
    with Views(path) as views:
        line, refusals = views.overview().lines[0], views.session("a", "s").refusals
    assert (line.band, line.refused, line.cause[:9]) == ("unknown", 4, "rm -rf / ")
    assert [(each.tool, each.count, each.why[:9]) for each in refusals] == [
        ("Bash", 3, "rm -rf / "),
        ("Bash", 1, "rm -rf ~ "),
    ]


def test_overview_a_session_on_course_whose_calls_were_refused_stands_above_calm_ones(path: Path) -> None:
    with begun(path, session="refused") as m:
        works(m, 2)
        m.check("Bash", {"command": "rm -rf /"})
        works(m, 1)
        m.outcome(success=True)
    with begun(path, session="calm") as m:
        works(m, 2)
    with Views(path) as views:
        one, other = views.overview().lines
    assert (one.session, one.band, one.cause) == ("refused", "green", "1 call refused; otherwise on course")
    assert (other.session, other.cause) == ("calm", "")


def test_refusals_of_all_calls_in_a_row_are_told_as_one(path: Path) -> None:
    with begun(path, goal="Tell me what is in this folder.", budget={"tokens": 100}) as m:
        refused = []
        for _ in range(3):
            m.usage(tokens_in=200, tokens_out=10)
            refused.append(m.decide())
        call = m.check("Bash", {"command": "ls"})
        assert {each.kind for each in [*refused, call]} == {"block"}
        m.confirm(refused[2])
        m.flush()
        with Views(path) as views:
            one, _ = views.session("a", "s").refusals
        assert (one.tool, one.since, one.count) == ("Bash", call.seq, 1)
        m.confirm(refused[1])
    with Views(path) as views:
        told = views.session("a", "s").refusals[1:]
        assert [(each.seq, each.since, each.count, each.label) for each in told] == [
            (refused[2].seq, refused[2].seq, 1, "good"),
            (refused[1].seq, refused[0].seq, 2, "good"),
        ]
        assert views.overview().lines[0].refused == 1, "one call was asked about"


def test_refusals_an_unblock_lets_only_the_newest_call_through(path: Path) -> None:
    with begun(path, goal="Look. Do not delete data.") as m:
        m.message("user", "Look. Do not delete data.")
        m.check("Bash", {"command": "rm -rf data"})
        m.check("Bash", {"command": "rm -rf /"})
        m.unblock("go on")
    with Views(path) as views:
        newer, older = views.session("a", "s").refusals
        assert (newer.unblocked, older.unblocked) == (True, False)
        for each in (newer, older):
            assert each.unblocked == (explained(path, each.id)["overridden"] is not None)


def test_timeline_is_windowed_and_keeps_the_worst_of_each_part(path: Path) -> None:
    with begun(path) as m:
        works(m, 40)
        fails(m, 6)
        works(m, 40)
        readings = m.history(1_000)[::-1]
    order = ["unknown", "green", "yellow", "orange", "red"]
    with Views(path) as views:
        whole = views.timeline("a", "s")
        assert [(point.seq, point.index, point.band) for point in whole.points] == [
            (reading.tick_seq, reading.coherence_index, str(reading.band)) for reading in readings
        ]
        assert {point.count for point in whole.points} == {1} and len(whole.points) == 86
        assert [point.step for point in whole.points] == list(range(1, 87))
        parts = views.timeline("a", "s", points=10)
        assert len(parts.points) == 10 and sum(point.count for point in parts.points) == 86
        worst = max(readings, key=lambda reading: (order.index(str(reading.band)), -(reading.coherence_index or 1)))
        assert worst.tick_seq in [point.seq for point in parts.points]
        assert max(parts.points, key=lambda point: order.index(point.band)).band == str(worst.band)
        first, last = whole.points[10].seq, whole.points[20].seq
        zoomed = views.timeline("a", "s", first=first, last=last)
        assert zoomed.points == whole.points[10:21] and (zoomed.first, zoomed.last) == (first, last)
        assert all(first <= mark.seq <= last for mark in zoomed.marks)
        assert views.timeline("a", "s", first=10**6).points == () == views.timeline("a", "s", last=0).points
        assert len(views.timeline("a", "s", points=-5).points) == 1
        begins = [(mark.seq, mark.text) for mark in whole.marks if mark.kind == "finding"]
        told = next(seq for seq, text in begins if text.startswith("bash_retry: "))
        assert "bash_retry" in [finding.rule for finding in views.step("a", "s", told).findings]


def test_timeline_marks_goals_outcomes_and_compactions(path: Path) -> None:
    with begun(path) as m:
        works(m, 1)
        m.compaction("what was said so far")
        m.outcome(success=False, text="gave up")
        m.goal("try again")
    with Views(path) as views:
        marks = [(mark.kind, mark.text) for mark in views.timeline("a", "s").marks]
        assert marks == [
            ("goal", "fix the login test"),
            ("compaction", "what was said so far"),
            ("outcome", "gave up"),
            ("goal", "try again"),
        ]
        session = views.session("a", "s")
        assert session.goals == ("fix the login test", "try again") and session.line.goal == "try again"
        assert session.ended == "", "a new task has begun"


def test_compare_gives_the_differences_of_rates_cost_and_findings(path: Path) -> None:
    with begun(path, session="good") as m:
        works(m, 8)
    with begun(path, session="bad") as m:
        fails(m, 8)
    with Views(path) as views:
        found = views.compare(("a", "good"), ("a", "bad"))
        rates = {rate.name: rate for rate in found.rates}
        assert (rates["error rate"].one, rates["error rate"].other, rates["error rate"].difference) == (0.0, 1.0, 1.0)
        assert rates["cost"].one == pytest.approx(0.08) and (rates["cost"].other, rates["cost"].difference) == (
            None,
            None,
        )
        assert (rates["steps"].one, rates["steps"].other) == (8, 8)
        lowest = min(point.index for point in found.other_timeline.points if point.index is not None)
        assert rates["lowest index"].other == lowest
        assert ("bash_retry", 0, 1) in found.findings
        assert found.one == views.session("a", "good") and found.other_timeline == views.timeline("a", "bad")


def test_a_store_that_began_before_sessions_were_counted_shows_the_same(path: Path) -> None:
    """The tables say the same as all events when folded; a session that is counted in part is folded, too."""
    for name in ("whole", "half"):
        with begun(path, session=name) as m:
            works(m, 30)
            fails(m, 9)
            m.check("Bash", {"command": "ls"})
    with Store(path) as store, store.transaction() as transaction:
        transaction.execute("UPDATE tallies SET data = '{}' WHERE session_id = 2")  # as if the rest came from before
        for table in ("points", "marks"):
            transaction.execute(f"DELETE FROM {table} WHERE session_id = 2")
    with begun(path, session="half", resume=True) as m:
        works(m, 1)
    with begun(path, session="whole", resume=True) as m:
        works(m, 1)
    with Views(path) as views:
        whole, half = (views.session("a", name) for name in ("whole", "half"))
        for name in ("steps", "events", "index", "strip", "spark", "rules", "tokens", "band", "worst", "goal", "cause"):
            assert getattr(whole.line, name) == getattr(half.line, name), name
        assert (whole.calls, whole.errors, len(whole.firings)) == (half.calls, half.errors, len(half.firings))
        one, other = (views.timeline("a", name) for name in ("whole", "half"))
        assert [(point.seq, point.index, point.step) for point in one.points] == [
            (point.seq, point.index, point.step) for point in other.points
        ]
        assert [(mark.seq, mark.kind) for mark in one.marks] == [(mark.seq, mark.kind) for mark in other.marks]
        with Store(path) as store:
            before = tables(store, 1)
            assert count_uncounted(store, limit_s=-1.0) == 0
            assert count_uncounted(store) == 1 and count_uncounted(store) == 0
            assert tables(store, 1) == before and store.verify() == []
    with begun(path, session="half", resume=True) as m:
        works(m, 1)
    with begun(path, session="whole", resume=True) as m:
        works(m, 1)
    with Views(path) as views, Store(path) as store:
        one, other = (views.timeline("a", name) for name in ("whole", "half"))
        assert [(point.seq, point.step) for point in one.points] == [(point.seq, point.step) for point in other.points]
        assert not views._courses._folded and count_uncounted(store) == 0
        whole, half = (views.session("a", name) for name in ("whole", "half"))
        assert (whole.line.strip, whole.line.events) == (half.line.strip, half.line.events)


def tables(store: Store, session_id: int) -> list[Any]:
    """Return what the tables say of a session."""
    names = ("tallies", "points", "marks")
    return [store.fetch(f"SELECT * FROM {name} WHERE session_id = ?", (session_id,)) for name in names]


def test_fleet_pressure_reaches_who_relies_on_a_struggling_agent(path: Path) -> None:
    with Fleet(store=path, embedder=False) as fleet:
        planner, coder = fleet.agent("planner"), fleet.agent("coder", parent="planner")
        fleet.add_edge("coder", "planner", 0.5)
        planner.goal("plan")
        coder.goal("code")
        fails(coder, 9)
        planner.message("assistant", "I wait for the coder.")
        planner.decide()
        fleet.flush()
    with Views(path) as views:
        found = views.fleet()
    agents = {each.agent: each for each in found.agents}
    (edge,) = found.edges
    assert (edge.a, edge.b, edge.trust) == ("coder", "planner", 0.5)
    assert agents["coder"].own > 0 and edge.received == pytest.approx(0.5 * agents["coder"].pressure)
    assert agents["planner"].pressure == pytest.approx(max(edge.received, agents["planner"].own))
    assert agents["planner"].path[0] == ("coder" if edge.received > agents["planner"].own else "planner")
    assert (agents["coder"].parent, agents["planner"].parent) == ("planner", None)


def test_lessons_are_searched_and_told_where_they_were_learned(path: Path) -> None:
    with LessonStore(path, embedder=False) as lessons:
        numpy = lessons.record(
            pattern="NoModule", error_text="No module named 'numpy'", fix_text="uv add numpy", tool="Bash"
        )
        lessons.record(pattern="Port", error_text="address already in use", fix_text="kill the old server")
        lessons.outcome(numpy, helped=True)
    with begun(path, lessons=True) as m:
        call = m.tool_call("Bash", {"command": "python run.py"})
        m.tool_result("ModuleNotFoundError: No module named 'requests_toolbelt'", error=True, call=call)
        call = m.tool_call("Bash", {"command": "pip install requests-toolbelt"})
        m.tool_result("Successfully installed requests-toolbelt", call=call)
        call = m.tool_call("Bash", {"command": "python run.py"})
        m.tool_result("ok", call=call)
        m.decide()
    with Views(path) as views:
        found = views.lessons()
        assert len(found) == 3
        (one,) = views.lessons("NUMPY uv")
        assert (one.id, one.fix, one.helped, one.tool, one.role) == (numpy, "uv add numpy", 1, "Bash", "")
        assert views.lessons("numpy server") == () and len(views.lessons(limit=1)) == 1
        (learned,) = views.session("a", "s").lessons
        assert learned.role == "learned" and "requests-toolbelt" in learned.fix
        assert [(each.agent, each.session) for each in learned.origins] == [("a", "s")]


def test_guard_shows_patches_and_what_can_be_rolled_back(path: Path) -> None:
    config = Memory()
    with Guard(store=path, strategy=Proposes({"level": 2}), config_adapter=config, bounds=BOUNDS) as guard:
        for number in range(40):
            with suppress(ZeroDivisionError):
                guard.run(lambda number=number: 1 / (number % 2), agent="support", task="answer")  # type: ignore[misc]
        guard.flush()
        status = guard.status("support")
    with Views(path) as views:
        (agent,) = views.guard().agents
        assert (agent.agent, agent.calls, agent.failures) == ("support", status.calls, status.failures)
        assert agent.phase == status.phase and agent.patches
        patch = agent.patches[0]
        assert (patch.patch, patch.before, patch.number) == ({"level": 2}, {"level": 1}, 1)
        assert patch.can_roll_back and agent.trial_calls is not None
        assert {each.metric for each in agent.evidence} >= {"success"}
        assert views.overview().total == 0, "guarded calls are no session"


def test_experiments_show_the_effect_and_the_verdict(path: Path) -> None:
    rows: list[EventRow] = []
    for pair in range(40):
        for arm, change in (("control", 0.2), ("treatment", 0.6)):
            name = f"{arm}-{pair}"
            firing = FiringRow(name, "loop", pair, arm, "text")
            rows.append(EventRow(len(rows) + 1, 1.0, "tick", "{}", firing=firing))
            known = FiringOutcomeRow(firing=name, horizon=5, pressure_change=change)
            rows.append(EventRow(len(rows) + 1, 1.0, "tick", "{}", delivered=name, outcomes=(known,)))
    with Store(path) as store:
        with store.transaction() as transaction:
            row = transaction.add_session(session="s", agent="a", parent=None, source="api", started=1.0, config="{}")
            transaction.add_events(row, rows)
        judged = judge_pattern(store, "loop").judgement
    with Views(path) as views:
        (one,) = views.experiments()
        assert (one.pattern, one.pairs, one.verdict, one.policy) == ("loop", 40, "helps", "promote")
        assert (one.effect, one.low, one.high, one.decided_at) == (
            judged.effect,
            judged.low,
            judged.high,
            judged.decided_at,
        )
        # 0.6 before minus after for the told, which is the outcome nearest to five steps
        assert views.firings(limit=1)[0].effect == "pressure −0.60 after 5 steps"


def test_a_search_that_takes_too_long_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        with begun(path, session=name) as m:
            works(m, 1)
    ticking = iter(range(10**6))
    with Views(path) as views:
        assert not views.overview(text="login").partial
        monkeypatch.setattr(time, "monotonic", lambda: float(next(ticking)))
        found = views.overview(text="login(0)")
    assert found.partial and found.matched < 2
