"""Thresholds that come with the package, for agents that have too few runs of their own."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from coherence.core.readings import FrozenDict
from coherence.detect.hijack import ALARM_1, ALARM_5, FAR


class ShippedThreshold(NamedTuple):
    """From which risk on a metric alarms."""

    value: float
    """A run alarms strictly above it, in [0, 1]."""
    source: str
    """What it was set from, in words."""
    floor: float = 0.0
    """Below which an agent's own runs set no threshold: runs that are all alike say little of the first other one."""


class Shipped(msgspec.Struct, frozen=True):
    """The thresholds of one metric."""

    version: str
    """Of the metric's formula; another one is another scale."""
    thresholds: FrozenDict[float, ShippedThreshold]
    """Budget -> threshold."""

    def within(self, budget: float) -> ShippedThreshold | None:
        """Return the threshold of a budget, or of the next smaller one: it alarms more rarely than it may.

        Examples
        --------
        >>> five, one = ShippedThreshold(0.2, "100 runs"), ShippedThreshold(0.4, "100 runs")
        >>> shipped = Shipped("1", FrozenDict({0.05: five, 0.01: one}))
        >>> shipped.within(0.05).value, shipped.within(0.04).value, shipped.within(0.005)
        (0.2, 0.4, None)
        """
        fitting = [known for known in self.thresholds if known <= budget]
        return self.thresholds[max(fitting)] if fitting else None


SHIPPED: FrozenDict[str, Shipped] = FrozenDict(
    goal_hijack=Shipped(
        version="2",
        thresholds=FrozenDict(
            {
                # Distance alone warns nobody of a call, and what is usual elsewhere refuses none.
                0.05: ShippedThreshold(ALARM_5, "496 runs without an attack, of six sources", floor=FAR),
                0.01: ShippedThreshold(ALARM_1, "496 runs without an attack, of six sources", floor=ALARM_1),
            }
        ),
    ),
)
"""Metric -> its thresholds. Each metric of this table has one for an agent's first run on."""
