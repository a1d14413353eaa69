"""State of an agent as far as its events have been processed, to be looked at while a measurement is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from coherence.core.decisions import refusal_id
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
    """Steps that are complete."""
    calls: int
    """Tool results."""
    errors: int
    """Tool results that are errors."""
    spent: Spent
    """Tokens, money, calls and time that the agent has used."""
    refusal: str | None
    """Id of the newest refusal since the newest goal: of a call, or by a step that blocks."""

    @classmethod
    def of(cls, pipeline: AgentPipeline) -> Self:
        """Return the state of a pipeline, which nobody may change meanwhile."""
        facts, measured = pipeline.state.facts, pipeline.measured
        newest = max(pipeline.refusals().values(), default=None)
        return cls(
            result=measured,
            pressure=pipeline.appraiser.mood.pressure,
            steps=facts.steps,
            calls=facts.results,
            errors=facts.errors,
            spent=pipeline.state.spent,
            refusal=None if newest is None else refusal_id(*pipeline.name, newest),
        )
