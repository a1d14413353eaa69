"""Going on: after a close, a kill, a change of settings, in a new session."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence import Budget, Monitor, Store
from coherence.monitor import stored_session as opening
from coherence.monitor.folding import SNAPSHOT_EVERY
from coherence.monitor.session_header import add_session, read_beginning
from coherence.providers import HashingEmbedder
from monitor.helpers import check_replay

Action = tuple[str, list[Any], dict[str, Any]]

WORDS = "login test token file server retry maybe fail read write cache I think unclear done json user goal".split()
SETTINGS: dict[str, Any] = {
    "timeout_s": 60.0,
    "context_tokens": 50_000,
    "prices": {"m": {"input": 3.0, "output": 15.0}},
}
BUDGET = {"tokens": 200_000, "cost_usd": 5.0, "calls": 300}


def text(dice: random.Random) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(1, 12)))


def actions(dice: random.Random, count: int) -> list[Action]:
    """Give a random life of an agent."""
    made: list[Action] = [("goal", ["fix the login test"], {})]
    number = 0
    while len(made) < count:
        kind = dice.choices(["say", "user", "call", "usage", "memory", "rare"], [4, 1, 6, 3, 1, 1])[0]
        if kind == "say":
            logprobs = [dice.uniform(-4, 0) for _ in range(dice.randint(1, 9))] if dice.random() < 0.3 else None
            made.append(("message", ["assistant", text(dice)], {"logprobs": logprobs}))
        elif kind == "user":
            made.append(("message", ["user", text(dice)], {}))
        elif kind == "call":
            number += 1
            command = text(dice) if dice.random() < 0.7 else "pytest -q"
            made.append(("tool_call", ["Bash", {"command": command}], {"call": f"c{number}"}))
            if dice.random() < 0.9:
                result = text(dice) if dice.random() < 0.7 else "ImportError"
                made.append(("tool_result", [result], {"error": dice.random() < 0.4, "call": f"c{number}"}))
        elif kind == "usage":
            tokens = {"tokens_in": dice.randint(1, 20_000), "tokens_out": dice.randint(1, 500)}
            made.append(("usage", [], {**tokens, "model": dice.choice(["m", "other"])}))
        elif kind == "memory":
            made.append(("memory", [text(dice)], {"id": dice.choice([None, "a", "b"])}))
        else:
            rare: list[Action] = [
                ("compaction", [text(dice)], {}),
                ("correction", [text(dice)], {}),
                ("feedback", [0.5], {}),
                ("outcome", [True], {}),
                ("check", ["Bash", {"command": "ls"}], {}),
                ("decide", [], {}),
                ("fault", ["hook", "it broke"], {}),
            ]
            made.append(dice.choice(rare))
    return made


def play(m: Monitor, life: list[Action]) -> list[Any]:
    """Act, and tell everything that can be seen after each step."""
    seen: list[Any] = []
    for method, arguments, options in life:
        getattr(m, method)(*arguments, **options)
        decision = m.decide()
        if decision.guidance is not None:  # its id holds the moment of the firing
            decision = msgspec.structs.replace(decision, guidance=msgspec.structs.replace(decision.guidance, id=""))
        verdict = m.result
        assert verdict is not None and verdict.reading is not None
        reading = verdict.reading
        shown = (reading.metrics, reading.coherence_index, reading.band, reading.coverage, reading.losses)
        seen.append((decision, m.pressure, m.mode, m.vitals, shown, verdict.appraisal, m.counters))
    return seen


def monitor(path: Path | None, **options: Any) -> Monitor:
    given = {"embedder": HashingEmbedder(64), "config": SETTINGS, "budget": BUDGET, "lessons": False, **options}
    return Monitor(agent="a", resume=True, store=path, **given)


KILLED = """
import json, os, signal, sys
from coherence import Monitor
from coherence.providers import HashingEmbedder
path, given, life = sys.argv[1], json.loads(sys.argv[2]), json.load(sys.stdin)
m = Monitor(agent="a", resume=True, store=path, embedder=HashingEmbedder(64), **given)
for method, arguments, options in life:
    getattr(m, method)(*arguments, **options)
    m.decide()
