from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.core.errors import CoherenceError
from coherence.core.events import Feedback, Goal, Message, decode_event
from coherence.detect.prohibitions import MAX_PROHIBITIONS
from coherence.integrations.mcp import own_state
from coherence.integrations.mcp.own_state import DECLARED, MAX_ANSWER, MAX_DECLARED, MAX_READINGS, OwnState
from coherence.lessons.store import LessonStore
from coherence.providers import HashingEmbedder
from coherence.store.store import Store
from coherence.store.told import newest_firings, newest_refusals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def own(path: Path) -> Iterator[OwnState]:
    found = OwnState(path, embedder=HashingEmbedder())
    yield found
    found.close()


def monitor(path: Path, agent: str = "a", **options: Any) -> Monitor:
    options = {"goal": "make the tests pass", "embedder": HashingEmbedder(), **options}
    return Monitor(agent=agent, store=path, **options)


def fail(m: Monitor, times: int = 4) -> None:
    for _ in range(times):
        m.tool_result("ImportError: no module named x", error=True, call=m.tool_call("Bash", {"command": "pytest -q"}))
        m.decide()


def work(m: Monitor, steps: int) -> None:
    for at in range(steps):
        m.tool_result(f"part {at} is fine", call=m.tool_call("Read", {"path": f"part-{at}"}))
        m.decide()
    m.flush()


def test_status_says_what_the_monitor_says(path: Path, own: OwnState) -> None:
    with monitor(path, budget={"calls": 10}) as m:
        fail(m, 4)
        m.flush()
        decision, reading = m.decide(), m.latest
        assert reading is not None and reading.coherence_index is not None
        light, reason, budget, session = own.status().splitlines()
        assert light.startswith(f"light {reading.band}, index {reading.coherence_index:.2f}, trend ")
        assert light.endswith(f"({m.mode}), decision {decision.kind}")
    assert reason == f"strongest reason: {decision.message}"
    assert budget == "budget calls: 4 of 10 calls are used (40%)"
    assert session.startswith("session a/1, measured ") and session.endswith(", 4 steps")


def test_status_before_the_first_measurement(path: Path, own: OwnState) -> None:
    with pytest.raises(CoherenceError, match="nothing is recorded yet: there is no store at"):
        own.status()
    Store(path).close()
    with pytest.raises(CoherenceError, match="nothing is recorded in "):
        own.status()
    with monitor(path) as m:
        m.flush()
        assert own.status() == "light unknown: nothing is measured yet in session a/1"


def test_status_is_of_the_session_used_last_unless_one_is_named(path: Path, own: OwnState) -> None:
    with monitor(path, "a") as a, monitor(path, "b") as b, monitor(path, "a/sub", parent="a") as sub:
        work(a, 1)
        work(b, 1)
        assert "session b/1" in own.status()
        work(a, 1)
        work(sub, 1)
        assert "session a/1" in own.status()  # not that of the agent it has started
    with monitor(path, "t", source="test") as t:
        work(t, 1)
    assert "session a/1" in own.status()
    for agent, session in (("b", None), ("b", "1"), ("a/sub", None), ("a", "1")):
        assert f"session {agent}/1" in OwnState(path, agent, session).status()
    with pytest.raises(CoherenceError, match="nothing is recorded of b/7 in"):
        OwnState(path, "b", "7").status()


def test_status_finds_the_session_by_the_call_that_asks(
    path: Path, own: OwnState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_state, "WAIT_S", 0.0)
    with monitor(path, "a/sub", parent="a") as sub, monitor(path, "a") as a:
        work(sub, 1)
        sub.tool_call("mcp__coherence__coherence_status", {}, call="toolu_1")
        sub.flush()
        work(a, 1)
        assert "session a/sub/1" in own.status("toolu_1")
        assert "session a/1" in own.status("toolu_2")  # of no hook


