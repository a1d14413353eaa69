"""Guidance from firing to outcome, in a real store: what is recorded is what happened, in restarts and replays too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor, Store
from coherence.core.decisions import Guidance
from coherence.core.events import ToolResult
from coherence.monitor.replay import Replay
from coherence.policy.guidance import draw_arm
from coherence.store.firings import read_pairs
from coherence.store.rows import EventRow, FiringOutcomeRow, FiringRow
from monitor.helpers import FIRED, check_replay, guided, rows, step


def test_only_a_confirmed_treatment_is_delivered(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    fired: list[Guidance] = []
    with guided(path) as m:
        for _ in range(6):
            guidance = step(m).guidance
            assert guidance is not None
            fired.append(guidance)
            if guidance.pair != 1:
                m.delivered(guidance)  # a control too, which must not count
                m.delivered(guidance)
        m.delivered("loop-unknown")
        for _ in range(10):
            step(m, "fine")
    assert [row[5] for row in rows(path, FIRED)] == [
        int(guidance.arm == "treatment" and guidance.pair != 1) for guidance in fired
    ]
    with Store(path) as store:
        pairs = read_pairs(store, "loop")
    assert (pairs.treatments, pairs.delivered, pairs.undelivered, len(pairs.differences)) == (3, 2, 1, 2)
    check_replay(path)


@pytest.mark.parametrize("tick", ["step", pytest.param("event", marks=pytest.mark.slow), "manual"])
def test_a_session_with_guidance_replays_bit_for_bit(tmp_path: Path, tick: str) -> None:
    path = tmp_path / "s.db"
    for _ in range(2):
        with guided(path, tick=tick) as m:
            for at in range(12):
                decision = step(m, "loop" if at % 3 else "fine", error=at % 2 == 0)
                if decision.guidance:
                    m.delivered(decision.guidance)
                if at % 4 == 0:
                    m.check("Bash", {"command": "rm -rf x"})
                m.correction("shorter")
            m.outcome(True)
    assert len(rows(path, FIRED)) > 8
    check_replay(path)


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from monitor.helpers import guided, step
m = guided(Path(sys.argv[1]))
for at in range(7):
    step(m, "loop" if at < 4 else "fine", error=at % 2 == 0)
m.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
TESTS = str(Path(__file__).parents[1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_report_after_a_kill_firings_and_outcomes_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    def seen(path: Path) -> list[Any]:
        fired = rows(path, "SELECT pattern, pair, arm, text, seq FROM firings ORDER BY event_id")
        what = "horizon, pressure_change, error_resolved, tool_switched, task_success"
        return [
            *fired,
            *rows(
                path,
                f"SELECT {what} FROM firing_outcomes JOIN firings f USING (firing_id) ORDER BY f.event_id, horizon",
            ),
        ]

    def rest(m: Monitor) -> None:
        for at in range(7, 16):
            step(m, "loop" if at % 5 == 0 else "fine", error=at % 2 == 0)
        m.outcome(False)

    killed, whole = tmp_path / "killed.db", tmp_path / "whole.db"
    done = subprocess.run([sys.executable, "-c", KILLED, killed, TESTS], check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with guided(killed) as m:
        assert m.session == "1"
        rest(m)
    with guided(whole) as m:
        for at in range(7):
            step(m, "loop" if at < 4 else "fine", error=at % 2 == 0)
        rest(m)
    assert len(seen(whole)) > 15
    assert seen(killed) == seen(whole)
    check_replay(killed)


def test_a_firing_that_was_not_delivered_is_shown_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path, randomise=False) as m:
        guidance = step(m).guidance
    with guided(path, randomise=False) as m:
        assert m.decide().guidance == guidance
        m.usage(tokens_in=1)
        assert m.decide().guidance == guidance
        assert guidance is not None
        m.delivered(guidance)
    with guided(path, randomise=False) as m:
        assert m.decide().guidance is None
    assert [row[5] for row in rows(path, FIRED)] == [1]
    check_replay(path)


def test_pairs_go_on_in_new_sessions_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for name, firings in (("monday", 3), ("tuesday", 2), ("wednesday", 3)):
        with guided(path, session=name) as m:
            for _ in range(firings):
                step(m)
    found = rows(path, "SELECT pair, arm FROM firings ORDER BY event_id")
    assert found == [(at // 2, draw_arm(0, "main", "loop", at)) for at in range(8)]
    check_replay(path)


def verdicts(path: Path, pattern: str, told: float, untold: float) -> None:
    """Record 40 delivered pairs of another agent that all came to the same."""
    made: list[EventRow] = []
    for pair in range(40):
        for arm, change in (("control", untold), ("treatment", told)):
            name = f"{pattern}-{arm}-{pair}"
            firing = FiringRow(name, pattern, pair, arm, "text")
            made.append(EventRow(len(made) + 1, 1.0, "tick", "{}", firing=firing))
            known = FiringOutcomeRow(firing=name, horizon=5, pressure_change=change)
            made.append(EventRow(len(made) + 1, 1.0, "tick", "{}", delivered=name, outcomes=(known,)))
    with Store(path) as store, store.transaction() as transaction:
        session = transaction.add_session(session="x", agent="b", parent=None, source="api", started=1.0, config="{}")
        transaction.add_events(session, made)


@pytest.mark.parametrize(
    ("told", "untold", "learn", "arms"),
    [
        (0.6, 0.2, True, {"treatment"}),
        (0.1, 0.5, True, {"control"}),
        (0.6, 0.2, False, {"treatment", "control"}),
    ],
    ids=["helps", "harms", "not learned"],
)
def test_replay_a_new_session_tells_what_helps_and_not_what_harms(
    tmp_path: Path, told: float, untold: float, learn: bool, arms: set[str]
) -> None:
    path = tmp_path / "s.db"
    verdicts(path, "loop", told, untold)
    with guided(path, learn=learn) as m:
        found = [step(m).guidance for _ in range(4)]
    assert {guidance.arm for guidance in found if guidance is not None} == arms
    assert all((guidance.pair is None) is learn for guidance in found if guidance is not None)
    with Store(path) as store:
        row = store.session("main")
        assert row is not None
        report = Replay(store, row).report()
    assert (report.equal, report.kept) == (report.ticks, 0)


def test_guidance_replay_a_session_that_is_under_way_keeps_its_policies(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path) as m:
        step(m)
    verdicts(path, "loop", 0.1, 0.5)
    with guided(path) as m:
        again = step(m).guidance
        assert m.session == "1" and again is not None and again.pair == 0


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from monitor.helpers import guided, step
session = sys.argv[3] or None
with guided(Path(sys.argv[1]), session=session) as m:
    for at in range(15):
        guidance = step(m, error=at % 2 == 0).guidance
        if guidance:
            m.delivered(guidance)
        m.check("Bash", {"command": "ls"})
"""


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["one session", "a session each"])
def test_report_four_processes_write_firings_to_one_store(tmp_path: Path, shared: bool) -> None:
    path = tmp_path / "s.db"
    guided(path, session="s" if shared else None).close()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, TESTS, "s" if shared else f"s{at}"], stderr=subprocess.PIPE
        )
        for at in range(4)
    ]
    said = [process.communicate()[1].decode() for process in processes]
    assert [(process.returncode, text) for process, text in zip(processes, said, strict=True)] == [(0, "")] * 4
    found = rows(path, FIRED)
    assert len(found) == len({row[0] for row in found}) >= 4
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_result'") == [(60,)]
    told = [row for row in found if row[5]]
    assert told and all(row[3] == "treatment" for row in told)
    check_replay(path, kept=None)


