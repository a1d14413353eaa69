"""Error rate: the share of calls that failed, over a life or lately."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.protocols import CounterSource
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class ErrorRate:
    """The share of calls that failed, ``errors / calls``, over the agent's life so far.

    Range [0, 1], inverted: 0 = no call failed, 1 = all failed. ``None`` before the first call.

    Parameters
    ----------
    source : CounterSource
        Whatever counts calls and errors, mostly the state provider.

    Examples
    --------
    >>> from coherence.core.readings import Counters
    >>> class Agent:
    ...     def get_counters(self):
    ...         return Counters(calls=4, errors=1)
    >>> ErrorRate(Agent()).compute()
    0.25
    """

    source: CounterSource
    name = "error_rate"
    inverted = True

    @property
    def in_place(self) -> bool:
        """True if the source's counters never block."""
        return getattr(self.source, "in_place", False) is True

    def compute(self) -> float | None:
        """Return the rate, ``None`` if calls or errors are not known."""
        counters = self.source.get_counters()
        if not counters.calls or counters.errors is None:
            return None
        return min(counters.errors / counters.calls, 1.0)


@dataclass(frozen=True)
class RecentErrorRate:
    """The share of an agent's latest tool results that were errors, over ``config.pressure.error_window`` results.

    Range [0, 1], inverted: 0 = none of them, 1 = all. Where there are fewer results than the window, the missing ones
    count as good: the first error of a life is not a rate of 100 %. ``None`` before the first result.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "error_rate"
    inverted = True
    in_place = True
    why_unknown = "no tool result yet"

    def compute(self) -> float | None:
        """Return the rate, ``None`` before the first result."""
        return self.compute_since(0)

    def compute_since(self, seq: int) -> float | None:
        """Return the rate over the results from event number ``seq`` on, ``None`` if there is none."""
        window = self.state.config.pressure.error_window
        recent = [action for action in self.state.facts.actions[-window:] if action.seq >= seq]
        return sum(action.error for action in recent) / window if recent else None
