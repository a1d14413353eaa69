"""Budgets: what is spent against what may be, for one agent and for a tree of agents."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from coherence.core.config import Budget
from coherence.core.decisions import Finding
from coherence.core.events import Spent
from coherence.core.validation import shown_amount
from coherence.policy.rules.finding_builders import found
from coherence.state.reducer import AgentState

UNITS = {"tokens": "tokens", "cost_usd": "US dollars", "wall_s": "seconds", "calls": "calls"}

PER_TOOL = "tool_calls."
"""Between the name of a budget and that of a tool."""


def together(own: Spent, others: Spent | None) -> Spent:
    """Add up what an agent and the others of its tree have spent; the longest time counts.

    What a foreign recording says of the others may be no number that can be added: it counts nothing.
    """
    if others is None:
        return own
    return Spent(
        tokens=own.tokens + max(others.tokens, 0),
        cost_usd=_add_known(own.cost_usd, others.cost_usd),
        calls=own.calls + max(others.calls, 0),
        wall_s=others.wall_s if own.wall_s < others.wall_s < inf else own.wall_s,
        unpriced=own.unpriced + max(others.unpriced, 0),
        tool_calls={
            tool: own.tool_calls.get(tool, 0) + max(others.tool_calls.get(tool, 0), 0)
            for tool in {**own.tool_calls, **others.tool_calls}
        },
    )


def _add_known(own: float | None, others: float | None) -> float | None:
    known = [cost for cost in (own, others) if cost is not None and 0.0 <= cost < inf]
    return sum(known) if known else None


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
        known: float | None = getattr(spent, field)
        used = known or 0.0
        share = used / limit if limit else 1.0
        shown = shown_amount(used) if known is not None else "unknown"
        why = f"{shown} of {shown_amount(limit)} {UNITS[field]} are used ({share:.0%})"
        if field == "cost_usd" and spent.unpriced:
            model = f" ({unpriced_model})" if unpriced_model else ""
            why += f", without {spent.unpriced} model call{'s'[: spent.unpriced > 1]} of unknown cost{model}"
        full = share >= 1.0
        action = "stop, or raise the budget" if full else "finish what matters most"
        threshold = 1.0 if full else budget.soft
        findings.append(
            found(f"{rule}.{field}", min(share, 1.0), "block" if full else "warn", why, action, threshold=threshold)
        )
    return findings


def tool_findings(
    budget: Budget, spent: Spent, tool: str, *, asked: bool = False, rule: str = "budget"
) -> list[Finding]:
    """Return one finding for each limit of a tool.

    Parameters
    ----------
    budget, spent
        What may be, and what is used up.
    tool : str
        The tool in use: called last, or asked about. Of other tools a limit says nothing until it is passed, because an
        agent that goes on without them does as it should.
    asked : bool
        Whether the call has not been made: at the limit it is refused.
    rule : str
        How the names of findings begin.

    Examples
    --------
    >>> budget, spent = Budget(tool_calls={"search": 2}), Spent(tool_calls={"search": 2})
    >>> for asked in (False, True):
    ...     (finding,) = tool_findings(budget, spent, "search", asked=asked)
    ...     print(finding.severity, finding)
    guide budget.tool_calls.search: 2 of 2 calls of search are used (100%)
    block budget.tool_calls.search: 2 of 2 calls of search are used (100%)
    """
    findings = []
    for name, limit in budget.tool_calls.items():
        used, in_use = spent.tool_calls.get(name, 0), name == tool
        share = used / limit
        blocks = used > limit or (used == limit and asked and in_use)
        findings.append(
            Finding(
                rule=f"{rule}.{PER_TOOL}{name}",
                severity="block" if blocks else "guide",
                active=blocks or (in_use and share >= budget.soft),
                score=min(share, 1.0),
                threshold=budget.soft if in_use and not blocks else 1.0,
                why=f"{used:,} of {limit:,} calls of {name} are used ({share:.0%})",
                action="go on without it, or raise its limit" if share >= 1.0 else "use the rest for what matters most",
            )
        )
    return findings


def is_budget(rule: str) -> bool:
    """Tell whether a rule is a budget's: no number of refusals wears it down."""
    return rule.startswith(("budget.", "tree_budget."))


def refuses_call(rule: str, tool: str) -> bool:
    """Tell whether a rule is of a budget that refuses, once used up, a call of a tool: each call, or that tool's only.

    Examples
    --------
    >>> [refuses_call(rule, "ls") for rule in ("budget.calls", "budget.tool_calls.ls", "budget.tool_calls.cat")]
    [True, True, False]
    """
    limit = rule.partition(".")[2]
    return is_budget(rule) and (not limit.startswith(PER_TOOL) or limit == PER_TOOL + tool)


def all_budget_findings(
    state: AgentState, budget: Budget | None, tree_budget: Budget | None, tree: Spent | None, asked: str | None = None
) -> list[Finding]:
    """Return what the agent's own budget and its tree's say; ``asked``: of which tool a call is asked about."""
    findings = []
    model = state.facts.unpriced_model
    in_use = next(reversed(state.facts.called), "") if asked is None else asked
    for rule, each in (("budget", budget), ("tree_budget", tree_budget)):
        if each is not None:
            spent = state.spent if rule == "budget" else together(state.spent, tree)
            findings += budget_findings(each, spent, rule=rule, unpriced_model=model)
            findings += tool_findings(each, spent, in_use, asked=asked is not None, rule=rule)
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
