"""Blocks, from the first refused call to their end: by recovery, by unblock, by a number of refusals; restarts too."""

from __future__ import annotations

import signal
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.baseline.appraiser import AppraiserState
from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.policy.regulator import RegulatorState
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState
from monitor.helpers import check_replay

WIPE = {"command": "cd build && rm -rf /var/lib/data"}
LOOK = {"command": "ls -la"}


class Dial:
    """Blocks while the newest result says so."""

    name = "dial"

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        lost = bool(state.context) and state.context[-1].text.startswith("lost")
        return Finding(
            rule="dial", severity="block", active=lost, score=float(lost), threshold=0.5, why="the agent is lost"
        )


def monitor(path: Path | None = None, *, budget: dict[str, Any] | None = None, **config: Any) -> Monitor:
    return Monitor(resume=True, store=path, embedder=HashingEmbedder(16), rules=[Dial()], budget=budget, config=config)


def step(m: Monitor, *, lost: bool) -> str:
    """Let the agent act once; it is lost afterwards, or not."""
    number = m.counters.calls
    m.tool_call("Read", {"path": f"{number}.py"})
    m.tool_result(f"lost {number}" if lost else f"line {number}")
    return m.decide().kind


def ask(m: Monitor, arguments: dict[str, str] = WIPE, times: int = 1) -> list[str]:
    return [m.check("Bash", arguments).kind for _ in range(times)]


def test_blocks_a_calm_agent_is_refused_nothing() -> None:
    m = monitor()
    step(m, lost=False)
    assert ask(m) == ask(m, LOOK) == ["continue"]
    dangerous = next(found for found in m.check("Bash", WIPE).findings if found.rule == "destructive_call")
    assert not dangerous.active and "rm" in dangerous.why  # it is shown all the same


