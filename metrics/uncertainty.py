"""Uncertainty: how unsure the agent sounds and acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coherence.core.readings import Kind, MetricInput
from coherence.state.reducer import AgentState

RECENT_MESSAGES = 3
RECENT_RESULTS = 10
TURNS = 3
"""Comparisons over which hesitation is taken; where there are fewer, the missing ones count as none."""

ENOUGH_MESSAGES = 5
"""Messages before their form is known."""

USUAL_FORM = 0.6
"""Share of the messages that must have a form for it to be the usual one."""


@dataclass(frozen=True)
class Uncertainty:
    """How unsure an agent sounds and acts.

    ``0.40 hedging + 0.25 hesitation + 0.20 retries + 0.15 form``, where *hedging* is the mean hedge density of the last
    three messages, *hesitation* how much the agent turns back in meaning (each message is compared with the two before:
    nearer to the one before last than to the last is to and fro), *retries* the share of repeated failed calls among
    the last ten results, and *form* whether the newest message has another form (JSON, code, list, prose) than it
    should.

    Range [0, 1], inverted: 0 = sure. ``None`` before the first message or result.

    Parameters
    ----------
    state : AgentState
        The agent.

    Notes
    -----
    The words are English; hesitation, retries and form work in any language.
    """

    state: AgentState
    name = "uncertainty"
    inverted = True
    in_place = True
    reads: ClassVar[tuple[Kind, ...]] = ("context",)

    def compute(self, data: MetricInput) -> float | None:
        """Return the uncertainty."""
        facts = self.state.facts
        if not facts.said and not facts.actions:
            return None
        recent = facts.said[-RECENT_MESSAGES:]
        hedging = sum(said.hedging for said in recent) / max(len(recent), 1)
        results = facts.actions[-RECENT_RESULTS:]
        retries = sum(action.retry for action in results) / max(len(results), 1)
        return 0.40 * hedging + 0.25 * self._hesitation(data) + 0.20 * retries + 0.15 * self._deviates()

    def _hesitation(self, data: MetricInput) -> float:
        said = [at for at, item in enumerate(self.state.context) if item.role == "assistant"][-TURNS - 2 :]
        if len(said) < 3 or len(data.context_texts) != len(self.state.context):
            return 0.0
        cosines = data.cosines("context", "context")
        back = [
            max(float(cosines[third, first]) - float(cosines[third, second]), 0.0)
            for first, second, third in zip(said, said[1:], said[2:], strict=False)
        ]
        return min(2.0 * sum(back) / TURNS, 1.0)

    def _deviates(self) -> bool:
        facts = self.state.facts
        if not facts.said:
            return False
        wanted: str | None = self.state.config.output_format
        total = sum(facts.shapes.values())
        if wanted is None and total >= ENOUGH_MESSAGES:
            shape, count = max(facts.shapes.items(), key=lambda pair: pair[1])
            wanted = shape if shape != "empty" and count >= USUAL_FORM * total else None
        return wanted is not None and facts.said[-1].shape != wanted
