"""Collaborators of a guard: who owns the configuration, proposes patches, is notified. None is async."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import CoroutineType
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from coherence.guard.patch_events import Notice
from coherence.guard.traces import Trace

T = TypeVar("T")


class NotAwaitedError(TypeError):
    """A function that looked plain has returned something that must still be awaited."""


def refuse_async(name: str, function: object) -> None:
    """Refuse a coroutine function, an async generator function, and an object whose call is one.

    Raises
    ------
    TypeError
        With what to do instead.

    Examples
    --------
    >>> async def tell(notice): ...
    >>> refuse_async("notifier", tell)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    TypeError: notifier must not be async: nobody would await it. Write a plain function...
    """
    while isinstance(function, functools.partial):
        function = function.func
    for called in (function, getattr(type(function), "__call__", None)):  # noqa: B004 - its kind is looked at
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            raise TypeError(
                f"{name} must not be async: nobody would await it. Write a plain function; one of an adapter, a"
                " strategy or a notifier may wait for asyncio.run_coroutine_threadsafe(..., loop).result()"
            )


def not_awaited(value: T, name: str) -> T:
    """Return what a function returned, unless it is to be awaited; a coroutine is closed, so that nothing warns of it.

    Raises
    ------
    NotAwaitedError
        If it is.

    Examples
    --------
    >>> not_awaited({"retries": 2}, "analyze")
    {'retries': 2}
    """
    if not isinstance(value, Awaitable):
        return value
    if isinstance(value, CoroutineType):
        value.close()
        raise NotAwaitedError(f"{name} returned a coroutine: it must not be async")
    raise NotAwaitedError(
        f"{name} returned what is to be awaited, of type {type(value).__name__}: it must not be async"
    )


ADAPTER = ("get_config", "apply_config", "rollback_config")
"""The methods of a :class:`ConfigAdapter`."""


@runtime_checkable
class ConfigAdapter(Protocol):
    """Owns the real configuration of agents. Methods are called with keywords, on a thread of the guard; none is async.

    Its answers are checked: after each change the configuration is read again, and must show at once what was done.

    An adapter with ``serves_both = True`` is asked to apply a patch only once the patch is confirmed. Until then, the
    calls that use the patch read it by :func:`~coherence.guard.context.current_patch`.
    """

    def get_config(self, *, agent_id: str) -> Mapping[str, Any]:
        """Return the configuration in force, in plain JSON values."""
        ...

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        """Lay a patch over the configuration, table by table, and return True; all other keys stay.

        Anything but a true value, and every exception, means that the patch is not applied and that nothing has
        changed. If the configuration shows something else, it is restored, and the patch is given up.
        """
        ...

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
        """Put a configuration in force as a whole; remove keys that it does not have.

        ``backup_config`` is the configuration in force, with the keys of the patch as they were before the patch, so
        that other changes made meanwhile stay. If :meth:`get_config` fails, it is the configuration before the patch.
        ``False``, an exception, or a configuration that still shows the patch means that nothing was restored; the
        guard then tries again.
        """
        ...


@runtime_checkable
class Strategy(Protocol):
    """Proposes patches."""

    def analyze(
        self, *, agent_id: str, traces: Sequence[Trace], before_metrics: Mapping[str, float | None]
    ) -> Mapping[str, Any] | None:
        """Return a patch, or None.

        Parameters
        ----------
        agent_id : str
            Name of the agent whose failures called for a patch.
        traces : sequence of Trace
            Its newest calls, at most 100, oldest first.
        before_metrics : mapping
            Measures of these calls: ``calls``, ``success_rate``, ``consecutive_failures``, ``mean_latency_s``,
            ``total_cost`` (of these calls, in the unit of ``cost_of``), ``coherence_index``, and what the
            guard's ``measures`` returns.
        """
        ...


@runtime_checkable
class Notifier(Protocol):
    """Receives a notice of each step of a patch, on a thread of the guard."""

    def notify(self, event: Notice) -> object:
        """Take in one notice."""
        ...


Notify: TypeAlias = Notifier | Callable[[Notice], object]
"""A notifier, or a function of one notice."""


def check_methods(name: str, given: object, needed: Sequence[str]) -> None:
    """Raise TypeError that names the parameter unless what was given, if anything, has all methods, none async."""
    missing = next((method for method in needed if not callable(getattr(given, method, None))), None)
    if given is not None and missing is not None:
        raise TypeError(f"{name}: a {type(given).__name__} has no method {missing}")
    for method in needed if given is not None else ():
        refuse_async(f"{name}.{method}", getattr(given, method))


def check_notifier(notifier: object) -> None:
    """Raise TypeError unless a notifier, if there is one, can be called or has a method notify, and is not async."""
    notify = getattr(notifier, "notify", notifier)
    if notifier is not None and not callable(notify):
        raise TypeError("notifier must be callable or have a method notify")
    refuse_async("notifier" if notify is notifier else "notifier.notify", notify)
