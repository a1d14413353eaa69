"""Recorded runs told again: when each step comes, what is measured, and what an interruption leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from coherence import Store
from coherence.core.config import MonitorConfig
from coherence.monitor.player import LONGEST_PAUSE_S, RHYTHM_S, Part, Player, Told, schedule
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript
from coherence.report.score import score_transcript
from coherence.store.told import newest_firings
from monitor.helpers import check_replay

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"


def run_of(*times: float | None, id: str = "run") -> Transcript:
    """Return a run whose steps have these times."""
    steps = [Step(role="assistant", content=f"I look at file {at}.", ts=ts) for at, ts in enumerate(times)]
    return Transcript(id=id, goal="Look at the files.", steps=tuple(steps))


def at_once(run: Transcript) -> Transcript:
    """Return a run all of whose steps have one time, so that nobody waits for it."""
    return msgspec.structs.replace(run, steps=tuple(msgspec.structs.replace(step, ts=0.0) for step in run.steps))


def times(run: Transcript, *others: Transcript) -> list[float]:
    """Return when the steps of the first of some runs are told."""
    return [turn.at for turn in schedule([run, *others]) if turn.part == 0]


def test_schedule_keeps_the_pauses_of_the_run() -> None:
    assert times(run_of(100.0, 101.5, 101.5, 109.0)) == [0.0, 1.5, 1.5, 9.0]


def test_schedule_cuts_a_pause_that_nobody_watches_and_one_that_goes_back() -> None:
    assert times(run_of(0.0, 86_400.0, 5.0, 6.0)) == [0.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_PAUSE_S + 1.0]


def test_schedule_has_a_steady_rhythm_where_steps_have_no_times() -> None:
    assert times(run_of(None, None, None)) == [0.0, RHYTHM_S, 2 * RHYTHM_S]
    # from a step without a time to one with one, and back
    assert times(run_of(0.0, 1.0, None, 3.0)) == [0.0, 1.0, 1.0 + RHYTHM_S, 1.0 + 2 * RHYTHM_S]


def test_schedule_spreads_a_run_without_times_over_the_longest() -> None:
    # the longest takes 4 * 20 s; two pauses of the other share them
    assert times(run_of(None, None, None), run_of(*[None] * 5)) == [0.0, 2 * RHYTHM_S, 4 * RHYTHM_S]
    assert times(run_of(None, None), run_of(0.0, 50.0)) == [0.0, 50.0]


def test_schedule_is_in_order_and_has_each_step_once() -> None:
    runs = [run_of(None, None, None), run_of(0.0, 1.0, 30.0), run_of(None), run_of()]
    turns = schedule(runs)
    assert [turn.at for turn in turns] == sorted(turn.at for turn in turns)
    assert sorted((turn.part, turn.step) for turn in turns) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
    assert schedule([]) == ()


class Clock(threading.Event):
    """Time that passes only while somebody waits, and in what is measured, so that no busy machine changes it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.now = 1000.0
        monkeypatch.setattr("coherence.monitor.player.time", SimpleNamespace(monotonic=lambda: self.now))

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None and timeout >= 0.0
        self.now += timeout
        return self.is_set()


def test_player_tells_each_step_when_its_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seconds between two steps, ten times as fast."""
    clock, heard = Clock(monkeypatch), []
    parts = [Part("one", run_of(0.0, 3.0, 6.0)), Part("two", run_of(0.0, 1.5, 6.0))]
    with Player(parts, embedder=False, speed=10) as player:
        assert player.seconds == pytest.approx(0.6)
        assert player.play(clock, lambda _: heard.append(clock.now - 1000.0))
    assert heard == pytest.approx([0.0, 0.0, 0.15, 0.3, 0.6, 0.6])


def test_player_makes_up_for_a_step_that_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow measurement delays the next steps, not the end of the run."""
    clock, heard = Clock(monkeypatch), []

    def hear(told: Told) -> None:
        heard.append(clock.now - 1000.0)
        clock.now += 0.3 if told.step == 0 else 0.0

    with Player([Part("one", run_of(0.0, 1.0, 2.0, 60.0))], embedder=False, speed=100) as player:
        player.play(clock, hear)
    # due at 0, 0.01, 0.02 and 0.6 s
    assert heard == pytest.approx([0.0, 0.3, 0.3, 0.6])


def test_player_is_never_early() -> None:
    heard: list[float] = []
    with Player([Part("one", run_of(0.0, 3.0, 6.0))], embedder=False, speed=10) as player:
        begin = time.monotonic()
        player.play(threading.Event(), lambda _: heard.append(time.monotonic() - begin))
    assert all(at >= due for at, due in zip(heard, (0.0, 0.3, 0.6), strict=True))


