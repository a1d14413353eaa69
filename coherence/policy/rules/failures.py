"""The rules about failure patterns, together."""

from __future__ import annotations

from coherence.core.config import Budget, MonitorConfig
from coherence.core.protocols import Rule
from coherence.policy.rules.context import ContextExhaustion
from coherence.policy.rules.cost import CostSpiral
from coherence.policy.rules.edits import BlindEdit
from coherence.policy.rules.error_patterns import ErrorCascade, RepeatedFailurePattern
from coherence.policy.rules.quality import CostCapReached, QualityDecline
from coherence.policy.rules.shell import BashErrorStreak, BashRetry
from coherence.policy.rules.unsure import LowConfidenceSpans


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
