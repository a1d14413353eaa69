"""From which value an alarm is one: what the calibration says, unless the settings of the rule say otherwise."""

from __future__ import annotations

from typing import NamedTuple

from coherence.baseline.calibration_history import Calibration
from coherence.core.config import MonitorConfig

NEVER = 1.0
"""No value lies above it."""


class AlarmThreshold(NamedTuple):
    """A threshold, and how it was set, in words."""

    value: float
    """In [0, 1]; what is above it is an alarm."""
    words: str


class Limits(NamedTuple):
    """Above which a detector's findings ask to warn, and to block."""

    warn: AlarmThreshold
    block: AlarmThreshold


def limits_of(config: MonitorConfig, detector: str, calibration: Calibration | None = None) -> Limits:
    """Return both thresholds of a detector; that of blocking is never the lower one.

    An agent whose own runs have raised the first above the shipped second shows that the second is not for it. Runs
    that are all alike set a threshold that the first other task exceeds: none goes below its floor.

    Parameters
    ----------
    config : MonitorConfig
        The budgets. A threshold of the rule there is taken in place of the first one.
    detector : str
        The rule's name.
    calibration : Calibration, optional
        What the agent's own runs have set; default: what is shipped.

    Examples
    --------
    >>> print(limits_of(MonitorConfig(), "goal_hijack").warn.words)  # doctest: +NORMALIZE_WHITESPACE
    at most 5 % of good runs, shipped (from 496 runs without an attack, of six sources);
    own runs set it from 39 on
    >>> limits_of(MonitorConfig.load({"rules": {"goal_hijack": {"threshold": 0.7}}}), "goal_hijack").warn
    AlarmThreshold(value=0.7, words='set by configuration')
    """
    rule, alarms = config.rules.get(detector), config.alarms
    known = calibration or Calibration()
    warn = _threshold(known, detector, alarms.budget)
    if rule is not None and rule.threshold is not None:
        warn = AlarmThreshold(rule.threshold, "set by configuration")
    if alarms.block_budget is None:
        return Limits(warn, AlarmThreshold(NEVER, "no budget is set for refusing a call"))
    block = _threshold(known, detector, alarms.block_budget)
    return Limits(warn, max(block, warn, key=lambda limit: limit.value))


def _threshold(calibration: Calibration, detector: str, budget: float) -> AlarmThreshold:
    found = calibration.find(detector, budget)
    if found is None:
        return AlarmThreshold(NEVER, "no threshold is known")
    words = found.words.partition(": ")[2]
    return AlarmThreshold(NEVER if found.value is None else found.value, words)
