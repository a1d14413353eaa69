"""One call of a plug-in: what it may do, and what came of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from coherence.core.readings import Failure

MAX_REST = 64
"""Most ticks a plug-in that keeps overrunning is left out for."""


PLAIN = frozenset({type(None), float, list})
"""Types that are known not to be awaitable; the look at others is slow."""


def runs_in_place(plugin: object, *methods: str) -> bool:
    """Tell whether a plug-in declares, by ``in_place = True``, that its methods are quick and never block.

    The declaration counts for methods of the class it stands in and of those above it: a subclass that has a method of
    its own has to declare it again.

    Examples
    --------
    >>> class Quick:
    ...     in_place = True
    ...     def compute(self): ...
    >>> class Changed(Quick):
    ...     def compute(self): ...
    >>> runs_in_place(Quick(), "compute"), runs_in_place(Changed(), "compute")
    (True, False)
    """
    if getattr(plugin, "in_place", False) is not True:
        return False
    order = type(plugin).__mro__
    declared = next((at for at, each in enumerate(order) if "in_place" in vars(each)), len(order))
    return not any(name in vars(each) for each in order[:declared] for name in methods)


class Breaker:
    """Leaves a plug-in out after it overran: while that call still runs, and then for 1, 2, 4, … ticks."""

    __slots__ = ("rest", "running", "strikes")

    def __init__(self) -> None:
        self.running = False
        self.strikes = 0
        self.rest = 0

    def refuses(self) -> str | None:
        """Say why the plug-in is left out at this tick; ``None`` if it may run. Asked once a tick."""
        if self.running:
            return "left out: its call from an earlier tick is still running"
        if self.rest:
            self.rest -= 1
            return (
                f"left out after {self.strikes} overrun{'s'[: self.strikes > 1]}; tried again in {self.rest + 1} ticks"
            )
        return None

    def overran(self, *, running: bool) -> None:
        """Count a call that did not end in time."""
        self.running = running
        self.strikes += 1
        self.rest = min(2 ** (self.strikes - 1), MAX_REST)

    def ended(self) -> None:
        """Count a call that ended in time, well or not."""
        self.strikes = 0


class PluginOutcome(NamedTuple):
    """Outcome of a call: a value, an awaitable, or an exception."""

    value: Any = None
    pending: bool = False
    error: BaseException | None = None
    message: str = ""


class PluginCall:
    """One call of a plug-in and what came of it.

    Parameters
    ----------
    source : str
        Name for :class:`~coherence.core.readings.Failure`.
    function : callable
        Called without arguments on a worker thread; an awaitable it returns is awaited on the caller's loop.
    breaker : Breaker
        The plug-in's.
    convert : callable, optional
        Checks and converts the final value; may raise.
    """

    __slots__ = ("breaker", "convert", "error", "failure", "function", "pending", "source", "value")

    def __init__(
        self,
        source: str,
        function: Callable[[], Any],
        breaker: Breaker,
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        self.source = source
        self.function = function
        self.breaker = breaker
        self.convert = convert
        self.value: Any = None
        self.pending = False
        self.error: BaseException | None = None
        self.failure: Failure | None = None

    def admit(self) -> None:
        """Skip the call if its plug-in is left out at this tick. Once a tick."""
        refusal = self.breaker.refuses()
        if refusal is not None:
            self.skip("disabled", refusal)

    def attempt(self, function: Callable[[], Any]) -> PluginOutcome:
        """Call, look at, and convert; whatever the plug-in's own objects do, they do in here."""
        try:
            value = function()
            if type(value) not in PLAIN and inspect.isawaitable(value):
                return PluginOutcome(value, pending=True)
            return PluginOutcome(value if self.convert is None else self.convert(value))
        except BaseException as error:  # SystemExit of a plug-in must not reach the host either
            return failed(error)

    def settle(self, outcome: PluginOutcome) -> None:
        """Take what came of it."""
        self.value, self.pending, self.error = outcome.value, outcome.pending, outcome.error
        if outcome.error is not None:
            self.failure = Failure(self.source, type(outcome.error).__name__, outcome.message)
        if not outcome.pending:
            self.breaker.ended()

    def time_out(self, seconds: float, *, running: bool) -> None:
        """Take that the time is over."""
        self.breaker.overran(running=running)
        self.pending, self.value = False, None
        self.failure = Failure(self.source, "timeout", f"no result after {seconds:.2g} s; it is left out for a while")

    def skip(self, kind: str, message: str) -> None:
        """Take that the call is not made."""
        self.failure = Failure(self.source, kind, message)


def failed(error: BaseException) -> PluginOutcome:
    """Return the outcome of an exception, whatever its text does."""
    from coherence.core.redact import short_message  # whose modules ask strangers by calls

    try:
        message = short_message(str.__str__(str(error))) or "no message"
    except BaseException:
        message = "its message cannot be shown"
    return PluginOutcome(error=error, message=message)


GRACE = 0.05
"""Seconds that cancelled coroutines, and the kept loop, are given beyond the limit to come to an end."""


def discard(value: object) -> None:
    """Close a coroutine that nobody will await."""
    if inspect.iscoroutine(value):
        value.close()
