"""Overview, session, events and steps, of stores that real monitors have written."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from coherence import Monitor
from coherence.core.events import Fault, encode_event
from coherence.core.readings import Band
from coherence.fleet.fleet import Fleet
from coherence.store.errors import StoreError
from coherence.store.rows import EventRow
from coherence.store.store import Store
from coherence.store.tally import PARTS
from coherence.views.changes import label_session
from coherence.views.lines import MISSED, STATES
from coherence.views.views import Views
from views.recorded import begun, fails, works


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_views_the_store_must_be_there_and_stays_open_if_it_was_given(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file; name the store"):
        Views(path)
    (tmp_path / "notes.txt").write_text("not a store")
    with pytest.raises(StoreError):
        Views(tmp_path / "notes.txt")
    begun(path).close()
    with Store(path) as store:
        with Views(store) as views:
            assert views.overview().total == 1
        assert not store.closed


def test_views_overview_of_an_empty_store_is_empty(path: Path) -> None:
    Store(path).close()
    with Views(path) as views:
        found = views.overview()
        assert (found.lines, found.total, found.matched, found.newest, views.newest()) == ((), 0, 0, 0, 0)
        with pytest.raises(LookupError, match="no session is called a/s; the store holds no session yet"):
            views.session("a", "s")


def test_views_overview_a_line_says_what_the_monitor_says(path: Path) -> None:
    with begun(path, config={"context_tokens": 1_000}) as m:
        works(m, 4)
        result = m.result
        assert result is not None and result.reading is not None
        m.flush()
        with Views(path) as views:
            (line,) = views.overview().lines
    assert (line.agent, line.session, line.source, line.goal) == ("a", "s", "api", "fix the login test")
    assert (line.index, line.band, line.pressure) == (
        result.reading.coherence_index,
        str(result.reading.band),
        result.appraisal.pressure,
    )
    # a goal; a call, a result, a usage and a tick each
    assert (line.steps, line.events, line.tokens, line.cost_usd) == (4, 1 + 4 * 4, 4 * 110, 0.04)
    assert line.context == 110 / 1_000
    assert len(line.strip) == len(line.spark) == 4 and line.strip[-1] == line.band[0].replace("u", "?")
    assert line.live and line.label is None and line.started <= line.last_ts <= time.time()


def test_views_overview_a_session_that_ended_or_is_old_is_not_live(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(path, session="ended") as m:
        works(m, 1)
        m.outcome(success=True)
    with begun(path, session="old") as m:
        works(m, 1)
    with begun(path, session="again") as m:
        m.outcome(success=False)
        m.goal("and now the linter")
    with Views(path) as views:
        assert {line.session: line.live for line in views.overview().lines} == {
            "ended": False, "old": True, "again": True,
        }  # fmt: skip
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61)
        assert not any(line.live for line in views.overview().lines)
        assert [views.session("a", name).ended for name in ("ended", "old", "again")] == ["the task succeeded", "", ""]


def test_views_overview_a_label_is_no_life_of_the_agent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(path) as m:
        works(m, 2)
    with Store(path) as store, Views(store) as views:
        before = views.overview().lines[0]
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 3600.0)
        label_session(store, "a", "s", "bad", "it did nothing")
        after = views.overview().lines[0]
        assert (after.last_ts, after.live, after.label) == (before.last_ts, False, "bad")
        assert after.events == before.events + 1


def test_views_overview_states_and_the_worst_that_go_on_come_first(path: Path) -> None:
    for session, success in (("won", True), ("lost", False), ("over", None)):
        with begun(path, session=session) as m:
            works(m, 2)
            m.outcome(success=success)
    with begun(path, session="failed in trouble") as m:
        fails(m, 9)
        m.outcome(success=False)
    with begun(path, session="in trouble") as m:
        fails(m, 9)
    with begun(path, session="new task") as m:
        works(m, 1)
        m.outcome(success=False)
        m.goal("another task")
    with Views(path) as views:
        outcomes = {line.session: line.outcome for line in views.overview().lines}
        assert outcomes == {
            "won": "succeeded",
            "lost": "failed",
            "over": "ended",
            "failed in trouble": "failed",
            "in trouble": "",
            "new task": "",
        }
        found = {state: {line.session for line in views.overview(state=state).lines} for state in STATES}
        assert found == {
            "running": {"in trouble", "new task"},
            "open": {"in trouble", "new task"},
            "succeeded": {"won"},
            "failed": {"lost", "failed in trouble"},
        }
        assert [line.session for line in views.overview().lines[:2]] == ["in trouble", "failed in trouble"]
        with pytest.raises(ValueError, match="state must be one of running, open, succeeded, failed, not 'good'"):
            views.overview(state="good")


def test_views_overview_a_session_that_is_not_measured_any_more_says_so(path: Path) -> None:
    with begun(path) as m:
        works(m, 2)
    with Store(path) as store:
        row = store.session("a", "s")
        assert row is not None
        fault = encode_event(Fault("measurement", "dropped", "no measurement of this step: 500 events wait"))
        last = store.last_seq(row.id)
        with store.transaction() as transaction:
            rows = [EventRow(last + at, 1.0, "fault", fault) for at in range(1, MISSED + 1)]
            transaction.add_events(row, rows[:-1])
        with Views(store) as views:
            assert views.overview().lines[0].cause == ""
            with store.transaction() as transaction:
                transaction.add_events(row, rows[-1:])
            assert views.overview().lines[0].cause.startswith(f"not measured: the newest {MISSED} measurements")


def test_views_overview_strip_keeps_the_worst_of_each_part(path: Path) -> None:
    with begun(path) as m:
        bands: list[str] = []
        for number in range(PARTS + 5):
            call = m.tool_call("Bash", {"command": "pytest"})
            m.tool_result("ImportError: x" if number < 8 else f"passed {number}", error=number < 8, call=call)
            m.decide()
            assert m.result is not None and m.result.reading is not None
            bands.append(str(m.result.reading.band))
    with Views(path) as views:
        line = views.overview().lines[0]
    order = ["unknown", "green", "yellow", "orange", "red"]
    # 65 readings: after the 60th each two are joined
    parts = [max(bands[at : at + 2], key=order.index) for at in range(0, len(bands), 2)]
    assert line.strip == "".join("?" if band == "unknown" else band[0] for band in parts)
    assert line.worst == max(bands, key=order.index) and line.worst != "green"
    assert line.rules and "bash_retry" in line.rules


def test_views_overview_is_chosen_sorted_and_paged(path: Path) -> None:
    with begun(path, "calm", "1", goal="write the report") as m:
        works(m, 3)
    with begun(path, "lost", "1", goal="fix the pipeline") as m:
        fails(m, 9)
    with begun(path, "idle", "1", goal="wait"):
        pass
    with Views(path) as views:
        found = views.overview()
        assert found.lines[0].agent == "lost" and found.lines[0].cause and found.lines[0].band != "green"
        assert found.agents == ("calm", "idle", "lost") and "bash_retry" in found.rules
        assert (found.total, found.matched, found.newest) == (3, 3, views.newest())

        def agents(**chosen: object) -> list[str]:
            return [line.agent for line in views.overview(**chosen).lines]  # type: ignore[arg-type]

        assert agents(sort="steps") == ["lost", "calm", "idle"]
        assert agents(sort="cost") == ["calm", "idle", "lost"]
        assert agents(sort="agent") == ["calm", "idle", "lost"]
        assert agents(sort="newest") == ["idle", "lost", "calm"]
        assert agents(sort="agent", limit=1, offset=1) == ["idle"]
        assert agents(agent="calm") == ["calm"] and agents(rule="none") == []
        assert agents(rule="bash_retry") == ["lost"]
        assert agents(band=found.lines[0].band) == ["lost"]
        assert agents(text="PIPELINE") == ["lost"] and agents(text="login(2) == 2") == ["calm"]
        assert agents(text='"role"') == [] and agents(text="100%_") == []
        lost = next(line for line in found.lines if line.agent == "lost")
        idle = next(line for line in found.lines if line.agent == "idle")
        assert agents(since=idle.started) == ["idle"] and agents(until=lost.started, sort="agent") == ["calm", "lost"]
        assert views.overview(limit=0).matched == 3
        with pytest.raises(ValueError, match="sort must be one of worst, newest, cost, steps, agent"):
            views.overview(sort="best")


def test_views_session_an_unknown_one_is_told_with_the_nearest_names(path: Path) -> None:
    for name in ("login", "logout", "zebra"):
        begun(path, "coder", name).close()
    with Views(path) as views, pytest.raises(LookupError, match="is called coder/logon; the nearest: coder/login"):
        views.session("coder", "logon")
    with Views(path) as views:
        for ask in (views.timeline, views.events):
            with pytest.raises(LookupError, match="no session is called"):
                ask("coder", "nothing")


def test_views_session_parents_and_subagents_are_told(path: Path) -> None:
    with Fleet(store=path, embedder=False) as fleet:
        fleet.agent("planner").goal("plan")
        fleet.agent("coder", parent="planner").goal("code")
        fleet.agent("other").goal("look")
    with Views(path) as views:
        assert views.session("planner", "1").subagents == (("coder", "1"),)
        assert {line.agent: line.parent for line in views.overview().lines} == {
            "planner": None, "coder": "planner", "other": None,
        }  # fmt: skip


def test_views_events_are_paged_and_found(path: Path) -> None:
    with begun(path) as m:
        works(m, 30)
        m.tool_result('it says "50%_" \\ done', error=True)
    with Views(path) as views:
        first = views.events("a", "s", limit=5)
        assert [event.seq for event in first] == [1, 2, 3, 4, 5]
        goal, usage, call, result, tick = first
        assert (goal.kind, goal.text) == ("goal", "fix the login test")
        assert (call.kind, call.tool, call.call) == ("tool_call", "Read", '{"path":"the login test/0.py"}')
        assert (result.text, result.error, result.duration_s) == ("def test_0(): assert login(0) == 0", False, 0.25)
        assert (usage.tokens_in, usage.tokens_out, usage.cost_usd, usage.model) == (100, 10, 0.01, "m-1")
        assert tick.kind == "tick"
        assert [event.seq for event in views.events("a", "s", after=5, limit=2)] == [6, 7]
        assert len(views.events("a", "s", kind="usage", limit=1_000)) == 30
        assert [event.text for event in views.events("a", "s", text='"50%_" \\')] == ['it says "50%_" \\ done']
        assert [event.text for event in views.events("a", "s", text="LOGIN(7)")] == [
            "def test_7(): assert login(7) == 7"
        ]
        assert views.events("a", "s", text="coherence.duration_s") == ()  # a name of the format, not a text


def test_views_step_holds_what_was_done_measured_and_found(path: Path) -> None:
    with begun(path) as m:
        fired = fails(m, 6)
        result = m.result
        assert result is not None and result.reading is not None
        newest = result.reading.tick_seq
    with Views(path) as views:
        step = views.step("a", "s", newest)
        assert (step.seq, step.step, step.first) == (newest, 6, newest - 2)
        assert step.last == newest + len(fired) - 1  # the host has confirmed them after it
        assert [event.kind for event in step.events][:2] == ["tool_call", "tool_result"]
        # whichever of its events is asked for
        assert views.step("a", "s", newest - 2) == views.step("a", "s", newest - 1) == step
        assert step.index == result.reading.coherence_index and step.metrics == dict(result.reading.metrics)
        assert "failure_streak" in step.inverted and "goal_coherence" not in step.inverted
        assert step.decision == result.decision.kind and step.message == result.decision.message
        active = [finding for finding in result.decision.findings if finding.active]
        assert {finding.rule for finding in step.findings} == {finding.rule for finding in active} != set()
        for finding in step.findings:
            for evidence in finding.evidence:
                assert views.events("a", "s", after=evidence.seq - 1, limit=1)[0].text in evidence.text
        first = views.firings()[-1]
        assert first.id == fired[0] and first in views.step("a", "s", first.seq).firings
        with pytest.raises(LookupError, match="a/s has no event 999; it has 1 to"):
            views.step("a", "s", 999)


def test_views_step_before_anything_was_measured_is_unknown(path: Path) -> None:
    with begun(path) as m:
        m.message("user", "hello")
        m.flush()
        with Views(path) as views:
            step = views.step("a", "s", 1)
    assert (step.seq, step.band, step.index, step.metrics, step.decision) == (0, "unknown", None, {}, "continue")
    assert [event.kind for event in step.events] == ["goal", "message"]


def test_views_no_text_shows_figures_and_no_word(path: Path) -> None:
    secret = "the launch code is 12345-swordfish"
    with begun(path, config={"privacy": "no-text"}, goal=secret) as m:
        for _ in range(6):
            call = m.tool_call("Bash", {"command": secret})
            m.tool_result(f"ImportError: {secret}", error=True, call=call)
            m.decide()
    with Views(path) as views:
        line = views.overview().lines[0]
        everything = msgspec.json.encode(
            [
                views.overview(),
                views.session("a", "s"),
                views.timeline("a", "s"),
                views.events("a", "s"),
                views.step("a", "s", 7),
                views.firings(),
                views.compare(("a", "s"), ("a", "s")),
            ]
        ).decode()
    assert line.steps == 6 and line.index is not None and line.rules
    assert "swordfish" not in everything and "launch" not in everything


def test_views_what_was_purged_is_gone_and_what_was_pruned_too(path: Path) -> None:
    with begun(path, "a", "kept") as m:
        works(m, 3)
    with begun(path, "b", "purged", goal="my secret plan") as m:
        fails(m, 5)
    with begun(path, "c", "pruned", goal="an old plan") as m:
        works(m, 2)
    with begun(path, "d", "newest", goal="a new plan") as m:
        works(m, 2)
    with Views(path) as views:
        assert views.overview().total == 4
        with Store(path) as store:
            store.purge("b")
            for table in ("tallies", "points", "marks"):
                assert store.fetch(f"SELECT count(*) FROM {table} WHERE session_id = 2") == [(0,)]
        assert [line.agent for line in views.overview(sort="agent").lines] == ["a", "c", "d"]
        with pytest.raises(LookupError, match="b/purged"):
            views.session("b", "purged")
        shown = msgspec.json.encode([views.overview(), views.firings(), views.lessons()]).decode()
        assert "secret plan" not in shown and "ImportError" not in shown
        with Store(path) as store:
            row = store.session("d", "newest")
            assert row is not None
            # the goal and first step of the newest leave with all that came before it
            ((place,),) = store.fetch("SELECT id FROM events WHERE session_id = ? AND seq = 5", (row.id,))
            store.prune(max_events=store.extent()[0] - (place - store.extent()[1] + 1))
        (line,) = views.overview().lines
        assert (line.agent, line.goal) == ("d", "")
        session = views.session("d", "newest")
        assert (session.first, session.last) == (6, 9)
        assert [event.seq for event in views.events("d", "newest")] == [6, 7, 8, 9]
        assert [point.seq for point in views.timeline("d", "newest").points] == [9]
        assert views.step("d", "newest", 8).first == 6


def test_views_follow_a_store_that_is_replaced_while_it_is_looked_at(path: Path) -> None:
    with begun(path, session="old") as m:
        works(m, 2)
    with Views(path) as views:
        assert [line.session for line in views.overview().lines] == ["old"]
        for name in path.parent.glob("runs.db*"):
            name.unlink()
        with begun(path, session="new") as m:
            works(m, 4)
        assert views.newest() == 1 + 4 * 4
        assert [(line.session, line.steps) for line in views.overview().lines] == [("new", 4)]
        assert len(views.timeline("a", "new").points) == 4


def test_views_rows_that_somebody_damaged_are_shown_as_far_as_they_can_be_read(path: Path) -> None:
    with begun(path) as m:
        fails(m, 5)
    plain = sqlite3.connect(path, isolation_level=None)
    plain.execute("INSERT INTO maintenance VALUES (1)")
    for table in ("events", "readings", "decisions"):
        plain.execute(f"DROP TRIGGER {table}_update")
    plain.execute("""UPDATE decisions SET data = '{"findings": 7}' WHERE seq = 7""")
    plain.execute("""UPDATE readings SET data = '[]', band = 'purple' WHERE seq = 10""")
    plain.execute("""UPDATE events SET data = '{"kind": "dance"}', kind = 'dance' WHERE seq = 3""")
    plain.execute("DELETE FROM maintenance")
    plain.close()
    with Views(path) as views:
        assert views.overview().total == 1 and views.session("a", "s").line.steps >= 4
        assert len(views.timeline("a", "s").points) == 5
        assert [event.kind for event in views.events("a", "s", limit=3)] == ["goal", "tool_call", "dance"]
        for seq in range(1, 16):
            assert views.step("a", "s", seq).first <= seq
        assert views.step("a", "s", 10).band == "unknown"


def test_views_follow_a_monitor_that_goes_on_writing(path: Path) -> None:
    """Whatever is read while it writes is true of some moment, and in the end all of it is there."""
    stop, troubles = threading.Event(), []

    def write() -> None:
        try:
            with begun(path, session="live") as m:
                while not stop.is_set():
                    works(m, 1)
                    m.flush()
        except BaseException as error:
            troubles.append(error)

    begun(path, session="first").close()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Views(path) as views:
            seen = 0
            until = time.monotonic() + 20
            while seen < 40 and time.monotonic() < until:
                line = next((each for each in views.overview().lines if each.session == "live"), None)
                if line is not None and line.events:
                    assert line.events >= seen
                    seen = line.events
                    timeline = views.timeline("a", "live")
                    assert timeline.total >= seen and all(point.seq <= timeline.last for point in timeline.points)
    finally:
        stop.set()
        writer.join()
    assert not troubles and seen >= 40
    with Views(path) as views, Store(path) as store:
        row = store.session("a", "live")
        assert row is not None
        assert views.session("a", "live").line.events == store.count_events(row.id)
        assert store.verify() == []


def test_views_are_shared_by_threads_while_sessions_are_written_and_purged(path: Path) -> None:
    for name in ("one", "two", "three"):
        with begun(path, name) as m:
            works(m, 5)
            fails(m, 3)
    troubles: list[BaseException] = []
    stop = threading.Event()

    def look() -> None:
        try:
            while not stop.is_set():
                for line in views.overview().lines:
                    if line.agent == "one":
                        views.session("one", "s")
                        views.timeline("one", "s")
                        views.step("one", "s", 5)
        except BaseException as error:
            troubles.append(error)

    with Views(path) as views:
        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        with begun(path, "one", resume=True) as m:
            works(m, 10)
        with Store(path) as store:
            for name in ("two", "three"):
                with suppress(StoreError):  # readers are in the way of emptying the log, which purging again does
                    store.purge(name)
        stop.set()
        for thread in threads:
            thread.join()
        assert troubles == [] and [line.agent for line in views.overview().lines] == ["one"]


def test_views_newest_moves_with_each_event_and_with_nothing_else(path: Path) -> None:
    with begun(path) as m:
        m.flush()
        with Views(path) as views:
            before = views.newest()
            assert before == views.newest() > 0
            m.message("user", "hello")
            m.flush()
            assert views.newest() == before + 1


def test_views_a_step_of_several_calls_at_once_is_shown_with_its_measurement(path: Path) -> None:
    with begun(path) as m:
        one, two = m.tool_call("Read", {"path": "a"}), m.tool_call("Read", {"path": "b"})
        m.tool_result("A", call=one)
        m.tool_result("B", call=two)
        m.message("user", "thanks")
        m.message("assistant", "You are welcome.")
    with Views(path) as views:
        # goal, two calls, a result and a tick; a result and a tick; two messages and a tick
        spans = {(step.first, step.last) for step in (views.step("a", "s", seq) for seq in range(1, 11))}
        assert spans == {(1, 5), (6, 7), (8, 10)}
        assert [views.step("a", "s", seq).step for seq in (1, 6, 8)] == [1, 2, 3]


def test_views_bands_of_an_unmeasured_session_are_unknown(path: Path) -> None:
    with Monitor(agent="a", session="s", store=path, embedder=False):
        pass
    with Views(path) as views:
        line = views.overview().lines[0]
    assert (line.band, line.worst, line.index, line.strip, line.spark) == (str(Band.UNKNOWN), "unknown", None, "", ())
    assert (line.events, line.steps, line.goal, line.cause, line.decision) == (0, 0, "", "", "continue")


def test_overview_gives_the_first_request_as_the_goal_where_none_is_set(path: Path) -> None:
    with Monitor(agent="a", session="asked", store=path, embedder=False) as m:
        m.message("user", "Fix the login.")
        m.message("assistant", "I look.")
        m.message("user", "And the logout.")
    with Monitor(agent="a", session="set", store=path, embedder=False) as m:
        m.message("user", "Hello.")
        m.goal("Count the files.")
    with Views(path) as views:
        assert {line.session: line.goal for line in views.overview().lines} == {
            "asked": "Fix the login.",
            "set": "Count the files.",
        }
        assert views.session("a", "asked").goals == ("Fix the login.",)
