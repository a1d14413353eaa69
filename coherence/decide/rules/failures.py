"""The rules about failure patterns, together."""

from __future__ import annotations

from coherence.config import Budget, MonitorConfig
from coherence.decide.rules.context import ContextExhaustion
from coherence.decide.rules.edits import BlindEdit
from coherence.decide.rules.failing import ErrorCascade, RepeatedFailurePattern
from coherence.decide.rules.quality import CostCapReached, QualityDecline
from coherence.decide.rules.shell import BashErrorStreak, BashRetry
from coherence.decide.rules.spending import CostSpiral
from coherence.decide.rules.unsure import LowConfidenceSpans
from coherence.protocols import Rule


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
