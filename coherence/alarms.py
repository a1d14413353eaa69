"""Settings of alarms: how many good runs may alarm."""

from __future__ import annotations

import msgspec

from coherence.plain import check_flag, check_number

LEAST_BUDGET, MOST_BUDGET = 0.005, 0.5
"""Range of a budget. 0.5 % needs 399 good runs of the agent's own; 500 are kept."""


class AlarmConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of an agent's good runs may alarm, and whether its own runs are what decides.

    Examples
    --------
    >>> AlarmConfig().budgets, AlarmConfig(budget=0.1, block_budget=0.01).budgets
    ((0.05,), (0.1, 0.01))
    """

    budget: float = 0.05
    """Share of good runs that may alarm, in [0.005, 0.5]."""
    block_budget: float | None = None
    """Share of good runs in which a call may be refused, in [0.005, budget]; default: none is."""
    learn: bool = True
    """Whether a new session takes thresholds and weights that the agent's own labelled runs have set."""

    def __post_init__(self) -> None:
        check_number("alarms budget", self.budget, least=LEAST_BUDGET, most=MOST_BUDGET)
        if self.block_budget is not None:
            check_number("alarms block_budget", self.block_budget, least=LEAST_BUDGET, most=self.budget)
        check_flag("alarms learn", self.learn)

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets for which there is a threshold, each once."""
        return tuple(dict.fromkeys((self.budget, self.block_budget or self.budget)))
