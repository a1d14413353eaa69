"""The time to ask for an improvement: enough failures in the window, and no cool-down."""

from __future__ import annotations

import msgspec

from coherence.guard.frequency import FREQUENCY_H, AdaptiveThresholds, Thresholds
from coherence.guard.rolling import Rolling


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
    >>> trigger.check("a", rolling, AdaptiveThresholds(), now_s=0.0).fires
    False
    >>> _ = rolling.record(2, 60.0, success=False)
    >>> trigger.check("a", rolling, AdaptiveThresholds(), now_s=60.0).fires
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

    def check(self, agent: str, rolling: Rolling, thresholds: AdaptiveThresholds, now_s: float) -> Due:
        """Judge the failure that has just been recorded in ``rolling``.

        Parameters
        ----------
        agent : str
            Whose failure it is.
        rolling : Rolling
            Its account, this failure included.
        thresholds : AdaptiveThresholds
            The thresholds of all agents.
        now_s : float
            Steady time, seconds. If the last improvement lies after it (a state from another machine), the
            improvement is taken to be now: a cool-down lasts once its length, and never for ever.
        """
        calls = rolling.calls_within(FREQUENCY_H, now_s=now_s)
        found = thresholds.of(agent, calls_24h=calls, called_before=rolling.calls > 0)
        left, quiet_s = 0.0, found.cooldown_h * 3600
        if self.improved_at_s is not None:
            self.improved_at_s = min(self.improved_at_s, now_s)
            left = max(self.improved_at_s + quiet_s - now_s, 0.0)
        if self.answered_at_s is not None:
            self.answered_at_s = min(self.answered_at_s, now_s)
            left = max(self.answered_at_s + quiet_s * 2.0 ** (self.fruitless - FRUITLESS) - now_s, left)
        counted = min(rolling.failures_within(found.window_h, now_s=now_s), rolling.failures - self.failures_before)
        return Due(not left and counted >= found.failures, counted, left, found)
