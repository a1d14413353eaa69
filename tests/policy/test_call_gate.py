"""Answers of the call gate, from findings to the words of the refusal."""

from __future__ import annotations

import msgspec
import pytest

from coherence import Monitor
from coherence.core.config import MonitorConfig, RuleConfig
from coherence.core.decisions import Decision, DecisionKind, Finding
from coherence.core.events import Ticked
from coherence.core.readings import FrozenDict
from coherence.core.validation import to_json
from coherence.policy.call_gate import answer
from coherence.policy.regulator import RegulatorState
from coherence.providers import HashingEmbedder

BLOCKING = Finding(rule="pressure", severity="block", active=True, score=0.8, threshold=0.75, why="pressure 0.80")
SPENT = Finding(rule="budget.calls", severity="block", active=True, score=1.0, threshold=1.0, why="2 of 2 calls")
WARNING = Finding(rule="loop", severity="warn", active=True, score=0.6, threshold=0.5, why="a loop")


def asked(
    *findings: Finding,
    command: str = "rm -rf data",
    tool: str = "Bash",
    standing: RegulatorState | None = None,
    config: MonitorConfig | None = None,
) -> Decision:
    event = Ticked("check", tool, msgspec.Raw(to_json("arguments", {"command": command})))
    return answer(7, event, findings, standing or RegulatorState(), 3, config or MonitorConfig())


@pytest.mark.parametrize(
    ("findings", "command", "block", "kind"),
    [
        ([], "rm -rf data", "destructive", "continue"),
        ([], "rm -rf data", "all", "continue"),
        ([WARNING], "rm -rf data", "destructive", "warn"),
        ([WARNING], "rm -rf data", "all", "warn"),
        ([BLOCKING], "rm -rf data", "destructive", "block"),
        ([BLOCKING], "cd x && rm -rf y", "destructive", "block"),
        ([BLOCKING], "echo 'rm -rf y'", "destructive", "warn"),
        ([BLOCKING], "ls", "destructive", "warn"),
        ([BLOCKING], "ls", "all", "block"),
        ([SPENT], "ls", "destructive", "block"),
        ([msgspec.structs.replace(SPENT, rule="tree_budget.tokens")], "ls", "destructive", "block"),
        ([msgspec.structs.replace(SPENT, lifted=True)], "rm -rf data", "all", "warn"),
        ([msgspec.structs.replace(BLOCKING, active=False)], "rm -rf data", "all", "continue"),
    ],
)
def test_answer_what_is_refused(findings: list[Finding], command: str, block: str, kind: DecisionKind) -> None:
    config = MonitorConfig(block=block)  # type: ignore[arg-type]
    assert asked(*findings, command=command, config=config).kind == kind


def test_answer_what_is_not_refused_is_warned_of() -> None:
    decision = asked(BLOCKING, command="ls")
    assert [(found.rule, found.severity, found.active) for found in decision.findings] == [("pressure", "warn", True)]
    assert decision.message == "pressure 0.80"


def test_answer_a_refusal_says_what_is_dangerous_and_how_it_ends() -> None:
    decision = asked(BLOCKING, standing=RegulatorState(refusals=4))
    assert [found.rule for found in decision.findings] == ["destructive_call", "pressure"]
    assert "rm" in decision.findings[0].why and decision.findings[0].active
    assert decision.message.endswith(
        "It stays refused until pressure calms down, somebody unblocks the agent, or 5 more are refused."  # 10 - 4 - 1
    )
    assert asked(SPENT, command="ls").message.endswith(
        "It stays refused until the budget is raised or somebody unblocks the agent."
    )


def test_answer_what_ends_it_is_named_in_one_order() -> None:
    other = msgspec.structs.replace(BLOCKING, rule="a_rule", score=0.1)
    assert "until a_rule, pressure calms down" in asked(BLOCKING, other).message
    assert asked(BLOCKING, other).message == asked(other, BLOCKING).message


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        (RuleConfig(enabled=False), "warn"),
        (RuleConfig(most="warn"), "warn"),
        (RuleConfig(threshold=0.0), "block"),
        (RuleConfig(threshold=1.0), "block"),
    ],
)
def test_answer_the_rule_of_destructive_calls_is_a_setting(rule: RuleConfig, kind: DecisionKind) -> None:
    config = MonitorConfig(rules=FrozenDict(destructive_call=rule))
    assert asked(BLOCKING, config=config).kind == kind
    assert asked(config=config).kind == "continue"  # nothing blocks


def test_answer_asking_remembers_nothing_by_itself() -> None:
    standing = RegulatorState(refusals=2, blocking=["pressure"])
    before = msgspec.msgpack.encode(standing)
    asked(BLOCKING, standing=standing)
    assert msgspec.msgpack.encode(standing) == before


ODD = [
    ("x" * 1_000_000, "ls"),
    ("\ud800\x00\u202e", "rm -rf /"),
    ("Bash", "rm -rf /" + " x" * 100_000),
    ("Bash", "(" * 50_000),
    ("Bash", "\ud800; \x00 rm -rf /"),
    ("Bash", "cd x\n" * 30_000),
]


@pytest.mark.parametrize(("tool", "command"), ODD, ids=range(len(ODD)))
def test_call_gate_hostile_names_and_arguments_are_answered(tool: str, command: str) -> None:
    with Monitor(embedder=HashingEmbedder(16)) as m:
        for number in range(7):
            m.tool_call("Bash", {"command": f"make {number}"})
            m.tool_result("boom", error=True)
        decision = m.check(tool, {"command": command})
        assert decision.kind in ("warn", "block")
        assert decision.message.isprintable() and len(decision.message) < 5_000
        assert m.decide().kind == "block"


@pytest.mark.parametrize("arguments", [None, [], "rm -rf /", 5, float("nan"), {1: {2: ...}}, b"rm -rf /"], ids=repr)
def test_call_gate_arguments_of_any_shape_are_answered(arguments: object) -> None:
    m = Monitor(embedder=HashingEmbedder(16))
    assert m.check("Bash", arguments).kind == ("block" if arguments == "rm -rf /" else "continue")


def test_call_gate_a_wrong_tool_is_refused_by_name() -> None:
    m = Monitor(embedder=HashingEmbedder(16), strict=True)
    for wrong in (None, 5, b"Bash"):
        with pytest.raises(TypeError, match="tool"):
            m.check(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tool"):
        m.check(" ")
