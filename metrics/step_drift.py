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
    told_from = MIN_TOLD
    reads: ClassVar[tuple[Kind, ...]] = ("goals", "context")

    def compute(self, data: MetricInput) -> float | None:
        """Return the distance."""
        at = self._newest(data)
        return None if at is None or not data.goals.size else self._distance(data, at)

    def explain(self, data: MetricInput) -> Evidence | None:
        """Point at the step."""
        at = self._newest(data)
        if at is None or not data.goals.size or (value := self._distance(data, at)) < MIN_TOLD:
            return None
        why = f"the newest step has little to do with what was asked (distance {value:.2f})"
        return Evidence(why, "context", (at,), (excerpt(data.context_texts[at]),))

    def _distance(self, data: MetricInput, at: int) -> float:
        nearest = max(data.cosines("goals", "context")[:, at].tolist())
        if at and self.state.hijack.data.known.delegated:
            nearest = max(nearest, *data.cosines("context", "context")[:at, at].tolist())
        return float(min(max(1.0 - nearest, 0.0), 1.0))

    def _newest(self, data: MetricInput) -> int | None:
        """Return the place of the newest step among the texts of the context."""
        text = next((item.text for item in reversed(self.state.context) if item.role == "assistant"), None)
        texts = data.context_texts
        return next((at for at in range(len(texts) - 1, -1, -1) if texts[at] == text), None)
