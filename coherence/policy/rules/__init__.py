"""The rules that come with the package: one judgement each, pure functions of what they are shown.

One with ``steady = True`` looks at nothing but what was said and done, and whether the newest answer is final: not at
the reading, the appraisal, the time, nor at what was used up.
"""

from __future__ import annotations

from functools import cache

from coherence.core.config import MonitorConfig
from coherence.core.protocols import Rule
from coherence.core.registry import create_rule, shipped

OTHER_FINDINGS = frozenset(
    {
        "course",
        "pressure",
        "received_pressure",
        "budget",
        "tree_budget",
        "destructive_call",
        "destructive_unasked",
        "harmful_call",
        "forbidden_call",
        "scope_drift_warn",
        "procedural_warning",
        "known_error",
        "goal_hijack",
        "ungrounded_outcome",
    }
)
"""Names of findings of this package that no rule makes, up to a dot."""


def builtin_rules(config: MonitorConfig) -> list[Rule]:
    """Return the rules of this package that are not switched off, each as the registry makes it.

    Examples
    --------
    >>> print(*[rule.name for rule in builtin_rules(MonitorConfig())][:3])
    bash_error_streak bash_retry blind_edit
    """
    settings = config.rules
    return [create_rule(name) for name in sorted(shipped("rules")) if name not in settings or settings[name].enabled]


@cache
def reserved_names() -> frozenset[str]:
    """Return the names of findings that a rule or detector of somebody else must not have."""
    return OTHER_FINDINGS.union(shipped("rules"))
