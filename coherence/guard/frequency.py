"""How many failures are too many: thresholds that follow how often an agent is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from coherence.core.validation import MAX_NAME, check_count, check_flag, check_number, check_text
from coherence.guard.rolling import MAX_WINDOW_H

Frequency: TypeAlias = Literal["high", "medium", "low"]
"""high = more than 10 calls in 24 hours; medium = 3 to 10, or an agent that was never called; low = fewer than 3."""

FREQUENCY_H = 24.0
"""Over how many hours calls are counted."""

CRITICAL_WORDS = ("critical", "prod", "production", "monitor")
"""Words that mark an agent as critical when one of them is a word of its name."""

MAX_FAILURES = 1000
MAX_COOLDOWN_H = 8760.0
_WORD = re.compile(r"[^\W\d_]+")


def _check(failures: int | None, window_h: float | None, cooldown_h: float | None) -> None:
    if failures is not None:
        check_count("failures", failures, least=1, most=MAX_FAILURES)
    if window_h is not None:
        check_number("window_h", window_h, least=1, most=MAX_WINDOW_H)
    if cooldown_h is not None:
        check_number("cooldown_h", cooldown_h, least=0, most=MAX_COOLDOWN_H)


class Thresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When failures call for an improvement.

    Parameters
    ----------
    failures : int
        So many failures in the window, 1 to 1,000. Fewer react sooner, and to chance more often.
    window_h : float
        Length of the window, 1 to 168 hours.
    cooldown_h : float
        How long nothing is improved after an improvement, 0 to 8,760 hours.

    Raises
    ------
    TypeError, ValueError
        For a field of another type or outside its range.
    """

    failures: int
    window_h: float
    cooldown_h: float

    def __post_init__(self) -> None:
        _check(self.failures, self.window_h, self.cooldown_h)


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person set for one agent; what is left out comes from the profile in force.

    Parameters
    ----------
    critical : bool or None
        Whether the agent is critical, whatever its name says; None = its name decides.
    failures, window_h, cooldown_h
        As in :class:`Thresholds`; None = from the profile.

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
        _check(self.failures, self.window_h, self.cooldown_h)


CRITICAL = Thresholds(1, 24, 6)
"""The profile of critical agents, however often they are called."""

PROFILES: Mapping[Frequency, Thresholds] = {
    "high": Thresholds(5, 48, 3),
    "medium": Thresholds(3, 24, 6),
    "low": Thresholds(2, 72, 12),
}
"""The profile of each frequency."""


def frequency(calls_24h: int, *, called_before: bool = True) -> Frequency:
    """Return how often an agent is called.

    Parameters
    ----------
    calls_24h : int
        Its calls in the last 24 hours, 0 or more.
    called_before : bool
        Whether it was ever called; nothing is known of an agent that was not, so it is medium.

    Examples
    --------
    >>> [frequency(calls) for calls in (0, 2, 3, 10, 11)], frequency(0, called_before=False)
    (['low', 'low', 'medium', 'medium', 'high'], 'medium')
    """
    calls = check_count("calls_24h", calls_24h)
    if calls > 10:
        return "high"
    return "medium" if calls >= 3 or not (calls or called_before) else "low"


class AdaptiveThresholds:
    """The thresholds of every agent.

    Parameters
    ----------
    overrides : Mapping of str to Override
        What a person set, by agent.
    critical_words : Iterable of str
        Words that mark a name as critical. They are compared with the whole words of the name (runs of letters, in any
        case): ``prod`` is a word of ``prod-eu`` and of ``PROD2``, not of ``product-search``.

    Raises
    ------
    TypeError, ValueError
        For overrides or words of another type, or a word that is not one run of letters.

    Examples
    --------
    >>> thresholds = AdaptiveThresholds({"prod-eu": Override(cooldown_h=1), "support": Override(critical=True)})
    >>> thresholds.of("prod-eu", calls_24h=500)
    Thresholds(failures=1, window_h=24, cooldown_h=1)
    >>> thresholds.of("support", calls_24h=2), thresholds.of("product-search", calls_24h=20)
    (Thresholds(failures=1, window_h=24, cooldown_h=6), Thresholds(failures=5, window_h=48, cooldown_h=3))
    """

    def __init__(
        self, overrides: Mapping[str, Override] | None = None, *, critical_words: Iterable[str] = CRITICAL_WORDS
    ) -> None:
        if isinstance(critical_words, str):
            raise TypeError("critical_words must be several words, not one text")
        self.overrides = dict(overrides or {})
        for agent, override in self.overrides.items():
            check_text("agent of an override", agent, empty=False)
            if not isinstance(override, Override):
                raise TypeError(f"the override of {agent!r} must be an Override, not {type(override).__name__}")
        self.critical_words = tuple(check_text("critical word", word, empty=False) for word in critical_words)
        for word in self.critical_words:
            if not _WORD.fullmatch(word):
                raise ValueError(f"critical_words must be runs of letters, not {word!r}")
        self._words = frozenset(word.casefold() for word in self.critical_words)

    def is_critical(self, agent: str) -> bool:
        """Tell whether an agent is critical, by its override or a word in the first 500 characters of its name."""
        override = self.overrides.get(agent)
        if override is not None and override.critical is not None:
            return override.critical
        return any(word.casefold() in self._words for word in _WORD.findall(agent[:MAX_NAME]))

    def of(self, agent: str, *, calls_24h: int, called_before: bool = True) -> Thresholds:
        """Return the thresholds in force for an agent; the parameters are those of :func:`frequency`."""
        profile = PROFILES[frequency(calls_24h, called_before=called_before)]
        if self.is_critical(check_text("agent", agent)):
            profile = CRITICAL
        override = self.overrides.get(agent)
        if override is None:
            return profile
        return Thresholds(
            profile.failures if override.failures is None else override.failures,
            profile.window_h if override.window_h is None else override.window_h,
            profile.cooldown_h if override.cooldown_h is None else override.cooldown_h,
        )


def as_thresholds(thresholds: object) -> AdaptiveThresholds:
    """Return the thresholds that a user means: as they are, with overrides by agent, or the usual ones.

    Raises
    ------
    TypeError, ValueError
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
