"""Somebody else's rules: what they may return, and that none of it costs more than its own finding."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coherence import Monitor, Store, register
from coherence.core.decisions import Appraisal, Finding
from coherence.core.errors import PluginError
from coherence.core.readings import Reading
from coherence.core.registry import unregister
from coherence.monitor.replay import Replay, Report
from coherence.policy.rules import reserved_names
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState

SAID: dict[str, Any] = {
    "rule": "mine",
    "severity": "warn",
    "active": True,
    "score": 0.75,
    "threshold": 0.5,
    "why": "so",
}


class Mine:
    """A rule whose judgement is given."""

    def __init__(self, judge: Callable[[AgentState], Any], name: str = "mine") -> None:
        self._judge = judge
        self.name = name

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Any:
        return self._judge(state)


def saying(**more: Any) -> Mine:
    return Mine(lambda state: Finding(**{**SAID, **more}))


def monitor(path: Path, *rules: Mine, **options: Any) -> Monitor:
    return Monitor(resume=True, store=path, embedder=HashingEmbedder(16), rules=rules, **options)


def life(m: Monitor, steps: int = 3) -> None:
    for step in range(steps):
        m.tool_call("Read", {"path": f"{step}.py"})
        m.tool_result(f"line {step}")


def replayed(path: Path) -> Report:
    with Store(path) as store:
        (row,) = store.sessions()
        return Replay(store, row).report()


def mine(m: Monitor) -> Finding:
    return next(finding for finding in m.decide().findings if finding.rule == "mine")


def raising(error: BaseException) -> Callable[[AgentState], Any]:
    def judge(state: AgentState) -> Any:
        raise error

    return judge


NONSENSE: dict[str, Callable[[AgentState], Any]] = {
    "raises": raising(RuntimeError("broken")),
    "exits": raising(SystemExit(3)),
    "a text": lambda state: "warn",
    "true": lambda state: True,
    "another's name": lambda state: Finding(**{**SAID, "rule": "pressure"}),
    **{
        f"{field} {value!r}"[:24]: lambda state, field=field, value=value: Finding(**{**SAID, field: value})  # type: ignore[misc]
        for field, value in [
            ("score", 1.5),
            ("score", math.nan),
            ("score", None),
            ("threshold", math.nan),
            ("threshold", math.inf),
            ("severity", "panic"),
            ("active", None),
            ("why", None),
            ("why", 5),
            ("action", 7),
            ("evidence", None),
            ("evidence", ("a",)),
            ("evidence", (-1,)),
            ("evidence", (10**30,)),
            ("score", object()),
        ]
    },
}


@pytest.mark.parametrize("judge", NONSENSE.values(), ids=NONSENSE)
def test_findings_nonsense_costs_its_finding_only_and_is_seen(
    tmp_path: Path, judge: Callable[[AgentState], Any]
) -> None:
    path = tmp_path / "s.db"
    with monitor(path, Mine(judge)) as m:
        life(m)
        decision = m.decide()
        assert decision.kind == "continue"
        assert "mine" not in [finding.rule for finding in decision.findings]
        assert "pressure" in [finding.rule for finding in decision.findings]
        assert m.latest is not None and [error.source for error in m.latest.errors] == ["rule mine"]
        asked = m.check("Bash", {"command": "ls"})
        assert asked.kind == "warn" and "the rule could not be asked" in asked.message
        m.flush()
    with monitor(path, Mine(judge)) as m:  # what was recorded can be read again
        assert m.session == "1"
        assert m.decide().kind == "continue"
    report = replayed(path)
    assert report.equal == report.ticks > 3 and report.differences == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"score": 1}, {"score": 1.0}),
        ({"score": np.float32(0.5)}, {"score": 0.5}),
        ({"score": np.float64(0.5)}, {"score": 0.5}),
        ({"active": np.True_}, {"active": True}),
        ({"evidence": [np.int64(3), 4]}, {"evidence": (3, 4)}),
        ({"evidence": (0, 2)}, {"evidence": (2,)}),  # 0: an action of a session before this one
        ({"evidence": tuple(range(1, 100_000))}, {"evidence": tuple(range(99_992, 100_000))}),  # the last eight
        ({"why": "x\n" * 500_000}, {"why": "x " * 500}),
        ({"why": "a\ud800\x1b[31m\u202eb"}, {"why": "a  [31m b"}),
        ({"lifted": True}, {"lifted": False}),
    ],
    ids=lambda case: str(case)[:24],
)
def test_findings_what_a_rule_finds_is_used_as_it_is_recorded(
    tmp_path: Path, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    path = tmp_path / "s.db"
    with monitor(path, saying(**given)) as m:
        life(m)
        found = mine(m)
        assert {field: getattr(found, field) for field in kept} == kept
        assert m.latest is not None and m.latest.errors == ()
    report = replayed(path)
    assert (report.equal, report.kept) == (report.ticks, 0)


def test_plugin_rules_a_rule_that_hangs_is_waited_for_no_longer_than_allowed(tmp_path: Path) -> None:
    forever = threading.Event()
    try:
        with monitor(tmp_path / "s.db", Mine(lambda state: forever.wait(60)), config={"timeout_s": 0.1}) as m:
            life(m, 1)
            assert m.decide().kind == "continue"
            assert m.latest is not None and [error.kind for error in m.latest.errors] == ["timeout"]
    finally:
        forever.set()
    report = replayed(tmp_path / "s.db")
    assert (report.equal, report.kept) == (report.ticks, report.ticks)


def test_plugin_rules_a_rule_that_hangs_is_left_out_for_a_while(tmp_path: Path) -> None:
    forever, asked = threading.Event(), []

    def judge(state: AgentState) -> Any:
        asked.append(state.facts.steps)
        forever.wait(60)

    try:
        with monitor(tmp_path / "s.db", Mine(judge), config={"timeout_s": 0.05}) as m:
            life(m, 6)
            m.decide()
    finally:
        forever.set()
    assert len(asked) == 1  # its call from the first tick still runs


@pytest.mark.parametrize("name", ["error_cascade", "pressure", "budget.mine", "destructive_call"])
def test_plugin_rules_a_rule_with_a_name_of_this_package_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        monitor(tmp_path / "s.db", Mine(lambda state: None, name))


@pytest.mark.parametrize("way", ["given", "registered"])
def test_plugin_rules_a_session_with_foreign_rules_replays_without_them(tmp_path: Path, way: str) -> None:
    path = tmp_path / "s.db"

    def judge(state: AgentState) -> Finding:
        return Finding(**{**SAID, "severity": "block", "score": min(1.0, state.facts.steps / 4)})

    config: dict[str, Any] = {"rules": {"mine": {"most": "warn", "threshold": 0.5}}}
    if way == "registered":
        register(Mine(judge), name="mine", group="rules")
    try:
        with monitor(path, *([Mine(judge)] if way == "given" else []), config=config) as m:
            kinds = []
            for step in range(4):
                m.tool_call("Read", {"path": f"{step}.py"})
                m.tool_result(f"line {step}")
                kinds.append(m.decide().kind)
                m.check("Bash", {"command": "rm -rf build"})
            assert kinds == ["continue", "warn", "warn", "warn"]  # scores 0.25, 0.5, 0.75, 1
    finally:
        unregister("mine", "rules")
    report = replayed(path)
    assert (report.ticks, report.equal, report.kept, report.differences) == (8, 8, 0, [])


def test_two_foreign_rules_that_block_replay_in_any_order_of_their_scores(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    def blocks(name: str, score: float) -> Mine:
        return Mine(lambda state: Finding(**{**SAID, "rule": name, "severity": "block", "score": score}), name)

    rules = [blocks("low", 0.6), blocks("high", 0.9)]
    with monitor(path, *rules, config={"rules": {"high": {}, "low": {}}}) as m:
        life(m, 2)
        refused = m.check("Bash", {"command": "rm -rf build"})
        assert refused.kind == "block" and "until high, low calms down" in refused.message
    report = replayed(path)
    assert (report.equal, report.kept) == (report.ticks, 0)


def test_plugin_rules_an_unknown_rule_is_refused_and_all_that_are_known_are_named() -> None:
    config: dict[str, Any] = {"rules": {"goal_hijak": {"most": "warn"}}}
    with pytest.raises(PluginError, match="no rule is called 'goal_hijak'; known: ") as refused:
        Monitor(embedder=False, rules=[Mine(lambda state: None)], config=config)
    named = str(refused.value).partition("known: ")[2].split(", ")
    assert set(named) >= reserved_names() | {"mine"}
    assert named == sorted(named)
