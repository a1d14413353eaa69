"""The rules about failure patterns, together."""

from __future__ import annotations

from coherence.core.config import Budget, MonitorConfig
from coherence.core.protocols import Rule
from coherence.policy.rules.cost import ContextExhaustion, CostSpiral
from coherence.policy.rules.failed_calls import BashErrorStreak, BashRetry, ErrorCascade, RepeatedFailurePattern
from coherence.policy.rules.quality import BlindEdit, CostCapReached, LowConfidenceSpans, QualityDecline


def failure_rules(config: MonitorConfig, budget: Budget | None) -> list[Rule]:
    """Return the rules about failing calls, blind edits, spending, the context and quality, with their defaults.

    Parameters
    ----------
    config : MonitorConfig
        Its budget counts where none is given.
    budget : Budget, optional
        What the agent may use up.

    Examples
    --------
    >>> print(*[rule.name for rule in failure_rules(MonitorConfig(), None)][:4])
    bash_retry bash_error_streak error_cascade blind_edit
    """
    limits = budget if budget is not None else config.budget
    return [
        BashRetry(),
        BashErrorStreak(),
        ErrorCascade(),
        BlindEdit(),
        RepeatedFailurePattern(),
        CostSpiral(limits),
        ContextExhaustion(),
        QualityDecline(),
        CostCapReached(limits),
        LowConfidenceSpans(),
    ]
