"""From an appraisal and the budgets to one decision."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.appraise.budget import budget_findings, together
from coherence.config import Budget, PressureConfig
from coherence.events import Spent
from coherence.findings import KINDS, Appraisal, Decision, DecisionKind, Finding, Mode, as_shown, worst_kind
from coherence.state import AgentState

OF_MODE: dict[Mode, DecisionKind] = {
    Mode.OBSERVE: "continue",
    Mode.GUIDE: "guide",
    Mode.WARN: "warn",
    Mode.BLOCK: "block",
}

ADVICE: dict[DecisionKind, str] = {
    "continue": "",
    "guide": "look at the cause before going on",
    "warn": "stop repeating what fails; re-read the goal and the last results",
    "block": "stop and have somebody look at it",
}

EVIDENCE = 8
"""Events that a finding points at, at most."""


def pressure_finding(appraisal: Appraisal, config: PressureConfig, state: AgentState) -> Finding:
    """Return what the pressure says."""
    kind = OF_MODE[appraisal.mode]
    thresholds = {"continue": config.guide, "guide": config.guide, "warn": config.warn, "block": config.block}
    causes = appraisal.causes()
    parts = [appraisal.floor] if appraisal.floor else []
    for name in causes[: 2 if parts else 3]:
        signal = appraisal.signals[name]
        usual = f" (usual {as_shown(name, signal.usual):.2f})" if signal.usual is not None else ""
        value = "" if signal.value is None else f" {as_shown(name, signal.value):.2f}"
        parts.append(f"{name}{value}{usual}")
    why = f"pressure {appraisal.pressure:.2f}: " + (", ".join(parts) if parts else "nothing is unusual")
    if appraisal.learned_from:
        why += f" (thresholds learned from {appraisal.learned_from})"
    facts = state.facts
    # What happened in a session before this one has no number here.
    errors = [action.seq for action in facts.actions if action.error and action.seq][-EVIDENCE:]
    same = [action.seq for action in facts.actions[-facts.same_streak :] if action.seq][-EVIDENCE:]
    about = errors if facts.error_streak or "error_rate" in causes else same if facts.same_streak > 1 else []
    return Finding(
        rule="pressure",
        severity="guide" if kind == "continue" else kind,
        active=kind != "continue",
        score=appraisal.pressure,
        threshold=thresholds[kind],
        evidence=tuple(about) or ((facts.step_seq,) if facts.step_seq else ()),
        why=why,
        action=ADVICE[kind],
    )


def all_budget_findings(
    state: AgentState, budget: Budget | None, tree_budget: Budget | None, tree: Spent | None
) -> list[Finding]:
    """Return what the agent's own budget and its tree's say."""
    findings = []
    model = state.facts.unpriced_model
    if budget is not None:
        findings += budget_findings(budget, state.spent, unpriced_model=model)
    if tree_budget is not None:
        spent = together(state.spent, tree)
        findings += budget_findings(tree_budget, spent, rule="tree_budget", unpriced_model=model)
    return findings


def make_decision(seq: int, findings: Sequence[Finding]) -> Decision:
    """Return the decision that the worst active finding asks for."""
    ordered = sorted(findings, key=lambda finding: (-finding.active, -KINDS.index(finding.severity), -finding.score))
    active = [finding for finding in ordered if finding.active]
    message = "; ".join(finding.why for finding in active[:2])
    if active and active[0].action:
        message = f"{message}. {active[0].action[0].upper()}{active[0].action[1:]}."
    return Decision(
        seq=seq, kind=worst_kind([finding.severity for finding in active]), findings=tuple(ordered), message=message
    )
