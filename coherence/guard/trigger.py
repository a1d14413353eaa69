"""The time to ask for an improvement: enough failures in a window, by how often an agent is called; no cool-down."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from coherence.core.validation import MAX_NAME, check_count, check_flag, check_number, check_text
from coherence.guard.rolling import MAX_WINDOW_H, Rolling

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


def checked_overrides(thresholds: object) -> dict[str, Override]:
    """Return what a person set, by agent.

    Raises
    ------
    TypeError
        If it is no mapping of agents to Override.
    """
    if thresholds is not None and not isinstance(thresholds, Mapping):
        raise TypeError(f"thresholds must be a mapping of agents to Override, not {type(thresholds).__name__}")
    found = dict(thresholds or {})
    for agent, override in found.items():
        check_text("agent of an override", agent, empty=False)
        if not isinstance(override, Override):
            raise TypeError(f"the override of {agent!r} must be an Override, not {type(override).__name__}")
    return found


def thresholds_of(
    agent: str, overrides: Mapping[str, Override], *, calls_24h: int, called_before: bool = True
) -> Thresholds:
    """Return the thresholds in force for an agent.

    An agent is critical if a whole word of its name (a run of letters, in any case) is one of :data:`CRITICAL_WORDS`:
    ``prod`` is a word of ``prod-eu`` and of ``PROD2``, not of ``product-search``. The first 500 characters are read.

    Parameters
    ----------
    agent : str
        Its name.
    overrides : Mapping of str to Override
        What a person set, by agent.
    calls_24h : int
        Its calls in the last 24 hours, 0 or more.
    called_before : bool
        True if it was ever called; nothing is known of an agent that was not, so it is medium.

    Examples
    --------
    >>> overrides = {"prod-eu": Override(cooldown_h=1), "support": Override(critical=True)}
    >>> thresholds_of("prod-eu", overrides, calls_24h=500)
    Thresholds(failures=1, window_h=24, cooldown_h=1)
    >>> thresholds_of("support", overrides, calls_24h=2), thresholds_of("product-search", overrides, calls_24h=20)
    (Thresholds(failures=1, window_h=24, cooldown_h=6), Thresholds(failures=5, window_h=48, cooldown_h=3))
    """
    own = overrides.get(agent, Override())
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


class Due(msgspec.Struct, frozen=True):
    """Finding of :meth:`Trigger.check`."""

    fires: bool
    failures: int
    """Failures that count: in the window, and after the last improvement."""
    cooldown_left_s: float
    """Seconds until something may be improved again, 0 outside a cool-down."""
    thresholds: Thresholds
    """The thresholds in force."""

    @property
    def burst(self) -> int:
        """The newest failures that are enough to call for a patch.

        After a long cool-down many more may count, and they are no burst: calls between them show what was usual.
        """
        return min(self.failures, self.thresholds.failures)


FRUITLESS = 6
"""After so many answers in a row that led to no patch the strategy is left alone for a whole cool-down, after each one
before for half as long: asking may cost money."""


class Trigger(msgspec.Struct):
    """The last improvement of one agent; with it and its :class:`Rolling`, each failure is judged in bounded time.

    Failures from before the last improvement do not count against the configuration that it brought: otherwise
    the first failure after a cool-down that is shorter than the window would trigger again.

    Examples
    --------
    >>> rolling, trigger = Rolling(), Trigger()
    >>> _ = rolling.record(1, 0.0, success=False)
    >>> trigger.check("a", rolling, {}, now_s=0.0).fires
    False
    >>> _ = rolling.record(2, 60.0, success=False)
    >>> trigger.check("a", rolling, {}, now_s=60.0).fires
    True
    """

    improved_at_s: float | None = None
    """Steady time of the last improvement, seconds."""
    failures_before: int = 0
    """Failures up to it, or up to the last answer."""
    answered_at_s: float | None = None
    """Steady time of the last answer that led to no patch, seconds."""
    fruitless: int = 0
    """Such answers in a row, at most :data:`FRUITLESS`."""

    def answered(self, rolling: Rolling, now_s: float) -> None:
        """Note that the strategy was asked and no patch came of it."""
        self.failures_before = rolling.failures
        self.answered_at_s = now_s
        self.fruitless = min(self.fruitless + 1, FRUITLESS)

    def improved(self, rolling: Rolling, now_s: float) -> None:
        """Begin the cool-down: a patch was applied."""
        self.improved_at_s = now_s
        self.failures_before = rolling.failures
        self.answered_at_s, self.fruitless = None, 0

    def check(self, agent: str, rolling: Rolling, overrides: Mapping[str, Override], now_s: float) -> Due:
        """Judge the failure that has just been recorded in ``rolling``.

        Parameters
        ----------
        agent : str
            Whose failure it is.
        rolling : Rolling
            Its account, this failure included.
        overrides : Mapping of str to Override
            What a person set, by agent.
        now_s : float
            Steady time, seconds. If the last improvement lies after it (a state from another machine), the
            improvement is taken to be now: a cool-down lasts once its length, and never for ever.
        """
        calls = rolling.calls_within(FREQUENCY_H, now_s=now_s)
        found = thresholds_of(agent, overrides, calls_24h=calls, called_before=rolling.calls > 0)
        left, quiet_s = 0.0, found.cooldown_h * 3600
        if self.improved_at_s is not None:
            self.improved_at_s = min(self.improved_at_s, now_s)
            left = max(self.improved_at_s + quiet_s - now_s, 0.0)
        if self.answered_at_s is not None:
            self.answered_at_s = min(self.answered_at_s, now_s)
            left = max(self.answered_at_s + quiet_s * 2.0 ** (self.fruitless - FRUITLESS) - now_s, left)
        counted = min(rolling.failures_within(found.window_h, now_s=now_s), rolling.failures - self.failures_before)
        return Due(not left and counted >= found.failures, counted, left, found)