def test_player_tells_of_the_three_agents_in_turns() -> None:
    parts = [Part(name, run_of(None, None, None)) for name in ("a", "b", "c")]
    told: list[Told] = []
    with Player(parts, embedder=False, speed=100) as player:
        player.play(threading.Event(), told.append)
    assert [(each.agent, each.step, each.is_last) for each in told] == [
        (agent, step, step == 2) for step in range(3) for agent in "abc"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "agentdojo",
        "whowhen",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("swebench_mini", "tau_airline")),
    ],
)
def test_player_measures_what_scoring_measures(name: str, tmp_path: Path) -> None:
    """To be asked before each call, and other agents beside it, change no reading of a run."""
    runs = read_transcripts(DATA / f"{name}.jsonl.gz", "runs")
    embedder = HashingEmbedder()
    told: list[Told] = []
    with Store(tmp_path / "live.db") as store:
        parts = [Part(run.id, at_once(run)) for run in runs]
        with Player(parts, store=store, embedder=embedder, speed=100) as player:
            assert player.play(threading.Event(), told.append)
    for run in runs:
        scored = score_transcript(run, embedder=embedder)
        own = [each for each in told if each.agent == run.id]
        assert [each.decision.kind for each in own] == [decision.kind for decision in scored.decisions]
        for live, at_rest in zip([each.reading for each in own], scored.readings, strict=True):
            assert live is not None
            for field in ("metrics", "coherence_index", "band", "coverage", "losses", "risk", "cause", "scale"):
                assert getattr(live, field) == getattr(at_rest, field), (run.id, at_rest.tick_seq, field)
    check_replay(tmp_path / "live.db", kept=None)


def test_player_asks_before_each_call_and_tells_a_refused_one_all_the_same(tmp_path: Path) -> None:
    """A run that obeyed a text in a calendar: the call is refused, and was made when the run was recorded."""
    run = at_once(read_transcripts(DATA / "agentdojo.jsonl.gz", "runs")[0])
    calls = [(at, call.name) for at, step in enumerate(run.steps) for call in step.tool_calls]
    assert calls == [(1, "search_calendar_events"), (3, "send_email")]
    config = MonitorConfig.load({"alarms": {"block_budget": 0.01}})
    told: list[Told] = []
    with Store(tmp_path / "live.db") as store:
        with Player([Part("office", run)], store=store, config=config, speed=100) as player:
            player.play(threading.Event(), told.append)
        kinds = [row.kind for row in store.events(store.sessions()[0].id)]
        firings = newest_firings(store, 100)
    assert [(each.step, [no.kind for no in each.refused]) for each in told if each.refused] == [(3, ["block"])]
    assert kinds.count("tool_call") == 2 and kinds.count("outcome") == 1
    assert firings and not any(firing.delivered for firing in firings)


def test_player_ends_between_two_steps_and_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, heard = Clock(monkeypatch), []

    def hear(told: Told) -> None:
        heard.append((told.step, round(clock.now - 1000.0, 6)))
        if told.step == 1:
            clock.set()

    with Store(tmp_path / "live.db") as store:
        parts = [Part("one", run_of(0.0, 10.0, 30.0, 60.0))]
        with Player(parts, store=store, embedder=False, speed=100) as player:
            assert not player.play(clock, hear)
            assert heard == [(0, 0.0), (1, 0.1)] and player.done == 2
            clock.clear()
            clock.now = 1050.0
            assert player.play(clock, hear)
            # the step for which it waited comes at once, the last one 0.3 s later
            assert heard[2:] == [(2, 50.0), (3, 50.3)]
        assert len(store.sessions()) == 1
    check_replay(tmp_path / "live.db", kept=None)


def test_player_stopped_before_the_end_leaves_sessions_without_an_outcome(tmp_path: Path) -> None:
    stop = threading.Event()
    parts = [Part("short", run_of(0.0)), Part("long", run_of(0.0, 5.0, 10.0))]
    with Store(tmp_path / "live.db") as store:
        with Player(parts, store=store, embedder=False, speed=1) as player:
            threading.Timer(0.3, stop.set).start()
            assert not player.play(stop)
        kinds = {row.agent: [event.kind for event in store.events(row.id)] for row in store.sessions()}
    assert "outcome" in kinds["short"] and "outcome" not in kinds["long"]
    assert kinds["long"].count("message") == 1


KILLED = """
import sys, threading
from coherence import Store
from coherence.monitor.player import Part, Player
from coherence.providers.transcript import Step, Transcript
steps = tuple(Step(role="assistant", content=f"I look at file {at}.") for at in range(1000))
parts = [Part(name, Transcript(id=name, goal="Look at the files.", steps=steps)) for name in "abc"]
with Store(sys.argv[1]) as store, Player(parts, store=store, embedder=False, speed=100) as player:
    player.play(threading.Event(), lambda told: print(told.agent, told.step, flush=True))
"""


@pytest.mark.slow
def test_player_killed_leaves_a_store_that_holds_all_that_was_told(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline().split() for _ in range(8)]
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert heard == [[agent, str(step)] for step in (0, 1, 2) for agent in "abc"][:8]
    with Store(path) as store:
        messages = {
            row.agent: sum(event.kind == "message" for event in store.events(row.id)) for row in store.sessions()
        }
    assert messages["a"] >= 3 and messages["b"] >= 3 and messages["c"] >= 2
    check_replay(path, kept=None)


@pytest.mark.parametrize("speed", [0.5, 101, float("nan")])
def test_player_refuses_a_speed_out_of_bounds(speed: float) -> None:
    with pytest.raises(ValueError, match="speed must be"):
        Player([Part("one", run_of(None))], speed=speed)


def test_player_refuses_two_agents_of_one_name() -> None:
    with pytest.raises(ValueError, match="a name of its own"):
        Player([Part("one", run_of(None)), Part("one", run_of(None))])


def test_player_plays_nothing_where_there_is_nothing() -> None:
    with Player([], embedder=False) as player:
        assert player.seconds == 0.0
        assert player.play(threading.Event())