def test_report_eight_threads_decide_at_once_and_each_step_fires_once(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path) as m:

        def work() -> None:
            for _ in range(10):
                decision = step(m)
                if decision.guidance:
                    m.delivered(decision.guidance)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fired, steps = [], 0
        for record in reversed(m.events()):
            steps += type(record.event) is ToolResult
            if record.result is not None and record.result.decision.guidance is not None:
                fired.append((steps, record.result.decision.guidance.id))
    assert steps == 80
    assert len({at for at, _ in fired}) == len({id for _, id in fired}) == len(fired) == len(rows(path, FIRED))
    check_replay(path)


def test_report_a_clock_that_runs_backwards_or_stands_still_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    times = iter(range(10**6, 0, -7))
    with guided(path) as m:
        monkeypatch.setattr("coherence.monitor.worker.time.time", lambda: float(next(times)))
        for _ in range(6):
            step(m)
        monkeypatch.setattr("coherence.monitor.worker.time.time", lambda: 5.0)
        for _ in range(6):
            step(m)
        monkeypatch.undo()
    assert len({row[0] for row in rows(path, FIRED)}) == 12
    check_replay(path)


def test_results_out_of_order_and_without_a_call_replay(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path) as m:
        for at in range(6):
            calls = [m.tool_call("Read", {"path": f"{at}{part}"}) for part in range(3)]
            for call in reversed(calls):
                m.tool_result("a loop", call=call, error=at % 2 == 0)
            m.tool_result("b loop", call="nobody's", tool="T" * 100_000)
            m.decide()
    assert {row[3] for row in rows(path, FIRED)} == {"treatment", "control"}
    check_replay(path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_report_parent_and_forked_child_fire_firings_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    code = f"""
import os, sys
sys.path.insert(0, {TESTS!r})
from pathlib import Path
from monitor.helpers import guided, step
m = guided(Path({str(path)!r}))
step(m)
child = os.fork()
for _ in range(4):
    step(m)
m.close()
if child:
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = rows(path, FIRED)
    assert len({row[0] for row in found}) == len(found) >= 5
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_result'") == [(9,)]
    check_replay(path, kept=None)


def test_guidance_replay_firings_of_tests_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with guided(path, source="test") as m:
        for _ in range(3):
            step(m)
    with Store(path) as store:
        assert store.patterns() == [] and store.firing_counts("main") == {}


def test_guidance_replay_two_that_fire_in_one_session_at_one_moment_lose_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    both = [guided(path), guided(path)]
    monkeypatch.setattr("coherence.monitor.worker.time.time", lambda: 5.0)  # a clock as coarse as that of some machines
    try:
        for m in both:
            step(m)
    finally:
        monkeypatch.undo()
        for m in both:
            m.close()
    assert rows(path, "SELECT count(*) FROM events WHERE kind = 'tool_result'") == [(2,)]