m.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_after(path: Path, life: list[Action]) -> None:
    given = json.dumps({"config": SETTINGS, "budget": BUDGET, "lessons": False})
    done = subprocess.run([sys.executable, "-c", KILLED, path, given], input=json.dumps(life), text=True, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
@examples(6)
@given(seed=st.integers(0, 2**32), length=st.integers(2, 40), part=st.floats(0, 1))
def test_session_an_agent_goes_on_after_a_close_as_if_nothing_had_been(
    tmp_path_factory: pytest.TempPathFactory, seed: int, length: int, part: float
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    life = actions(random.Random(seed), length)
    cut = int(part * len(life))
    with monitor(folder / "whole.db") as m:
        expected = play(m, life)
    with monitor(folder / "cut.db") as m:
        seen = play(m, life[:cut])
    with monitor(folder / "cut.db") as m:
        assert m.session == "1"
        seen += play(m, life[cut:])
    assert seen == expected
    assert play_without_a_store(life) == expected
    check_replay(folder / "cut.db", kept=None)


def play_without_a_store(life: list[Action]) -> list[Any]:
    return play(monitor(None), life)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_session_an_agent_goes_on_after_a_kill_as_if_nothing_had_been(tmp_path: Path) -> None:
    dice = random.Random(1)
    life = actions(dice, 60)
    cut = dice.randint(1, len(life) - 1)
    with monitor(tmp_path / "whole.db") as m:
        expected = play(m, life)
    kill_after(tmp_path / "killed.db", life[:cut])
    with monitor(tmp_path / "killed.db") as m:
        assert m.session == "1"
        assert play(m, life[cut:]) == expected[cut:]
    check_replay(tmp_path / "killed.db", kept=None)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_session_an_agent_goes_on_from_a_snapshot_and_the_events_after_it(tmp_path: Path) -> None:
    # Each action is followed by a tick, so a life of 600 actions has more than 1,000 events.
    life = actions(random.Random(4), 620)
    kill_after(tmp_path / "killed.db", life[:600])
    with Store(tmp_path / "killed.db") as store:
        (row,) = store.sessions()
        found = store.snapshot(row.id)
        newest = store.last_seq(row.id)
        assert 1_000 < newest < 2_000 and newest % SNAPSHOT_EVERY > 0
        assert found is not None and found[0] == newest - newest % SNAPSHOT_EVERY
    with monitor(tmp_path / "killed.db") as m:
        seen = play(m, life[600:])
    assert seen == play_without_a_store(life)[600:]
    check_replay(tmp_path / "killed.db", kept=None)


def test_session_with_the_shipped_model_it_is_the_same(tmp_path: Path) -> None:
    life = actions(random.Random(5), 24)
    patient = {"timeout_s": 60.0}
    expected = play(Monitor(agent="a", config=patient), life)
    with Monitor(agent="a", resume=True, store=tmp_path / "s.db", config=patient) as m:
        seen = play(m, life[:12])
    with Monitor(agent="a", resume=True, store=tmp_path / "s.db", config=patient) as m:
        seen += play(m, life[12:])
    assert seen == expected
    check_replay(tmp_path / "s.db", kept=None)


@pytest.mark.parametrize(
    "changed",
    [{"budget": {"calls": 7}}, {"config": {**SETTINGS, "window": 3}}, {"source": "hook"}],
    ids=["budget", "config", "source"],
)
def test_session_changed_settings_begin_a_continuation_that_takes_the_state_over(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = tmp_path / "s.db"
    life = actions(random.Random(6), 40)
    with monitor(path) as m:
        play(m, life)
        before = (m.pressure, m.counters, list(m._worker.pipeline.state.get_goals()))
        context = list(m._worker.pipeline.state.get_recent_context())
    with monitor(path, **changed) as m:
        assert m.session == "1~2"
        assert (m.pressure, m.counters, list(m._worker.pipeline.state.get_goals())) == before
        assert list(m._worker.pipeline.state.get_recent_context()) == context
        m.message("assistant", "going on")
        assert m.decide().seq == 2  # the message, and the tick of its step
        window = m.config.window
        assert list(m._worker.pipeline.state.get_recent_context()) == [*context, "going on"][-window:]
    with monitor(path, **changed) as m:
        assert m.session == "1~2"
    with monitor(path) as m:
        assert m.session == "1~3"  # the newest session has other settings again
    with Store(path) as store:
        assert [row.session for row in store.sessions()] == ["1", "1~2", "1~3"]
        assert [read_beginning(row).continues for row in store.sessions()] == ["", "1", "1~2"]
    check_replay(path, kept=None)


def baselines(m: Monitor) -> Any:
    return {name: (b.mean, b.variance, b.count) for name, b in m._worker.pipeline.appraiser.mood.baselines.items()}


def test_a_new_session_has_the_agents_baselines_but_not_its_context(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, session="monday") as m:
        play(m, actions(random.Random(7), 60))
        learned = baselines(m)
        assert learned
    with monitor(path, session="tuesday") as m:
        assert m.session == "tuesday"
        assert baselines(m) == learned
        state = m._worker.pipeline.state
        assert (list(state.get_goals()), list(state.get_recent_context()), state.facts.calls) == ([], [], 0)
        assert m.pressure == 0.0
    with monitor(path) as m:
        assert m.session == "tuesday"  # the newest
    with monitor(path, session="monday") as m:
        assert m.session == "monday"
        assert m._worker.pipeline.state.facts.calls > 0


@pytest.mark.parametrize("resume", [False, True])
def test_session_a_new_one_begins_calm_unless_it_resumes(tmp_path: Path, resume: bool) -> None:
    path = tmp_path / "s.db"
    with Monitor(agent="a", store=path, embedder=False) as m:
        for _ in range(7):
            m.tool_result("boom", tool="Bash", error=True)
        assert m.decide() == "block"
    with Monitor(agent="a", store=path, embedder=False, resume=resume) as m:
        assert m.session == ("1" if resume else "2")
        assert m.decide() == ("block" if resume else "continue")
        assert (m.pressure > 0.7) is resume


def test_a_test_neither_writes_baselines_nor_is_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path) as m:
        play(m, actions(random.Random(8), 30))
        learned, calls = baselines(m), m.counters
    with Store(path) as store:
        kept = store.baselines("a")
    with monitor(path, source="test") as m:
        assert m.session == "1~2"
        assert baselines(m) == learned  # an agent under test is judged as usual
        assert m.counters.calls == 0
        play(m, actions(random.Random(9), 30))
        assert baselines(m) != learned
    with Store(path) as store:
        assert store.baselines("a") == kept
    with monitor(path) as m:
        assert (m.session, baselines(m), m.counters) == ("1", learned, calls)
    with monitor(path, source="test") as m:
        assert m.session == "1~2"
    with monitor(path, source="test", session="1") as m:
        assert m.session == "1~2"
    with monitor(path, session="1") as m:
        assert m.session == "1"
    with monitor(path, budget=Budget(calls=9)) as m:
        assert m.session == "1~3"
        assert m.counters == calls


def test_session_an_agent_goes_on_although_its_oldest_events_were_removed(tmp_path: Path) -> None:
    life = actions(random.Random(11), 60)
    expected = play_without_a_store(life)
    few = {**SETTINGS, "retention": {"max_events": 5}}
    with monitor(tmp_path / "s.db", config=few) as m:
        seen = play(m, life[:30])
    with Store(tmp_path / "s.db") as store:
        assert store.count_events() == 5
        assert store.verify() == []
    with monitor(tmp_path / "s.db", config=few) as m:
        assert seen + play(m, life[30:]) == expected


def test_a_session_that_another_process_begins_with_other_settings_is_not_mixed_with_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    real = add_session
    others: list[Monitor] = []

    def late(*arguments: Any) -> Any:
        """Let another one begin the session at the last moment."""
        monkeypatch.setattr(opening, "add_session", real)
        others.append(monitor(path, budget={"calls": 5}))
        return real(*arguments)

    monkeypatch.setattr(opening, "add_session", late)
    with monitor(path) as mine:
        assert [others[0].session, mine.session] == ["1", "1~2"]
        with Store(path) as store:
            budgets = [read_beginning(row).settings.budget for row in store.sessions()]
        assert budgets == [Budget(calls=5), Budget(**BUDGET)]  # type: ignore[arg-type]
    others[0].close()


@pytest.mark.slow
def test_two_monitors_of_one_session_see_each_others_events_and_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    life = actions(random.Random(10), 80)
    one, other = monitor(path), monitor(path)
    for turn, (method, arguments, options) in enumerate(life):
        m = one if turn % 2 else other
        getattr(m, method)(*arguments, **options)
        m.decide()
        m.flush()
    one.flush()
    one.message("assistant", "the end")
    one.decide()
    one.close()
    other.close()
    with Store(path) as store:
        (row,) = store.sessions()
        events = list(store.events(row.id))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        ours = [action for action in life if action[0] not in ("decide", "check")]
        assert sum(event.kind != "tick" for event in events) == len(ours) + 1
    check_replay(path, kept=None)
    with monitor(path) as m:
        assert m.session == "1"
        assert m.counters.calls == sum(action[0] == "tool_result" for action in life)


def test_session_names_of_continuations_are_told_apart_from_names_of_sessions(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for session, budget, name in (
        (None, 1, "1"),
        (None, 2, "1~2"),
        ("1", 3, "1~3"),
        ("1~2", 4, "1~4"),
        ("1~2", 2, "1~2"),  # goes on, with the same settings
        ("a~b", 1, "a~b"),
        ("a~b", 2, "a~b~2"),
        ("x~2", 1, "x~2"),  # a name of its own: there is no x
        ("x~2", 2, "x~2~2"),
        ("x~2", 2, "x~2~2"),
    ):
        with monitor(path, session=session, budget={"calls": budget}) as m:
            assert m.session == name
