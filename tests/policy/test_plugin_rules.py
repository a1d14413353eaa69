"""Somebody else's rules and detectors: what they may return, and that none costs more than its own findings."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from coherence import Monitor, Store, register
from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.errors import PluginError
from coherence.core.readings import Reading
from coherence.core.registry import unregister
from coherence.detect.detector import Observed
from coherence.monitor.replay import Replay, Report
from coherence.policy.plugin_rules import PluginRules
from coherence.policy.rules import reserved_names
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState
from coherence.testing import Check, checks_for

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
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
def test_findings_nonsense_costs_its_finding_only_and_is_reported(judge: Callable[[AgentState], Any]) -> None:
    found, failures = PluginRules([Mine(judge), saying()]).findings(AgentState(), None, CALM)
    assert [finding.rule for finding in found] == ["mine"]
    assert [failure.source for failure in failures] == ["rule mine"]


def test_monitor_a_rule_that_fails_costs_its_finding_only_and_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    broken = Mine(raising(RuntimeError("broken")))
    with monitor(path, broken) as m:
        life(m)
        assert m.decide().kind == "continue"
        assert {"mine", "pressure"} & {finding.rule for finding in m.decide().findings} == {"pressure"}
        assert m.latest is not None and [error.source for error in m.latest.errors] == ["rule mine"]
        asked = m.check("Bash", {"command": "ls"})
        assert asked.kind == "warn" and "the rule could not be asked" in asked.message
        m.flush()
    with monitor(path, broken) as m:  # what was recorded can be read again
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
def test_findings_what_a_rule_finds_is_used_as_it_is_recorded(given: dict[str, Any], kept: dict[str, Any]) -> None:
    (found,), failures = PluginRules([saying(**given)]).findings(AgentState(), None, CALM)
    assert failures == []
    assert {field: getattr(found, field) for field in kept} == kept
    assert msgspec.json.decode(msgspec.json.encode(found), type=Finding) == found


def test_monitor_a_rule_that_hangs_costs_the_time_limit_and_is_left_out_for_a_while(tmp_path: Path) -> None:
    forever, asked = threading.Event(), []

    def judge(state: AgentState) -> Any:
        asked.append(state.facts.steps)
        forever.wait(60)

    try:
        with monitor(tmp_path / "s.db", Mine(judge), config={"timeout_s": 0.1}) as m:
            life(m, 1)
            assert m.decide().kind == "continue"
            assert m.latest is not None
            assert ("rule mine", "timeout") in [(error.source, error.kind) for error in m.latest.errors]
            life(m, 5)
            m.decide()
    finally:
        forever.set()
    assert len(asked) == 1  # its call from the first tick still runs
    report = replayed(tmp_path / "s.db")
    assert (report.equal, report.kept) == (report.ticks, report.ticks)


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


class Refunds:
    """Many refunds of one run; warns from the third on."""

    name = "refunds"

    def __init__(self) -> None:
        self.seqs: list[int] = []

    def observe(self, observed: Observed) -> None:
        if getattr(observed.event, "tool_name", "") == "refund":
            self.seqs.append(observed.seq)

    def findings(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Iterable[Finding]:
        score = min(len(self.seqs) / 6, 1.0)
        yield Finding(
            rule="refunds",
            severity="warn",
            active=score >= 0.5,
            score=score,
            threshold=0.5,
            evidence=tuple(self.seqs[-3:]),
            why=f"{len(self.seqs)} refunds" if score >= 0.5 else "",
        )

    def snapshot(self) -> Any:
        return self.seqs

    def restore(self, data: Any) -> None:
        self.seqs = list(data)


def watched(path: Path | None, *detectors: Callable[[], Any], **options: Any) -> Monitor:
    return Monitor(resume=True, store=path, embedder=HashingEmbedder(16), detectors=detectors, **options)


def refund(m: Monitor, times: int = 1) -> None:
    for number in range(times):
        m.tool_call("refund", {"order": number})
        m.tool_result("done")


def found(m: Monitor) -> Finding | None:
    return next((finding for finding in m.decide().findings if finding.rule == "refunds"), None)


def test_findings_a_detector_of_ones_own_makes_a_monitor_warn() -> None:
    with watched(None, Refunds) as m:
        refund(m, 2)
        assert m.decide().kind == "continue"
        refund(m)
        finding = found(m)
        assert finding is not None and (finding.score, finding.why) == (0.5, "3 refunds")  # 3 / 6
        assert m.decide().kind == "warn"
        called = [event.seq for event in m.events() if getattr(event.event, "tool_name", "") == "refund"]
        assert sorted(finding.evidence) == sorted(called)


@pytest.mark.parametrize("steps", [2, 30])
def test_findings_a_detector_goes_on_after_a_restart(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "s.db"
    with watched(path, Refunds) as m:
        refund(m, 2)
        for number in range(steps):
            m.message("assistant", f"step {number}")
    with watched(path, Refunds) as m:
        assert m.session == "1"
        refund(m)
        finding = found(m)
        assert finding is not None and finding.why == "3 refunds"


def test_a_replay_takes_what_a_detector_found_from_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with watched(path, Refunds) as m:
        refund(m, 4)
        assert m.decide().kind == "warn"
    report = replayed(path)
    assert report.ticks >= 4
    assert (report.equal, report.differences) == (report.ticks, [])


class Raises(Refunds):
    """Fails whenever it is shown a refund."""

    def observe(self, observed: Observed) -> None:
        raise RuntimeError("broken")


class CannotRemember(Refunds):
    """Has no snapshot."""

    def snapshot(self) -> Any:
        raise RuntimeError("no memory")


def test_plugin_detectors_a_detector_without_a_snapshot_begins_anew_and_loses_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with watched(path, CannotRemember) as m:
        m.goal("pay what is due")
        refund(m, 3)
    with watched(path, CannotRemember) as m:
        assert m.state.get_goals() == ["pay what is due"]
        assert m.decide().kind in ("continue", "warn")


def test_plugin_detectors_a_detector_is_found_by_name() -> None:
    register(Refunds, name="refunds", group="detectors")
    try:
        with watched(None, config={"detectors": ["refunds"]}) as m:
            refund(m, 3)
            assert m.decide().kind == "warn"
    finally:
        unregister("refunds", "detectors")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Refunds(), "pass its class"),
        (object, "name must be a non-empty str"),
        (type("Mute", (), {"name": "mute"}), "has no method observe"),
    ],
    ids=["an instance", "no name", "no methods"],
)
def test_plugin_detectors_what_is_no_detector_is_refused_with_what_is_missing(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        watched(None, given)


@pytest.mark.parametrize("name", ["pressure", "goal_hijack", "facts"])
def test_plugin_detectors_a_name_of_the_packages_own_is_refused(name: str) -> None:
    with pytest.raises((ValueError, PluginError), match=name):
        watched(None, type("Named", (Refunds,), {"name": name}))


@pytest.mark.parametrize("check", list(checks_for(Refunds)), ids=str)
def test_plugin_detectors_a_detector_passes_the_public_checks(check: Callable[[], None]) -> None:
    check()


class Forgets(Refunds):
    """Does not go on from its snapshot."""

    def observe(self, observed: Observed) -> None:
        self.seqs.append(observed.seq)

    def restore(self, data: Any) -> None:
        self.seqs = []


class Counts(Refunds):
    """Finds more each time it is asked."""

    def findings(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Iterable[Finding]:
        self.seqs.append(1)
        return super().findings(state, reading, appraisal)


@pytest.mark.parametrize(
    ("bad", "message"), [(Forgets, "after a restart"), (Counts, "two findings"), (Raises, "broken")]
)
def test_findings_the_public_checks_find_a_bad_detector(bad: type, message: str) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=message):
        run_all(checks_for(bad))


def run_all(checks: Iterable[Check]) -> None:
    for check in checks:
        check()
