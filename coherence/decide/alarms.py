"""From which value an alarm is one: the one place that knows the thresholds of detectors and how they were set."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from coherence.config import MonitorConfig
from coherence.provenance.hijack import ALARM_1, ALARM_5

Budget: TypeAlias = Literal["5%", "1%"]
"""The share of good runs that may be alarmed."""

SHIPPED: dict[str, dict[Budget, float]] = {"goal_hijack": {"5%": ALARM_5, "1%": ALARM_1}}
"""Detector -> budget -> the value that is exceeded by an alarm."""

SHIPPED_FROM = {"goal_hijack": "373 runs without an attack, of three sources"}


class AlarmThreshold(NamedTuple):
    """A threshold, and how it was set, in words."""

    value: float
    """In [0, 1]; what is above it is an alarm."""
    words: str


class Limits(NamedTuple):
    """Above which a detector's findings ask to warn, and to block."""

    warn: AlarmThreshold
    block: AlarmThreshold


def limits_of(config: MonitorConfig, detector: str) -> Limits:
    """Return both thresholds of a detector."""
    return Limits(alarm_threshold(config, detector, "5%"), alarm_threshold(config, detector, "1%"))


def alarm_threshold(config: MonitorConfig, detector: str, budget: Budget) -> AlarmThreshold:
    """Return from where a detector alarms.

    Parameters
    ----------
    config : MonitorConfig
        A threshold of the rule there is taken in place of the 5 % one.
    detector : str
        The rule's name.
    budget : {"5%", "1%"}
        The share of good runs that may be alarmed.

    Examples
    --------
    >>> alarm_threshold(MonitorConfig(), "goal_hijack", "5%").words
    'at most 5% of good runs (shipped, from 373 runs without an attack, of three sources)'
    >>> alarm_threshold(MonitorConfig.load({"rules": {"goal_hijack": {"threshold": 0.7}}}), "goal_hijack", "5%")
    AlarmThreshold(value=0.7, words='set by configuration')
    """
    rule = config.rules.get(detector)
    if budget == "5%" and rule is not None and rule.threshold is not None:
        return AlarmThreshold(rule.threshold, "set by configuration")
    words = f"at most {budget} of good runs (shipped, from {SHIPPED_FROM[detector]})"
    return AlarmThreshold(SHIPPED[detector][budget], words)
