"""Asking strangers' values: their code runs on a worker for a limited time, and whatever it does becomes a failure.

A value of a plain type is read in place; see :mod:`coherence.core.plain`. Any other may run code of its class while it
is read: ``__str__`` may raise, exit or hang. A type that hung is left out for a while, so that a thousand of its values
do not hold the host up a thousand times.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from coherence.core.plain import has_plain_text, type_name

if TYPE_CHECKING:
    from coherence.core.calls import Breaker, PluginCall
    from coherence.core.readings import Failure

WAIT_S = 2.0
"""Seconds that the values of one argument may take to be read, if nobody has set another limit."""

LEAST_S = 0.1
"""Seconds that they may take at least: starting a thread on a busy machine takes some."""

MAX_RUNNING = 16
"""Threads that strangers may hold for good; after that no stranger is asked any more until one comes back."""

MAX_KNOWN = 256
"""Types that are remembered because they hung."""


class Asking(NamedTuple):
    """Limit under which a thread asks strangers, and where it reports what fails."""

    wait_s: float = WAIT_S
    fault: Callable[[str, Failure], object] | None = None
    """Takes the name of the argument, and the failure."""


class _Thread(threading.local):
    asking = Asking()
    is_worker = False


THREAD = _Thread()
"""Way in which this thread asks; whoever sets it sets it back."""

_hung: dict[int, tuple[type, Breaker]] = {}
"""Types that hung, by their id; they are held, so that no other type gets the id."""


def ask(value: object, read: Callable[[], Any]) -> PluginCall:
    """Read one value; see :func:`ask_each`.

    Examples
    --------
    >>> ask(object(), lambda: 1 / 0).failure.kind
    'ZeroDivisionError'
    """
    return ask_each([(value, read)])[0]


def ask_each(readings: Sequence[tuple[object, Callable[[], Any]]]) -> list[PluginCall]:
    """Read values one after the other on a worker; return one call each, with a ``value`` or a ``failure``.

    Parameters
    ----------
    readings : sequence of pairs
        A value, and the function that reads it and returns plain data. If it hangs, its type is left out for a while.
    """
    from coherence.core.calls import Breaker, PluginCall
    from coherence.core.plugin_calls import run_calls

    found: dict[int, tuple[type, Breaker]] = {}
    calls = []
    for value, read in readings:
        kind = type(value)
        breaker = (_hung.get(id(kind)) or found.setdefault(id(kind), (kind, Breaker())))[1]
        calls.append(PluginCall(type_name(value), _once(read, breaker), breaker))
    if THREAD.is_worker:  # a stranger that is being read has handed over another one
        for call in calls:
            call.settle(call.attempt(call.function))
        return calls
    if sum(breaker.running for _, breaker in list(_hung.values())) >= MAX_RUNNING:
        for call in calls:
            call.skip("disabled", f"left out: {MAX_RUNNING} earlier calls are still running")
        return calls
    run_calls(calls, max(THREAD.asking.wait_s, LEAST_S))
    for key, (kind, breaker) in found.items():
        if breaker.running or breaker.rest:
            _remember(key, kind, breaker)
    return calls


def _once(read: Callable[[], Any], breaker: Breaker) -> Callable[[], Any]:
    def reading() -> Any:
        if breaker.running:  # another value of the type hangs in the same argument
            raise TimeoutError("left out: a value of its type hangs")
        THREAD.is_worker = True
        try:
            return read()
        finally:
            THREAD.is_worker = False

    return reading


def _remember(key: int, kind: type, breaker: Breaker) -> None:
    if len(_hung) >= MAX_KNOWN:
        forgotten = next((known for known, (_, other) in list(_hung.items()) if not other.running), None)
        if forgotten is not None:
            _hung.pop(forgotten, None)
    _hung.setdefault(key, (kind, breaker))


@contextmanager
def asking(how: Asking) -> Iterator[None]:
    """Ask strangers in another way for a while."""
    before, THREAD.asking = THREAD.asking, how
    try:
        yield
    finally:
        THREAD.asking = before


def report(field: str, calls: Sequence[PluginCall]) -> None:
    """Report the first failure among calls to whoever asks; one that was left out has been reported before."""
    fault = THREAD.asking.fault
    first = next((call.failure for call in calls if call.failure is not None and call.failure.kind != "disabled"), None)
    if first is not None and fault is not None:
        fault(field, first)


def error_text(error: BaseException) -> str | None:
    """Return the text of an exception, ``None`` if it cannot be read.

    Examples
    --------
    >>> error_text(ValueError("no"))
    'no'
    """
    if has_plain_text(error):
        return str(error)
    text: str | None = ask(error, lambda: str.__str__(str(error))).value
    return text


def _after_fork() -> None:
    """Forget what hung in the parent: its threads do not exist in a forked child."""
    _hung.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