def test_blocks_at_block_destructive_calls_are_refused_on_every_try_and_others_are_not(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db") as m:
        assert step(m, lost=True) == "block"
        assert ask(m, times=5) == ["block"] * 5
        assert ask(m, LOOK) == ask(m, {"command": "echo rm -rf /"}) == ["warn"]
        assert ask(m) == ["block"]
        refused = m.check("Bash", WIPE)
        assert not refused and refused.message.startswith("the agent is lost")
        assert "dial calms down, somebody unblocks the agent, or 3 more are refused" in refused.message  # 10 - 7
    check_replay(tmp_path / "s.db")


def test_blocks_block_all_refuses_every_call(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db", block="all") as m:
        step(m, lost=False)
        assert ask(m, LOOK) == ["continue"]
        step(m, lost=True)
        assert ask(m, LOOK, 2) == ["block", "block"]
    check_replay(tmp_path / "s.db")


def test_blocks_a_block_ends_after_the_stated_number_of_refusals(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db", refusals=3) as m:
        step(m, lost=True)
        assert ask(m, LOOK, 9) == ["warn"] * 9  # what is not refused does not wear it down
        assert ask(m, times=5) == ["block"] * 3 + ["warn"] * 2
        assert step(m, lost=True) == "warn"  # as long as the same goes on
        found = next(found for found in m.decide().findings if found.rule == "dial")
        assert (found.severity, found.active, found.lifted, found.acts) == ("block", True, True, "warn")
        assert step(m, lost=False) == "continue"
        assert step(m, lost=True) == "block"  # another block, with refusals of its own
        assert ask(m, times=4) == ["block"] * 3 + ["warn"]
    check_replay(tmp_path / "s.db")


def test_blocks_unblocking_ends_a_block_until_it_has_calmed_down(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db") as m:
        step(m, lost=True)
        assert ask(m) == ["block"]
        m.unblock("seen by the operator")
        assert ask(m) == ["warn"]
        assert (m.decide().kind, step(m, lost=True)) == ("warn", "warn")
        assert (step(m, lost=False), step(m, lost=True)) == ("continue", "block")
        assert ask(m) == ["block"]
    check_replay(tmp_path / "s.db")


def test_blocks_recovery_ends_a_block_and_forgets_its_refusals(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db", refusals=3) as m:
        step(m, lost=True)
        assert ask(m, times=2) == ["block"] * 2
        step(m, lost=False)
        assert ask(m) == ["continue"]
        step(m, lost=True)
        assert ask(m, times=4) == ["block"] * 3 + ["warn"]
    check_replay(tmp_path / "s.db")


def test_a_budget_is_not_worn_down_by_refusals_but_lifted_by_unblock(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db", budget={"calls": 1}, refusals=2) as m:
        step(m, lost=False)
        assert ask(m, LOOK, 6) == ["block"] * 6
        assert "until the budget is raised or somebody unblocks" in m.check("Read").message
        m.unblock()
        assert ask(m, LOOK, 3) == ["warn"] * 3
        step(m, lost=False)
        assert ask(m, LOOK) == ["warn"]  # for as long as it would refuse
    check_replay(tmp_path / "s.db")


def test_refusals_wear_down_what_blocks_beside_a_budget_only() -> None:
    m = monitor(budget={"calls": 1}, refusals=2)
    step(m, lost=True)
    assert ask(m, times=3) == ["block"] * 3
    lifted = {found.rule for found in m.check("Bash", WIPE).findings if found.lifted}
    assert lifted == {"dial"}
    m.unblock()
    assert ask(m) == ["warn"]


def test_blocks_refusals_by_a_budget_do_not_count_against_a_later_block() -> None:
    m = monitor(budget={"calls": 1}, refusals=3)
    step(m, lost=True)
    assert ask(m, times=2) == ["block"] * 2  # two of three
    step(m, lost=False)  # the dial has calmed down, the budget has not
    step(m, lost=True)
    ask(m, times=2)
    assert not any(found.lifted for found in m.check("Bash", WIPE).findings)  # the third one of the new block


@pytest.mark.parametrize("most", ["continue", "guide", "warn"])
def test_blocks_with_a_milder_rule_destructive_calls_are_not_refused(tmp_path: Path, most: str) -> None:
    with monitor(tmp_path / "s.db", rules={"dial": {}, "destructive_call": {"most": most}}) as m:
        step(m, lost=True)
        assert ask(m) == ["warn"]  # of the block
    check_replay(tmp_path / "s.db")


def test_blocks_a_judgement_does_not_end_a_block() -> None:
    m = monitor()
    m.strict = True
    step(m, lost=True)
    m.delivered("block")
    for good in (True, False):
        with pytest.raises(ValueError, match="unblock"):
            m.label("block", good)
    assert ask(m) == ["block"]


def test_blocks_asking_changes_nothing_but_the_count_of_refusals() -> None:
    m = monitor()
    step(m, lost=True)

    def remembered() -> tuple[RegulatorState, AppraiserState]:
        with m._worker.settled() as pipeline:
            return deepcopy((pipeline.regulator.data, pipeline.appraiser.mood))

    before = remembered()
    ask(m, LOOK, 4)
    assert remembered() == before
    ask(m)
    standing, mood = remembered()
    assert (standing.refusals, mood) == (1, before[1])


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from monitor.test_blocks import ask, monitor, step
m = monitor(Path(sys.argv[1]), refusals=4)
step(m, lost=True)
assert ask(m, times=3) == ["block"] * 3
m.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("end", ["kill", "close"])
def test_blocks_a_restart_in_the_middle_of_a_block_changes_nothing(tmp_path: Path, end: str) -> None:
    path = tmp_path / "s.db"
    if end == "kill":
        tests = Path(__file__).parents[1]
        done = subprocess.run([sys.executable, "-c", KILLED, path, tests], check=False, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    else:
        with monitor(path, refusals=4) as m:
            step(m, lost=True)
            assert ask(m, times=3) == ["block"] * 3
    with monitor(path, refusals=4) as m:
        assert (m.session, m.decide().kind) == ("1", "block")
        assert ask(m, times=3) == ["block", "warn", "warn"]  # the fourth one, then it has ended
    with monitor(path, refusals=4) as m:
        assert ask(m) == ["warn"]
        assert (step(m, lost=False), step(m, lost=True)) == ("continue", "block")
    check_replay(path)
