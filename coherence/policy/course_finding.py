"""Finding about a run that looks off course although no rule has named the reason."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.decisions import DecisionKind, Finding
from coherence.core.readings import Reading, metric_of
from coherence.core.signs import said
from coherence.policy.budgets import is_budget
from coherence.policy.rules import reserved_names
from coherence.state.reducer import AgentState

RULE = "course"
"""Name of the findings."""

MAX_TOLD = 3
"""Signs that are named."""

LEAST_SHARE = 0.15
"""Share of the risk from which a sign is named beside the one that pulls hardest."""


def course_finding(reading: Reading, kind: DecisionKind, edges: Sequence[float], state: AgentState) -> Finding:
    """Return the finding of a risk that asks for a decision by itself.

    Parameters
    ----------
    reading : Reading
        With its light.
    kind : str
        What the light asks for.
    edges : sequence of three numbers
        Lowest index of green, yellow and orange.
    state : AgentState
        The agent.
    """
    risk = reading.risk or 0.0
    told = [name for at, name in enumerate(reading.losses) if not at or reading.losses[name] >= LEAST_SHARE * risk]
    shown = {name: reading.evidence.get(name) for name in told[:MAX_TOLD]}
    parts = [said(name) if evidence is None else str(evidence.why) for name, evidence in shown.items()]
    items = state.context
    seqs = [
        items[at].seq
        for name in told
        if (found := reading.evidence.get(metric_of(name))) is not None and found.kind == "context"
        for at in found.items
        if at < len(items) and items[at].seq > 0
    ]
    newest = (state.facts.step_seq,) if state.facts.step_seq else ()
    return Finding(
        rule=RULE,
        severity=kind,
        active=True,
        score=risk,
        threshold=min(max(1.0 - edges[1], 0.0), 1.0),
        evidence=tuple(dict.fromkeys(seqs))[:8] or newest,
        why=f"the run looks off its course (risk {risk:.2f}): {'; '.join(parts)}",
        action="compare the newest steps with the goal before going on",
    )


def is_policy(rule: str) -> bool:
    """Tell whether a finding is of something that somebody has set: a budget, or a rule of their own."""
    return is_budget(rule) or rule.partition(".")[0] not in reserved_names()
