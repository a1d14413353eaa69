"""Outcome risk: how probable it is that the task will have failed, for the kind of agent on which it was calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from coherence.core.readings import Evidence, number_of
from coherence.detect.service_cues import ServiceCues
from coherence.state.reducer import AgentState

SLOPE, MIDDLE = 7.0, 0.42
"""The map from the cues' mean to a risk, ``1 / (1 + exp(-SLOPE (score - MIDDLE)))``, fitted on labelled runs."""

DOUBT = 0.9
"""Half the width of the risk's 95 % interval, in log-odds: the runs that the map was fitted on are of few tasks."""


@dataclass(frozen=True)
class OutcomeRisk:
    """How probable it is that the agent's task will have failed, told from the run so far.

    Three cues with equal weights, mapped to a risk by a logistic curve: how much the user asked for at once, how seldom
    the agent refuses (saying no by policy is often what the task wants), and how much it calls one tool again and
    again. See :class:`~coherence.detect.service_cues.ServiceCues`.

    Range [0, 1], inverted: 0 = it will have succeeded. Given only for service agents, which talk with a user over
    several turns in English and read and write records with tools: nothing else was calibrated, and the outcomes of
    strong coding models cannot be told from the transcript at all. ``None`` elsewhere, with the reason.

    Parameters
    ----------
    state : AgentState
        The agent; any other provider tells no turns from results and leaves the value unknown.

    References
    ----------
    Labels: 76 runs of 19 tasks of tau-bench (Yao et al., 2024, arXiv 2406.12045), airline, gpt-4o. Figures and their
    intervals: ``docs/metrics.md``, made by ``tests/bench/outcome_risk.py``.

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
    >>> round(risk.compute(), 2)
    0.09
    """

    state: AgentState
    name = "outcome_risk"
    inverted = True
    in_place = True
    steady = True

    def compute(self) -> float | None:
        """Return the risk."""
        cues = self._cues()
        if cues is None or cues.other_kind():
            return None
        return _risk(cues.score)

    @property
    def why_unknown(self) -> str:
        """Why there is no value."""
        cues = self._cues()
        if cues is None:
            return "only a monitor's state tells the user's turns from results"
        undetectable = cues.other_tool or cues.code
        coding = "; outcomes of strong coding models cannot be told from the transcript (SWE-bench: AUROC about 0.5)"
        return f"not calibrated for this kind of agent: {cues.other_kind()}{coding if undetectable else ''}"

    def explain(self) -> Evidence | None:
        """Name the three cues and say how sure the risk is."""
        cues = self._cues()
        if cues is None or cues.other_kind():
            return None
        low, high = (_risk(cues.score + side * DOUBT / SLOPE) for side in (-1, 1))
        return Evidence(
            f"longest request {cues.longest} words, {cues.refusals} of {cues.replies} replies refuse something, "
            f"{number_of(cues.again, 'call')} of the tool called just before; {low:.2f} to {high:.2f}, "
            "by 19 tasks of one airline's desk, half failed",
            "context",
        )

    def _cues(self) -> ServiceCues | None:
        return self.state.service.data if isinstance(self.state, AgentState) else None


def _risk(score: float) -> float:
    return 1.0 / (1.0 + exp(-SLOPE * (score - MIDDLE)))
