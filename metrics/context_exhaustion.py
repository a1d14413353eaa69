"""Context exhaustion: how full the model's context window is."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.errors import UnknownSourceError
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class ContextExhaustion:
    """The tokens of the newest model call over the size of the model's context window, at most 1.

    Range [0, 1], inverted: 1 = full. ``None`` without a configured size or before the first usage.

    Parameters
    ----------
    state : AgentState
        The agent; ``config.context_tokens`` is the size.
    """

    state: AgentState
    name = "context_exhaustion"
    inverted = True
    in_place = True
    why_unknown = "no usage yet"

    def compute(self) -> float | None:
        """Return the share."""
        size = self.state.config.context_tokens
        used = self.state.facts.context_used
        if size is None:
            raise UnknownSourceError("the context window's size is not configured (context_tokens)")
        return None if used is None else min(max(used / size, 0.0), 1.0)
