"""Clients of model providers whose calls are recorded, with one line of code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coherence.core.config import Budget, MonitorConfig
from coherence.core.plain import type_name
from coherence.core.validation import check_flag
from coherence.integrations import stainless
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.store.store import Store

C = TypeVar("C")

KNOWN = {
    "openai": "openai.OpenAI, AsyncOpenAI, AzureOpenAI, AsyncAzureOpenAI",
    "anthropic": "anthropic.Anthropic, AsyncAnthropic and those of its clouds",
}
"""Package -> its clients that can be wrapped."""


def wrap(
    client: C,
    *,
    agent: str = "agent",
    goal: str | None = None,
    store: str | Path | Store | None = None,
    guide: bool = False,
    monitor: Monitor | None = None,
    config: MonitorConfig | Mapping[str, Any] | str | Path | None = None,
    budget: Budget | Mapping[str, Any] | None = None,
) -> C:
    """Return a copy of a client whose conversations are recorded and measured.

    The copy shares the connections of the client, which is not changed. Chat Completions, Responses and Messages are
    watched; all other endpoints are left alone. Answers are the SDK's own objects, and without ``guide`` no byte of a
    request changes.

    Parameters
    ----------
    client : object
        A client of ``openai`` or ``anthropic``.
    agent : str
        Name of the agent; baselines and lessons belong to it.
    goal : str, optional
        Task of the agent; default: the first user message.
    store : path or Store, optional
        File that keeps everything.
    guide : bool
        Adds to a copy of a request what the decision has for the agent.
    monitor : Monitor, optional
        A monitor of yours, such as one of a fleet, in place of the five other arguments.
    config : MonitorConfig, mapping or path, optional
        Settings of the monitor.
    budget : Budget or mapping, optional
        Limits on tokens, money, time and calls; with one, a request waits for the measurement of the step before.

    Raises
    ------
    TypeError
        For an object that is none of the known clients.
    ValueError
        For a client that is wrapped already, and for a bad argument.

    Notes
    -----
    :class:`~coherence.core.errors.CoherenceBlocked` is raised by calls of the client: before a request is sent if a
    budget is used up, and after an answer one of whose calls must not run; of a stream, in place of its last event.
    """
    _check(client)
    if stainless.watch_of(client) is not None:
        raise ValueError("the client is wrapped already: coherence.unwrap(client) gives the one to wrap otherwise")
    check_flag("guide", guide)
    if monitor is None:
        monitor = Monitor(agent=agent, goal=goal, store=store, config=config, budget=budget, source="wrap")
    elif agent != "agent" or any(given is not None for given in (goal, store, config, budget)):
        raise ValueError("pass monitor= alone, or agent=, goal=, store=, config= and budget= for a new one")
    wrapped: C = stainless.wrapped(client, Watch(monitor, guide=guide))
    return wrapped


def unwrap(client: C) -> C:
    """Return the client that was wrapped; of a copy by ``with_options``, an unwatched one with these options.

    Raises
    ------
    TypeError
        For an object that is none of the known clients.
    ValueError
        For a client that is not wrapped.
    """
    _watch(client)
    original: C = stainless.original_of(client)
    return original


def monitor_of(client: object) -> Monitor:
    """Return the monitor of a wrapped client; close it when the agent ends.

    Raises
    ------
    TypeError
        For an object that is none of the known clients.
    ValueError
        For a client that is not wrapped.
    """
    return _watch(client).monitor


def _watch(client: object) -> Watch:
    _check(client)
    if (watch := stainless.watch_of(client)) is None:
        raise ValueError("the client is not wrapped: coherence.wrap(client) returns one that is")
    return watch


def _check(client: object) -> None:
    """Raise TypeError for what is none of the known clients."""
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    if not packages & KNOWN.keys() or not stainless.is_client(client):
        known = "; ".join(KNOWN.values())
        raise TypeError(f"client must be one of {known}; not {type_name(client)}. For others, feed a coherence.Monitor")
