"""Outcome risk: whether the task will have failed; unknown, since length tells as much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NO_BETTER = (
    "nothing that was tried tells failed tasks better than the number of steps does (tau-bench retail: AUROC at equal "
    "length 0.53, 95 % interval 0.43 to 0.62)"
)
"""The reason for the missing number."""


@dataclass(frozen=True)
class OutcomeRisk:
    """Probability that the agent's task will have failed: unknown, and the reading says why.

    Cues of the talk with a user tell failures of the airline's desk that they were chosen on, and no better than the
    number of steps does those of another desk. What was done, compared with the policy in the system text, does not
    tell them either. What tells no more than length is not shown as a number.

    Range [0, 1], inverted: 0 = it will have succeeded.

    Parameters
    ----------
    state : AgentState
        The agent.

    References
    ----------
    Labels: tau-bench (Yao et al., 2024, arXiv 2406.12045), airline: 76 runs of 19 tasks, retail: 231 of 47. Figures:
    ``docs/explanation/evaluation.md``, made by ``tests/bench/outcome_risk.py``.

    Examples
    --------
    >>> from coherence.state.reducer import AgentState
    >>> risk = OutcomeRisk(AgentState())
    >>> risk.compute(), risk.why_unknown[:24]
    (None, 'nothing that was tried t')
    """

    state: Any
    name = "outcome_risk"
    inverted = True
    in_place = True
    steady = True
    why_unknown = NO_BETTER

    def compute(self) -> float | None:
        """Return nothing."""
        return None