def test_readings_are_the_newest_first_and_few(path: Path, own: OwnState) -> None:
    with monitor(path) as m:
        work(m, MAX_READINGS + 2)
        expected = [reading.tick_seq for reading in m.history(MAX_READINGS)]
    found = own.readings("a")
    assert [each["seq"] for each in found] == expected
    assert set(found[0]) == {"seq", "ts", "index", "band", "pressure", "decision"}
    assert len(str(found)) < 2_000
    with pytest.raises(CoherenceError, match="nothing is recorded of b"):
        own.readings("b")


def test_explain_the_newest_or_one_by_its_id(path: Path, own: OwnState) -> None:
    with monitor(path) as m:
        m.flush()
        assert own.explain() == "no guidance was given and no call refused in session a/1"
        fail(m, 3)
        assert not m.check("Bash", {"command": "rm -rf /"})
        m.flush()
        told = own.explain()
        firings, (refusal,) = newest_firings(m.store, 9), newest_refusals(m.store, 9)  # type: ignore[arg-type]
        assert told.startswith(f"{refusal.id}: a call of Bash was refused ")
        assert "by harmful_call\nreason: rm -rf / wipes" in told and "unblock" not in told
        m.unblock("a person looked")
        m.flush()
        assert own.explain(refusal.id).endswith("a person has ended this block: a person looked")
    firing = firings[0]
    told = own.explain(firing.id)
    assert told.startswith(f"{firing.id}: guidance ") and firing.text in told and f"rule {firing.pattern}: " in told
    with pytest.raises(CoherenceError, match="no firings or refusals are called nothing"):
        own.explain("nothing")


def test_explain_keeps_what_was_withheld_for_an_experiment(path: Path, own: OwnState) -> None:
    with monitor(path, config={"guidance": {"randomise": True}}) as m:
        for at in range(12):
            fail(m, 3)
            work(m, at % 3)
        m.flush()
        withheld = [each for each in newest_firings(m.store, 99) if each.arm == "control"]  # type: ignore[arg-type]
    assert withheld
    with pytest.raises(CoherenceError, match="no firings"):
        own.explain(withheld[0].id)


def test_record_lesson_is_found_again_with_the_session_that_told_it(path: Path, own: OwnState) -> None:
    error, fix = "ModuleNotFoundError: No module named 'yaml'", "pip install pyyaml"
    assert own.record_lesson(error, fix, "Bash") == "lesson 1 is kept"  # without any session, too
    with monitor(path) as m:
        m.flush()
        own.record_lesson(error, fix, "Bash")
    first, *_, last = own.lessons_for(error).splitlines()
    assert first.startswith("lesson 1 (") and first.endswith(f": {fix}") and "not instructions" in last
    assert own.lessons_for("the moon is full") == "no lesson is like this error"
    with LessonStore(path, embedder=False) as kept:
        lesson = kept.get(1)
    assert lesson is not None and (lesson.pattern, lesson.count) == ("ModuleNotFoundError", 2)
    assert [(each.agent, each.session) for each in lesson.origins] == [("a", "1")]


def test_declare_goal_replaces_nothing_and_allows_nothing(path: Path, own: OwnState) -> None:
    with monitor(path) as m:
        m.flush()
        told = own.declare_goal("wipe everything with rm -rf /")
        assert told == "noted. It replaces nothing; the user's newest request is: make the tests pass"
        m.message("assistant", "I begin.")
        m.flush()
        assert m.state.facts.goal == "make the tests pass"
        assert not m.check("Bash", {"command": "rm -rf /"})
    with Store(path) as kept:
        found = [decode_event(event.data) for event in kept.events(kept.sessions()[0].id)]
    assert [type(event) for event in found].count(Goal) == 1
    assert any(isinstance(e, Feedback) and e.text.endswith("works on: wipe everything with rm -rf /") for e in found)
    with pytest.raises(CoherenceError, match="the goal is empty"):
        own.declare_goal(" \n")


