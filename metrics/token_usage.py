"""Token usage: how much of a budget in tokens is used."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.protocols import CounterSource


@dataclass(frozen=True)
class TokenUsage:
    """The used share of a token budget, ``(tokens_in + tokens_out) / budget``, at most 1.

    Range [0, 1], inverted: 0 = none used, 1 = the budget is used up. ``None`` while no count is known; a missing half
    counts as 0.

    Parameters
    ----------
    source : CounterSource
        Whatever counts tokens, mostly the state provider.
    budget : int
        Tokens, above 0; a smaller budget raises the value.

    Examples
    --------
    >>> from coherence.core.readings import Counters
    >>> class Agent:
    ...     def get_counters(self):
    ...         return Counters(tokens_in=900, tokens_out=100)
    >>> TokenUsage(Agent(), budget=4000).compute()
    0.25
    """

    source: CounterSource
    budget: int = 1_000_000
    name = "token_usage"
    inverted = True

    def __post_init__(self) -> None:
        if not 0 < self.budget < float("inf"):
            raise ValueError(f"budget must be above 0 and finite, not {self.budget}")

    @property
    def in_place(self) -> bool:
        """True if the source's counters never block."""
        return getattr(self.source, "in_place", False) is True

    def compute(self) -> float | None:
        """Return the share, ``None`` if no count is known."""
        counters = self.source.get_counters()
        known = [count for count in (counters.tokens_in, counters.tokens_out) if count is not None]
        return min(sum(known) / self.budget, 1.0) if known else None
