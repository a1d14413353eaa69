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


LIVES: dict[str, tuple[dict[str, Any], str]] = {
    "a calm agent is refused nothing": ({}, "calm:continue wipe:continue look:continue"),
    "block='all' refuses every call": (
        {"block": "all"},
        "calm:continue look:continue lost:block look:block look:block",
    ),
    "a block ends after the stated number of refusals, and the next one has refusals of its own": (
        {"refusals": 3},
        "lost:block look:warn look:warn look:warn look:warn wipe:block wipe:block wipe:block wipe:warn wipe:warn "
        "lost:warn calm:continue lost:block wipe:block wipe:block wipe:block wipe:warn",
    ),
    "recovery ends a block and forgets its refusals": (
        {"refusals": 3},
        "lost:block wipe:block wipe:block calm:continue wipe:continue lost:block wipe:block wipe:block wipe:block "
        "wipe:warn",
    ),
    "unblocking ends a block until it has calmed down": (
        {},
        "lost:block wipe:block unblock:warn wipe:warn lost:warn calm:continue lost:block wipe:block",
    ),
    "a budget is not worn down by refusals but lifted by unblock, for as long as it would refuse": (
        {"budget": {"calls": 1}, "refusals": 2},
        "calm:block look:block look:block look:block look:block unblock:warn look:warn look:warn calm:warn look:warn",
    ),
    "with a milder rule destructive calls are only warned of": (
        {"rules": {"dial": {}, "destructive_call": {"most": "warn"}}},
        "lost:block wipe:warn",
    ),
}
"""Each life: settings, and the kind of the decision after each act."""


@pytest.mark.parametrize("life", LIVES)
def test_blocks_each_act_is_decided_as_stated_and_replays(tmp_path: Path, life: str) -> None:
    settings, acts = LIVES[life]
    with monitor(tmp_path / "s.db", **settings) as m:
        for at, (act, kind) in enumerate(part.split(":") for part in acts.split()):
            if act in ("calm", "lost"):
                found = step(m, lost=act == "lost")
            elif act == "unblock":
                m.unblock("seen by the operator")
                found = m.decide().kind
            else:
                found = m.check("Bash", WIPE if act == "wipe" else LOOK).kind
            assert found == kind, f"act {at}, {act}"
    check_replay(tmp_path / "s.db")


def test_blocks_a_lifted_block_is_shown_as_such_and_a_destructive_call_in_any_case() -> None:
    m = monitor(refusals=1)
    dangerous = next(found for found in m.check("Bash", WIPE).findings if found.rule == "destructive_call")
    assert not dangerous.active and "rm" in dangerous.why
    step(m, lost=True)
    ask(m, times=2)
    step(m, lost=True)
    found = next(found for found in m.decide().findings if found.rule == "dial")
    assert (found.severity, found.active, found.lifted, found.acts) == ("block", True, True, "warn")


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


def test_blocking_names_the_rules_and_the_refused_call_that_unblock_would_end() -> None:
    m = monitor()
    seen = [m.blocking]
    refused = m.check("Bash", {"command": "rm -rf /"})  # for what it is itself, however calm the agent is
    seen.append(m.blocking)
    step(m, lost=True)
    seen.append(m.blocking)
    m.unblock("a person looked")
    seen.append(m.blocking)
    later = m.check("Bash", {"command": "rm -rf /etc"})
    seen.append(m.blocking)
    m.unblock("this one too", m.blocking.call)
    seen.append(m.blocking)
    expected = [((), None), ((), refused.seq), (("dial",), refused.seq), ((), None), ((), later.seq), ((), None)]
    assert [(each.rules, each.call) for each in seen] == expected
    assert [bool(each) for each in seen] == [False, True, True, False, True, False]


def test_blocks_a_judgement_does_not_end_a_block() -> None:
    m = monitor()
    m.strict = True
    step(m, lost=True)
    m.delivered("block")
    for good in (True, False):
        with pytest.raises(ValueError, match="unblock"):
            m.label("block", good)
        with pytest.raises(ValueError, match="unblock"):
            m.label("note", good)
    m.confirm(m.check("Bash", WIPE), "right")
    m.note("somebody looked")
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
@pytest.mark.parametrize("end", [pytest.param("kill", marks=pytest.mark.slow), "close"])
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
