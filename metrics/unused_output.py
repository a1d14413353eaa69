"""Unused output: how many tool results the agent made nothing of."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.detect.sources import unused_share
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class UnusedOutput:
    """The share of this task's tool results of which nothing new comes back in a later message or call.

    New is what neither the goal nor the agent itself had said before. A result is used once a name, address or longer
    number of it, or two of its words, come back; one that says nothing new is not counted. At most the newest 32.

    Range [0, 1], inverted: 0 = something of every result was used. ``None`` before the first message that follows a
    result, and for a provider that is no monitor's state.

    Parameters
    ----------
    state : AgentState
        The agent.

    Examples
    --------
    >>> from coherence.core.events import Goal, Message, ToolResult
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Who wrote it?"))
    >>> state.fold(2, 1.0, ToolResult("Mary Shelley, 1818", tool_name="search"))
    >>> state.fold(3, 2.0, ToolResult("Open daily from ten to six", tool_name="search"))
    >>> state.fold(4, 3.0, Message("assistant", "Mary Shelley wrote it."))
    >>> UnusedOutput(state).compute()
    0.5
    """

    state: AgentState
    name = "unused_output"
    inverted = True
    in_place = True
    why_unknown = "no message after a tool result yet"

    def compute(self) -> float | None:
        """Return the share."""
        return unused_share(self.state.grounding.data.outputs) if isinstance(self.state, AgentState) else None
