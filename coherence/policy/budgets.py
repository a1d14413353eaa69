"""What the budgets say."""

from __future__ import annotations

from collections.abc import Iterable

from coherence.baseline.budget import budget_findings, together
from coherence.core.config import Budget
from coherence.core.decisions import Finding
from coherence.core.events import Spent
from coherence.state.reducer import AgentState


def is_budget(rule: str) -> bool:
    """Tell whether a rule is a budget's: its limit refuses every call, and no number of refusals wears it down."""
    return rule.startswith(("budget.", "tree_budget."))


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


def crosses_time(budgets: Iterable[Budget | None], was_s: float, lasts_s: float) -> bool:
    """Tell whether the soft or the hard limit of a budget of time lies between two durations, in seconds.

    Examples
    --------
    >>> crosses_time([Budget(wall_s=100.0), None], 79.0, 81.0), crosses_time([Budget(wall_s=100.0)], 81.0, 99.0)
    (True, False)
    """
    limits = [
        limit
        for budget in budgets
        if budget is not None and budget.wall_s is not None
        for limit in (budget.soft * budget.wall_s, budget.wall_s)
    ]
    return any(was_s < limit <= lasts_s for limit in limits)
