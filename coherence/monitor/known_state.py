"""State of an agent as far as its events have been processed, to be looked at while a measurement is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from coherence.core.events import Spent
from coherence.monitor.tick_result import TickResult

if TYPE_CHECKING:
    from coherence.monitor.pipeline import AgentPipeline


class KnownState(msgspec.Struct, frozen=True, kw_only=True):
    """State of an agent at one moment; it never changes."""

    result: TickResult | None
    """Reading, appraisal and decision of the newest measurement."""
    pressure: float
    """The agent's own pressure in [0, 1], 0 = calm."""
    steps: int
    calls: int
    """Tool results."""
    errors: int
    """Calls that failed."""
    spent: Spent
    """Tokens, money, calls and time that the agent has used."""
    refusal: int | None
    """Number of the newest refusal since the newest goal: of the question about a call, or of a tick that blocks."""

    @classmethod
    def of(cls, pipeline: AgentPipeline) -> Self:
        """Return the state of a pipeline, which nobody may change meanwhile."""
        facts, measured = pipeline.state.facts, pipeline.measured
        refusals = [call.seq for call in pipeline.regulator.data.refused_calls[-1:]]
        refusals += [measured.decision.seq] if measured is not None and not measured.decision else []
        newest = max(refusals, default=0)
        return cls(
            result=measured,
            pressure=pipeline.appraiser.mood.pressure,
            steps=facts.steps,
            calls=facts.results,
            errors=facts.errors,
            spent=pipeline.state.spent,
            refusal=newest if newest > 0 else None,
        )
