"""Thresholds of failures: they follow how often an agent is called."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from coherence.core.validation import MAX_NAME, check_count, check_flag, check_number, check_text
from coherence.guard.rolling import MAX_WINDOW_H

FREQUENCY_H = 24.0
"""Hours over which calls are counted."""

CRITICAL_WORDS = frozenset({"critical", "prod", "production", "monitor"})
"""Words that mark an agent as critical when one of them is a word of its name."""

MAX_FAILURES = 1000
MAX_COOLDOWN_H = 8760.0
_WORD = re.compile(r"[^\W\d_]+")


class Thresholds(msgspec.Struct, frozen=True):
    """Failures that call for an improvement."""

    failures: int
    """So many in the window. Fewer react sooner, and to chance more often."""
    window_h: float
    """Length of the window, hours."""
    cooldown_h: float
    """Hours after an improvement in which there is no other."""


CRITICAL = Thresholds(1, 24, 6)
"""Profile of critical agents, however often they are called."""

HIGH, MEDIUM, LOW = Thresholds(5, 48, 3), Thresholds(3, 24, 6), Thresholds(2, 72, 12)
"""Profiles of more than 10 calls in 24 hours, of 3 to 10 or an agent that was never called, and of fewer."""


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Thresholds that a person sets for one agent; what is left out comes from the profile in force.

    Parameters
    ----------
    critical : bool or None
        True = the agent is critical, False = it is not, whatever its name says; None = its name decides.
    failures : int or None
        So many failures in the window, 1 to 1,000.
    window_h : float or None
        Length of the window, 1 to 168 hours.
    cooldown_h : float or None
        Hours after an improvement in which there is no other, 0 to 8,760.

    Raises
    ------
    TypeError, ValueError
        For a field of another type or outside its range.
    """

    critical: bool | None = None
    failures: int | None = None
    window_h: float | None = None
    cooldown_h: float | None = None

    def __post_init__(self) -> None:
        if self.critical is not None:
            check_flag("critical", self.critical)
        if self.failures is not None:
            check_count("failures", self.failures, least=1, most=MAX_FAILURES)
        if self.window_h is not None:
            check_number("window_h", self.window_h, least=1, most=MAX_WINDOW_H)
        if self.cooldown_h is not None:
            check_number("cooldown_h", self.cooldown_h, least=0, most=MAX_COOLDOWN_H)


class AdaptiveThresholds:
    """The thresholds of every agent.

    An agent is critical if a whole word of its name (a run of letters, in any case) is one of :data:`CRITICAL_WORDS`:
    ``prod`` is a word of ``prod-eu`` and of ``PROD2``, not of ``product-search``. The first 500 characters are read.

    Parameters
    ----------
    overrides : Mapping of str to Override
        What a person set, by agent.

    Raises
    ------
    TypeError
        For overrides of another type.

    Examples
    --------
    >>> thresholds = AdaptiveThresholds({"prod-eu": Override(cooldown_h=1), "support": Override(critical=True)})
    >>> thresholds.of("prod-eu", calls_24h=500)
    Thresholds(failures=1, window_h=24, cooldown_h=1)
    >>> thresholds.of("support", calls_24h=2), thresholds.of("product-search", calls_24h=20)
    (Thresholds(failures=1, window_h=24, cooldown_h=6), Thresholds(failures=5, window_h=48, cooldown_h=3))
    """

    def __init__(self, overrides: Mapping[str, Override] | None = None) -> None:
        self.overrides = dict(overrides or {})
        for agent, override in self.overrides.items():
            check_text("agent of an override", agent, empty=False)
            if not isinstance(override, Override):
                raise TypeError(f"the override of {agent!r} must be an Override, not {type(override).__name__}")

    def of(self, agent: str, *, calls_24h: int, called_before: bool = True) -> Thresholds:
        """Return the thresholds in force for an agent.

        Parameters
        ----------
        agent : str
            Its name.
        calls_24h : int
            Its calls in the last 24 hours, 0 or more.
        called_before : bool
            True if it was ever called; nothing is known of an agent that was not, so it is medium.
        """
        own = self.overrides.get(agent, Override())
        critical = own.critical
        if critical is None:
            critical = not CRITICAL_WORDS.isdisjoint(word.casefold() for word in _WORD.findall(agent[:MAX_NAME]))
        profile = HIGH if calls_24h > 10 else MEDIUM if calls_24h >= 3 or not (calls_24h or called_before) else LOW
        profile = CRITICAL if critical else profile
        return Thresholds(
            profile.failures if own.failures is None else own.failures,
            profile.window_h if own.window_h is None else own.window_h,
            profile.cooldown_h if own.cooldown_h is None else own.cooldown_h,
        )


def as_thresholds(thresholds: object) -> AdaptiveThresholds:
    """Return the thresholds that a user means: as they are, with overrides by agent, or the usual ones.

    Raises
    ------
    TypeError
        If it is none of these.

    Examples
    --------
    >>> as_thresholds({"support": Override(failures=4)}).of("support", calls_24h=20)
    Thresholds(failures=4, window_h=48, cooldown_h=3)
    """
    if isinstance(thresholds, AdaptiveThresholds):
        return thresholds
    if thresholds is not None and not isinstance(thresholds, Mapping):
        kind = type(thresholds).__name__
        raise TypeError(f"thresholds must be AdaptiveThresholds or a mapping of agents to Override, not {kind}")
    return AdaptiveThresholds(thresholds)
