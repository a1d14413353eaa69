"""Cost: how much of a budget in US dollars is spent."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.protocols import CounterSource


@dataclass(frozen=True)
class Cost:
    """The spent share of a budget, ``cost_usd / budget_usd``, at most 1.

    Range [0, 1], inverted: 0 = nothing spent, 1 = the budget is spent. ``None`` while the cost is not known.

    Parameters
    ----------
    source : CounterSource
        Whatever counts the cost, mostly the state provider.
    budget_usd : float
        Above 0; a smaller budget raises the value.

    Examples
    --------
    >>> from coherence.core.readings import Counters
    >>> class Agent:
    ...     def get_counters(self):
    ...         return Counters(cost_usd=0.05)
    >>> Cost(Agent(), budget_usd=0.2).compute()
    0.25
    """

    source: CounterSource
    budget_usd: float = 1.0
    name = "cost"
    inverted = True

    def __post_init__(self) -> None:
        if not 0 < self.budget_usd < float("inf"):
            raise ValueError(f"budget_usd must be above 0 and finite, not {self.budget_usd}")

    @property
    def in_place(self) -> bool:
        """True if the source's counters never block."""
        return getattr(self.source, "in_place", False) is True

    def compute(self) -> float | None:
        """Return the share, ``None`` if the cost is not known."""
        cost = self.source.get_counters().cost_usd
        return None if cost is None else min(cost / self.budget_usd, 1.0)
