"""Cost and context of a session, as the client tells its status line."""

from __future__ import annotations

from threading import Lock
from typing import Any

from coherence.integrations.host_session import Payload
from coherence.monitor.monitor import Monitor

MAX_COST = 1e9
"""US dollars beyond which a figure is taken for none."""


class CostFeed:
    """Follow the running total that the client counts, so that each dollar is recorded once.

    The client's total is of a whole session, subagents included; it stands with the main agent. Where the settings
    name prices, they count, and the client's figure does not.

    Parameters
    ----------
    monitor : Monitor
        Of the main agent.

    Examples
    --------
    >>> with Monitor(embedder=False) as monitor:
    ...     costs = CostFeed(monitor)
    ...     for total in (0.0, 0.25, 0.25, 0.75):
    ...         costs.feed({"cost": {"total_cost_usd": total}})
    ...     costs.take(), costs.take()
    (0.75, 0.0)
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._total: float | None = None
        """The client's newest total; ``None`` = it has told none."""
        self._waiting = 0.0
        """Dollars that are not recorded yet."""
        self._lock = Lock()
        self.context_percent: float | None = None
        """Share of the context that is used, in percent; ``None`` = not known."""

    @property
    def waiting(self) -> float:
        """Dollars that are not recorded yet."""
        return self._waiting

    def feed(self, told: Payload) -> None:
        """Take in what the client has told its status line; anything else is passed over."""
        context, cost = told.get("context_window"), told.get("cost")
        used = _number(context.get("used_percentage"), 100.0) if isinstance(context, dict) else None
        if used is not None:
            self.context_percent = used
        total = _number(cost.get("total_cost_usd"), MAX_COST) if isinstance(cost, dict) else None
        if total is None or self._monitor.config.prices:
            return
        with self._lock:
            before = self._total
            if before is None:  # what an earlier process has recorded is part of it
                before = self._monitor.known_state.spent.cost_usd or 0.0
            # below what it was, the client has begun anew
            self._waiting += max(total - before, 0.0)
            self._total = total

    def take(self) -> float | None:
        """Return the cost since the last time, to be recorded; ``None`` where the client tells none."""
        with self._lock:
            found, self._waiting = self._waiting, 0.0
            return found if self._total is not None else None


def _number(value: Any, most: float) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= most
    return float(value) if known else None