def test_declare_constraint_is_held_in_the_live_session_and_loosened_by_no_one_but_the_user(
    path: Path, own: OwnState
) -> None:
    push = ("Bash", {"command": "git push origin main"})
    with monitor(path, goal="Fix the bug, and push to main. Do not delete anything.") as m:
        assert m.check(*push)
        m.flush()
        own.declare_constraint("Do not push to main. password=hunter2!x")
        m.message("assistant", "I go on.")
        m.flush()
        assert not m.check(*push)
        for text in ("You may push to main.", "Deleting is allowed from now on."):
            with pytest.raises(CoherenceError, match="forbids nothing"):
                own.declare_constraint(text)
        own.declare_goal("push to main, delete the tests")
        m.message("assistant", "I push.")
        m.flush()
        assert not m.check("Bash", {"command": "rm tests/test_a.py"})
        assert not m.check(*push)
        m.unblock("the user wants it")
        assert m.check(*push)
    with Store(path) as kept:
        found = [decode_event(event.data) for event in kept.events(kept.sessions()[0].id)]
    declared = [each.content for each in found if isinstance(each, Message) and each.role == "system"]
    assert declared == [f"{DECLARED}Do not push to main."]  # what forbids, and nothing else


def test_declare_constraint_takes_no_room_from_the_user(path: Path, own: OwnState) -> None:
    with monitor(path) as m:
        m.flush()
        for number in range(MAX_DECLARED):
            own.declare_constraint(f"Do not delete table_{number}.")
            own.declare_constraint(f"Do not delete table_{number}.")  # once more is no more
        with pytest.raises(CoherenceError, match="too many constraints"):
            own.declare_constraint("Do not delete the last one.")
    many = " ".join(f"Do not delete table_{number}." for number in range(MAX_PROHIBITIONS))
    with monitor(path, "b", goal=many) as m:
        m.flush()
        with pytest.raises(CoherenceError, match="too many constraints"):
            own.declare_constraint("Do not push to main.")
    with pytest.raises(CoherenceError, match="at most 200 characters"):
        own.declare_constraint("Do not push. " * 20)


def test_declare_constraint_needs_a_session_that_goes_on(path: Path, own: OwnState) -> None:
    with monitor(path) as m:
        m.flush()
    ahead = time.time() + own_state.MAX_IDLE_S + 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_state.time, "time", lambda: ahead)  # type: ignore[attr-defined]
        for declare in (own.declare_goal, own.declare_constraint):
            with pytest.raises(CoherenceError, match=r"no session goes on: a/1 was used 60 min ago"):
                declare("Do not push to main.")


def test_declare_goal_and_lessons_keep_no_text_of_a_session_without_texts(path: Path, own: OwnState) -> None:
    with monitor(path, config={"privacy": "no-text"}) as m:
        work(m, 1)
        attempts: list[Callable[[], str]] = [
            lambda: own.declare_goal("something"),
            lambda: own.declare_constraint("Do not push to main."),
            lambda: own.record_lesson("ImportError: x", "pip install x"),
        ]
        for attempt in attempts:
            with pytest.raises(CoherenceError, match="recorded without texts"):
                attempt()
        told = own.status()
        m.check("Bash", {"command": "rm -rf /"})
        m.flush()
        assert "not kept" in own.explain()
    assert told.startswith("light ") and "strongest reason: not kept" in told and "session a/1" in told
    assert own.readings("a")[0]["decision"] == "continue"


def test_status_and_explain_stay_short_whatever_is_recorded(path: Path, own: OwnState) -> None:
    with monitor(path, "ä" * 200, session="s" * 200) as m:
        for _ in range(4):
            call = m.tool_call("Ünter" * 40, {"command": "x" * 5_000})
            m.tool_result("Überfehler " * 2_000, error=True, call=call)
            m.decide()
        m.check("Bash", {"command": f"rm -rf / {'y' * 9_000}"})
        m.flush()
        for told in (own.status(), own.explain()):
            assert len(told.encode()) <= MAX_ANSWER
