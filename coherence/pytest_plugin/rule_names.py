"""Short names of rules, as tests write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coherence.core.registry import available

SHORT: Mapping[str, tuple[str, ...]] = {
    "budget": ("budget", "tree_budget"),
    "constraint": ("broken_constraint", "forbidden_call"),
    "context": ("context_exhaustion",),
    "contradiction": ("contradicted_claim",),
    "cost": ("cost_spiral", "cost_cap_reached"),
    "drift": ("scope_drift_warn", "course"),
    "edit": ("blind_edit",),
    "errors": ("bash_error_streak", "error_cascade", "repeated_failure_pattern"),
    "harm": ("harmful_call", "destructive_call", "destructive_unasked"),
    "hijack": ("goal_hijack",),
    "loop": ("repeated_tool_call_loop",),
    "retry": ("bash_retry",),
    "ungrounded": ("ungrounded_answer", "ungrounded_writing", "ungrounded_outcome"),
}
"""Short name -> the rules that it means; ``budget`` means each of its limits, too."""

OTHERS = ("known_error", "pressure", "procedural_warning", "received_pressure")
"""Rules without a short name that are no plug-ins."""


def rules_meant(names: Iterable[str]) -> dict[str, str]:
    """Return each rule that some names mean, with the name that means it.

    Raises
    ------
    TypeError
        If the names are no sequence of names.
    ValueError
        If a name is neither a short one nor a rule's; the error lists those that are known.

    Examples
    --------
    >>> rules_meant(["loop", "course"])
    {'repeated_tool_call_loop': 'loop', 'course': 'course'}
    """
    if isinstance(names, str):
        raise TypeError(f"no must be a list of names, not {names!r}: write no=[{names!r}]")
    meant: dict[str, str] = {}
    for name in names:
        if name in SHORT:
            meant |= dict.fromkeys(SHORT[name], name)
        elif name in (rules := _rules()):
            meant[name] = name
        else:
            short = ", ".join(sorted(SHORT))
            raise ValueError(f"no rule is called {name!r}; short names: {short}; rules: {', '.join(sorted(rules))}")
    return meant


def _rules() -> set[str]:
    return {
        *(plugin.name for plugin in available("rules")),
        *OTHERS,
        *(rule for rules in SHORT.values() for rule in rules),
    }


def name_of(rule: str, meant: Mapping[str, str]) -> str | None:
    """Return the name by which a finding's rule is meant, ``None`` if it is not.

    Examples
    --------
    >>> name_of("budget.tokens", rules_meant(["budget"])), name_of("course", {})
    ('budget', None)
    """
    return meant.get(rule, meant.get(rule.partition(".")[0]))
