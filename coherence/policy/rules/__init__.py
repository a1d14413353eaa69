"""The rules that come with the package: one judgement each, pure functions of what they are shown."""

from __future__ import annotations

from coherence.core.config import Budget, MonitorConfig
from coherence.core.protocols import Rule
from coherence.policy.rules.failures import failure_rules
from coherence.policy.rules.loops import RepeatedToolCallLoop
from coherence.policy.rules.quality import UngroundedAnswer

OWN_RULES = frozenset(
    {
        "pressure",
        "received_pressure",
        "budget",
        "tree_budget",
        "destructive_call",
        "repeated_tool_call_loop",
        "bash_retry",
        "bash_error_streak",
        "error_cascade",
        "blind_edit",
        "repeated_failure_pattern",
        "cost_spiral",
        "context_exhaustion",
        "quality_decline_no_recovery",
        "cost_cap_reached",
        "low_confidence_spans",
        "scope_drift_warn",
        "procedural_warning",
        "known_error",
        "goal_hijack",
        "ungrounded_answer",
        "ungrounded_outcome",
    }
)
"""Names that findings of this package have, up to a dot."""


def own_rules(config: MonitorConfig, budget: Budget | None) -> list[Rule]:
    """Return the package's rules that are not switched off."""
    rules = [RepeatedToolCallLoop(), *failure_rules(config, budget), UngroundedAnswer()]
    return [rule for rule in rules if config.rules.get(rule.name) is None or config.rules[rule.name].enabled]
