"""From an appraisal, the rules and the budgets to one decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from coherence.core.config import PressureConfig, RuleConfig
from coherence.core.decisions import (
    EVIDENCE,
    KINDS,
    Appraisal,
    Decision,
    DecisionKind,
    Finding,
    Mode,
    as_shown,
    worst_kind,
)
from coherence.core.events import Received
from coherence.core.readings import one_line
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.regulator_state import RegulatorState
from coherence.policy.rules.finding_builders import shown_error
from coherence.state.data import Facts
from coherence.state.reducer import AgentState

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

TELLING = 0.1
"""Pressure from which a signal is named beside the highest one."""

STEADY = RuleConfig(release=0.0, dwell=0)
"""Pressure and budgets follow their numbers at once: the mode and the limits do, too."""

STEADY_RULES = ("pressure", "received_pressure", HIJACK)
"""Rules without hysteresis, beside the budgets: one call says nothing of whether the next was asked for."""

DEFAULT = RuleConfig()


def pressure_finding(appraisal: Appraisal, config: PressureConfig, state: AgentState) -> Finding:
    """Return what the pressure says."""
    kind, facts = OF_MODE[appraisal.mode], state.facts
    patient = kind == "block" and _asked_to_wait(facts)
    kind = "warn" if patient else kind
    causes = appraisal.causes()
    last = shown_error(facts.actions[-1], ", the last") if facts.error_streak and facts.actions else ""
    parts = [appraisal.floor + last] if appraisal.floor else []
    telling = [name for at, name in enumerate(causes) if not at or appraisal.signals[name].pressure >= TELLING]
    for name in telling[: 2 if parts else 3]:
        signal = appraisal.signals[name]
        usual = f" (usual {as_shown(name, signal.usual):.2f})" if signal.usual is not None else ""
        value = "" if signal.value is None else f" {as_shown(name, signal.value):.2f}"
        parts.append(f"{name}{value}{usual}")
    why = f"pressure {appraisal.pressure:.2f}: " + (", ".join(parts) if parts else "nothing is unusual")
    if patient:
        why += "; these calls wait, or were asked to: an outage rather than an agent that is lost"
    if appraisal.learned_from:
        why += f" (thresholds learned from {appraisal.learned_from})"
    # What happened in a session before this one has no number here.
    about: list[int] = []
    if facts.error_streak or "error_rate" in causes:
        about = [action.seq for action in facts.actions if action.error and action.seq]
    elif facts.same_streak > 1:
        about = [action.seq for action in facts.actions[-facts.same_streak :] if action.seq]
    return Finding(
        rule="pressure",
        severity="guide" if kind == "continue" else kind,
        active=kind != "continue",
        score=appraisal.pressure,
        threshold=_edge(kind, config),
        evidence=tuple(about[-EVIDENCE:]) or ((facts.step_seq,) if facts.step_seq else ()),
        why=why,
        action=ADVICE[kind],
    )


def _asked_to_wait(facts: Facts) -> bool:
    """Tell whether all of the last errors in a row are of calls that wait, or were told to come back later."""
    failed = facts.actions[-facts.error_streak :] if facts.error_streak else []
    return bool(failed) and all(action.came.rate_limited or action.made.waits for action in failed)


def received_finding(received: Received | None, config: PressureConfig) -> Finding | None:
    """Return what the pressure of another agent says, ``None`` if none came."""
    if received is None:
        return None
    pressure = received.pressure
    kind: DecisionKind = "continue"
    for name, edge in (("guide", config.guide), ("warn", config.warn), ("block", config.block)):
        if pressure >= edge:
            kind = name  # type: ignore[assignment]  # one of the kinds
    way = " > ".join(received.path)
    return Finding(
        rule="received_pressure",
        severity="guide" if kind == "continue" else kind,
        active=kind != "continue",
        score=pressure,
        threshold=_edge(kind, config),
        why=f"{received.path[0]} is in trouble, and {pressure:.2f} of it reaches this agent ({way})",
        action=f"look at {received.path[0]} before relying on it",
    )


def _edge(kind: DecisionKind, config: PressureConfig) -> float:
    return {"continue": config.guide, "guide": config.guide, "warn": config.warn, "block": config.block}[kind]


def regulate(
    findings: Sequence[Finding], standing: RegulatorState, steps: int, rules: Mapping[str, RuleConfig]
) -> list[Finding]:
    """Return the findings as the configuration has them: threshold, hysteresis, dwell, and the most they may ask for.

    Parameters
    ----------
    findings : sequence of Finding
        As the rules gave them.
    standing : RegulatorState
        Which were active, and since which step; not changed.
    steps : int
        The step now.
    rules : mapping
        Rule -> how it may act; a part of a name up to a dot stands for all that begin with it.
    """
    made = []
    for finding in findings:
        name = finding.rule
        config = rules.get(name) or rules.get(name.partition(".")[0]) if rules else None
        if config is None:
            config = STEADY if name in STEADY_RULES or "." in name else DEFAULT
        if not config.enabled:
            continue
        made.append(_regulated(finding, config, standing.held.get(name), steps, name in standing.lifted))
    return made


def _regulated(finding: Finding, config: RuleConfig, since: int | None, steps: int, lifted: bool) -> Finding:
    active, threshold, severity = finding.active, finding.threshold, finding.severity
    if config.threshold is not None:
        threshold = config.threshold
        active = finding.score >= threshold
        if finding.rule == HIJACK:
            threshold = max(threshold, finding.threshold)  # that of a refusal is stricter, and its text names it
    if not active and since is not None:
        active = steps - since < config.dwell or finding.score > threshold * (1.0 - config.release)
    if KINDS.index(severity) > KINDS.index(config.most):
        severity = config.most
    lifted = lifted and active and severity == "block"
    if (active, threshold, severity, lifted) == (finding.active, finding.threshold, finding.severity, False):
        return finding
    why = finding.why or (f"{finding.rule} has only just calmed down" if active else "")
    return msgspec.structs.replace(
        finding, active=active, threshold=threshold, severity=severity, lifted=lifted, why=why
    )


def make_decision(seq: int, findings: Sequence[Finding], extra: str = "") -> Decision:
    """Return the decision that the worst active finding asks for."""
    active = [finding for finding in findings if finding.active]
    if not active:
        return Decision(seq=seq, kind="continue", findings=tuple(sorted(findings, key=_mildness)))
    ordered = sorted(findings, key=_mildness)
    active = ordered[: len(active)]
    first = active[0]
    others = [finding for finding in active[1:] if finding.evidence != first.evidence or not first.evidence]
    told = [first, *others]
    message = "; ".join(finding.why for finding in told[:2])
    if active[0].action:
        message = f"{message}. {active[0].action[0].upper()}{active[0].action[1:]}."
    kind = worst_kind([finding.acts for finding in active])
    return Decision(seq=seq, kind=kind, findings=tuple(ordered), message=one_line(message + extra))


def _mildness(finding: Finding) -> tuple[bool, int, float]:
    return not finding.active, -KINDS.index(finding.acts if finding.active else finding.severity), -finding.score
