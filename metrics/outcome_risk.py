"""Outcome risk: whether the task will have failed, told from the run so far; unknown, since length tells it as well."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from coherence.detect.service_cues import ServiceCues
from coherence.state.reducer import AgentState

SLOPE, MIDDLE = 7.0, 0.42
"""The map from the cues' mean to a risk, ``1 / (1 + exp(-SLOPE (score - MIDDLE)))``, fitted on labelled runs."""

NO_BETTER = (
    "no better than the number of steps on another desk than the one it was made with (tau-bench retail: AUROC at "
    "equal length 0.53, 95 % interval 0.43 to 0.62)"
)
"""Why no number is shown even of a service agent."""


@dataclass(frozen=True)
class OutcomeRisk:
    """How probable it is that the agent's task will have failed: unknown.

    Three cues - how much the user asked for at once, how seldom the agent refuses, how much it calls one tool again and
    again - tell failures of the airline's desk that they were chosen on, and no better than the number of steps does
    those of another desk. What was done, compared with the policy in the system text, does not tell them either. So a
    reading says why there is no number. :meth:`estimate` gives the number to whoever wants to judge it on own runs.

    Range [0, 1], inverted: 0 = it will have succeeded.

    Parameters
    ----------
    state : AgentState
        The agent; any other provider tells no turns from results.

    References
    ----------
    Labels: tau-bench (Yao et al., 2024, arXiv 2406.12045), airline: 76 runs of 19 tasks, retail: 231 of 47. Figures and
    their intervals: ``docs/metrics.md``, made by ``tests/bench/outcome_risk.py`` and ``outcome_choice.py``.

    Examples
    --------
    >>> from coherence.core.events import Message
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Message("user", "My booking is H9ZU1C. Please cancel it."))
    >>> state.fold(2, 1.0, Message("assistant", "Unfortunately this fare cannot be cancelled."))
    >>> risk = OutcomeRisk(state)
    >>> risk.compute(), risk.why_unknown
    (None, 'not calibrated for this kind of agent: no user has taken part in several turns')
    >>> state.fold(3, 2.0, Message("user", "I see. Thank you anyway."))
    >>> risk.compute(), risk.why_unknown[:38], round(risk.estimate(), 2)
    (None, 'no better than the number of steps on ', 0.09)
    """

    state: AgentState
    name = "outcome_risk"
    inverted = True
    in_place = True
    steady = True

    def compute(self) -> float | None:
        """Return nothing: what tells no more than length is not shown as a number."""
        return None

    def estimate(self) -> float | None:
        """Return the number that is not shown, in [0, 1]; ``None`` for any agent but a service agent.

        A *service agent* talks with a user over several turns in English, and reads and writes records with its tools.
        """
        cues = self._cues()
        if cues is None or cues.other_kind():
            return None
        return 1.0 / (1.0 + exp(-SLOPE * (cues.score - MIDDLE)))

    @property
    def why_unknown(self) -> str:
        """Why there is no value."""
        cues = self._cues()
        if cues is None:
            return "only a monitor's state tells the user's turns from results"
        other = cues.other_kind()
        if not other:
            return NO_BETTER
        undetectable = cues.other_tool or cues.code
        coding = "; outcomes of strong coding models cannot be told from the transcript (SWE-bench: AUROC about 0.5)"
        return f"not calibrated for this kind of agent: {other}{coding if undetectable else ''}"

    def _cues(self) -> ServiceCues | None:
        return self.state.service.data if isinstance(self.state, AgentState) else None
