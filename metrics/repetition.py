"""Repetition: how much of what the agent does and says it has just done and said."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.state.reducer import AgentState

RECENT = 10


@dataclass(frozen=True)
class Repetition:
    """The share of the last ten results, or of the last ten messages, that repeat an earlier one of them.

    A result repeats another if tool, arguments and result are equal, a message if its text is, or if it is monotonous
    (the same few characters over and over). The higher share counts.

    Range [0, 1], inverted: 0 = nothing twice. Where there are fewer than ten, the missing ones count as new. ``None``
    before the second result or message.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "repetition"
    inverted = True
    in_place = True
    why_unknown = "fewer than two results or messages"

    def compute(self) -> float | None:
        """Return the share."""
        return self.compute_since(0)

    def compute_since(self, seq: int) -> float | None:
        """Return the share over what happened from event number ``seq`` on."""
        actions = [action for action in self.state.facts.actions[-RECENT:] if action.seq >= seq]
        said = [message for message in self.state.facts.said[-RECENT:] if message.seq >= seq]
        shares = []
        if len(actions) > 1:
            shares.append((len(actions) - len({(action.made.exact, action.came.exact) for action in actions})) / RECENT)
        if len(said) > 1:
            fresh = {message.digest for message in said if not message.monotonous}
            shares.append((len(said) - len(fresh)) / RECENT)
        return max(shares, default=None)
