"""Budgets: what is spent against what may be, for one agent and for a tree of agents."""

from __future__ import annotations

from coherence.config import Budget
from coherence.events import Spent
from coherence.findings import Finding

UNITS = {"tokens": "tokens", "cost_usd": "US dollars", "wall_s": "seconds", "calls": "calls"}


def together(own: Spent, others: Spent | None) -> Spent:
    """Add up what an agent and the others of its tree have spent; the longest time counts."""
    if others is None:
        return own
    return Spent(
        tokens=own.tokens + others.tokens,
        cost_usd=own.cost_usd + others.cost_usd,
        calls=own.calls + others.calls,
        wall_s=max(own.wall_s, others.wall_s),
        unpriced=own.unpriced + others.unpriced,
    )


def budget_findings(budget: Budget, spent: Spent, *, rule: str = "budget", unpriced_model: str = "") -> list[Finding]:
    """Return one finding for each limit of a budget.

    At ``budget.soft`` of a limit it is active and asks to warn, at the limit to block: the next call does not fit.

    Examples
    --------
    >>> [str(finding) for finding in budget_findings(Budget(calls=10), Spent(calls=9))]
    ['budget.calls: 9 of 10 calls are used (90%)']
    """
    findings = []
    for field, limit in budget.limits().items():
        used = getattr(spent, field)
        share = used / limit if limit else 1.0
        why = f"{used:,.6g} of {limit:,.6g} {UNITS[field]} are used ({share:.0%})"
        if field == "cost_usd" and spent.unpriced:
            model = f" ({unpriced_model})" if unpriced_model else ""
            why += f", without {spent.unpriced} model call{'s'[: spent.unpriced > 1]} of unknown cost{model}"
        findings.append(
            Finding(
                rule=f"{rule}.{field}",
                severity="block" if share >= 1.0 else "warn",
                active=share >= budget.soft,
                score=min(share, 1.0),
                threshold=1.0 if share >= 1.0 else budget.soft,
                why=why,
                action="stop, or raise the budget" if share >= 1.0 else "finish what matters most",
            )
        )
    return findings
