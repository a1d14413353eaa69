"""Step drift: how far the agent's newest step is from everything that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coherence.core.readings import Evidence, Kind, MetricInput, excerpt
from coherence.state.reducer import AgentState

MIN_TOLD = 0.6
"""Values from here on are explained."""


@dataclass(frozen=True)
class StepDrift:
    """One minus the highest cosine of the agent's newest step with a goal or a later request.

    A step is a message of the agent with its calls. Where the user left it to a text what is done ("follow the steps in
    X"), what was said and returned before counts as asked for too. Range [0, 1], inverted: 0 = it is about what was
    asked. ``None`` without goals, and before the first step.

    Parameters
    ----------
    state : AgentState
        The agent, whose steps are told from results.

    Notes
    -----
    A single step is often far from the goal: only several in a row that are farther than the run's own earlier steps
    mean something, see :class:`~coherence.sensor.own_start.Departure`.
    """

    state: AgentState
    name = "step_drift"
    inverted = True
    in_place = True
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the distance."""
        at = self._newest(data)
        if at is None or not data.goals.size:
            return None
        nearest = float(data.cosines("goals", "context")[:, at].max())
        if at and self.state.hijack.data.known.delegated:
            nearest = max(nearest, float(data.cosines("context", "context")[:at, at].max()))
        return min(max(1.0 - nearest, 0.0), 1.0)

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the step."""
        at, value = self._newest(data), self.compute(data)
        if at is None or value is None or value < MIN_TOLD:
            return None
        why = f"the newest step has little to do with what was asked (distance {value:.2f})"
        return Evidence(why, "context", (at,), (excerpt(data.context_texts[at]),))

    def _newest(self, data: MetricInput) -> int | None:
        """Return the place of the newest step among the texts of the context."""
        text = next((item.text for item in reversed(self.state.context) if item.role == "assistant"), None)
        if text is None:
            return None
        return next((at for at in reversed(range(len(data.context_texts))) if data.context_texts[at] == text), None)
