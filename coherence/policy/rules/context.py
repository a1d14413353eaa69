"""A rule about the room that is left in the model's context window."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_number
from coherence.policy.rules.finding_builders import found
from coherence.policy.rules.forecast import median
from coherence.state.data import Spending
from coherence.state.reducer import AgentState

NEAR_CALLS = 10
"""Model calls from whose growth it is told when the context will be full."""


class ContextExhaustion:
    """The context window is nearly full.

    The score is the share of ``config.context_tokens`` that the newest model call took, input and output, at most 1.
    ``None`` where the size of the window is not set, or nothing was counted since the last compaction.

    Parameters
    ----------
    guide : float
        Share from which it is active, in [0, 1].
    warn : float
        Share from which it asks to warn, in [0, 1].

    Examples
    --------
    >>> from coherence.core.config import MonitorConfig
    >>> from coherence.core.events import Usage
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(MonitorConfig(context_tokens=100_000)), Appraisal(seq=0, pressure=0, mode=Mode.OBSERVE)
    >>> for seq, tokens in enumerate((76_000, 80_000, 84_000), 1):
    ...     state.fold(seq, 0.0, Usage(input_tokens=tokens))
    >>> print(ContextExhaustion()(state, None, calm))
    context_exhaustion: 84,000 of 100,000 tokens of context are used (84%); at 4,000 more a call it is full in 4 calls
    """

    name = "context_exhaustion"

    def __init__(self, *, guide: float = 0.8, warn: float = 0.95) -> None:
        self.guide = check_number("guide", guide, least=0.0, most=1.0)
        self.warn = check_number("warn", warn, least=0.0, most=1.0)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest model call."""
        used, size = state.facts.context_used, state.config.context_tokens
        if used is None or size is None:
            return None
        share = used / size
        if share < self.guide / 2.0:
            return Finding(rule=self.name, severity="guide", score=share, threshold=self.guide)
        spending = state.facts.spending
        return found(
            self.name,
            min(share, 1.0),
            "warn" if share >= self.warn else "guide",
            f"{used:,} of {size:,} tokens of context are used ({share:.0%}){_full_in(spending, size - used)}",
            "note down what matters, then compact the context or hand over",
            [call.seq for call in spending[-1:]],
            self.guide,
        )


def _full_in(spending: list[Spending], left: int) -> str:
    """Say when the context is full, from the median growth since it last shrank."""
    recent = [call.tokens for call in spending[-NEAR_CALLS:]]
    rises: list[float] = []
    for one, two in pairwise(recent):
        rises = [*rises, two - one] if two >= one else []
    growth = median(rises) if rises else 0.0
    if left <= 0 or growth < 1.0:
        return ""
    calls = ceil(left / growth)
    return f"; at {growth:,.0f} more a call it is full in {calls:,} call{'s' * (calls > 1)}"
