from __future__ import annotations

import pytest

from coherence.core.config import Budget, PressureConfig
from coherence.core.decisions import Appraisal, DecisionKind, Finding, Mode, Signal
from coherence.core.events import Spent, ToolResult, Usage
from coherence.core.readings import FrozenDict
from coherence.policy.budgets import all_budget_findings
from coherence.policy.regulator import make_decision, pressure_finding
from coherence.state.reducer import AgentState

CONFIG = PressureConfig()


def after(*results: tuple[str, bool]) -> AgentState:
    state = AgentState()
    for seq, (text, error) in enumerate(results, 1):
        state.fold(seq, float(seq), ToolResult(text, error=error, tool_name="Bash"))
    return state


def finding(severity: DecisionKind, *, active: bool = True, score: float = 0.5, action: str = "") -> Finding:
    return Finding(
        rule="rule",
        severity=severity,
        active=active,
        score=score,
        threshold=0.5,
        why=f"{severity} {score}",
        action=action,
    )


@pytest.mark.parametrize(
    ("mode", "severity", "active", "threshold"),
    [
        (Mode.OBSERVE, "guide", False, 0.25),
        (Mode.GUIDE, "guide", True, 0.25),
        (Mode.WARN, "warn", True, 0.5),
        (Mode.BLOCK, "block", True, 0.75),
    ],
)
def test_the_pressure_asks_for_what_its_mode_means(mode: Mode, severity: str, active: bool, threshold: float) -> None:
    found = pressure_finding(Appraisal(seq=1, pressure=0.6, mode=mode), CONFIG, after())
    assert (found.severity, found.active, found.score, found.threshold) == (severity, active, 0.6, threshold)


def test_pressure_finding_the_pressure_names_its_floor_and_its_causes_with_what_is_usual() -> None:
    signals: FrozenDict[str, Signal] = FrozenDict(
        error_rate=Signal(0.4, 0.05, 3.5, 0.6), cost=Signal(0.5, None, 0.0, 0.2)
    )
    appraisal = Appraisal(
        seq=9, pressure=0.5, mode=Mode.WARN, signals=signals, floor="4 errors in a row", learned_from="agent a"
    )
    found = pressure_finding(appraisal, CONFIG, after())
    assert found.why == (
        "pressure 0.50: 4 errors in a row, error_rate 0.40 (usual 0.05), cost 0.50 (thresholds learned from agent a)"
    )
    calm = pressure_finding(Appraisal(seq=9, pressure=0.0, mode=Mode.OBSERVE), CONFIG, after())
    assert calm.why == "pressure 0.00: nothing is unusual"


def test_evidence_is_the_errors_or_the_repetition_or_the_newest_step() -> None:
    warn = Appraisal(seq=9, pressure=0.5, mode=Mode.WARN)
    assert pressure_finding(warn, CONFIG, after(("a", False), ("b", True), ("c", True))).evidence == (2, 3)
    assert pressure_finding(warn, CONFIG, after(("a", False), ("b", False), ("b", False))).evidence == (2, 3)
    assert pressure_finding(warn, CONFIG, after(("a", False), ("b", False))).evidence == (2,)
    assert pressure_finding(warn, CONFIG, after()).evidence == ()
    many = pressure_finding(warn, CONFIG, after(*[(f"{at}", True) for at in range(20)])).evidence
    assert many == tuple(range(13, 21))  # the newest eight


def test_make_decision_the_worst_active_finding_decides_and_speaks_first() -> None:
    decision = make_decision(
        7,
        [
            finding("guide"),
            finding("block", active=False),
            finding("warn", action="stop it"),
            finding("warn", score=0.9),
        ],
    )
    assert (decision.seq, decision.kind) == (7, "warn")
    assert [(found.severity, found.active) for found in decision.findings] == [
        ("warn", True),
        ("warn", True),
        ("guide", True),
        ("block", False),
    ]
    assert decision.message == "warn 0.9; warn 0.5"


def test_make_decision_a_decision_ends_with_what_could_be_done() -> None:
    assert make_decision(1, [finding("warn", action="stop it")]).message == "warn 0.5. Stop it."


def test_make_decision_without_active_findings_the_agent_goes_on_in_silence() -> None:
    decision = make_decision(1, [finding("block", active=False)])
    assert (decision.kind, decision.message) == ("continue", "")
    assert make_decision(1, []).kind == "continue"


def test_the_own_budget_and_the_trees_are_told_apart() -> None:
    state = AgentState()
    state.fold(1, 1.0, Usage(60, 0))
    found = all_budget_findings(state, Budget(tokens=100), Budget(tokens=100), Spent(tokens=50))
    assert [(one.rule, one.active) for one in found] == [("budget.tokens", False), ("tree_budget.tokens", True)]
    assert all_budget_findings(state, None, None, Spent(tokens=50)) == []
