"""Clients of model providers whose calls are recorded, with one line of code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from coherence.core.config import Budget, MonitorConfig
from coherence.core.plain import type_name
from coherence.core.validation import check_flag
from coherence.integrations import bedrock, google_genai, litellm_calls, stainless
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.store.store import Store

C = TypeVar("C")

KNOWN = (stainless, litellm_calls, bedrock, google_genai)
"""Modules that each know some clients, and import nothing of their packages."""


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

    The copy shares the connections of the client, which is not changed. Chat Completions, Responses, Messages, Converse
    and ``generate_content`` are watched; all other endpoints are left alone. Answers are the SDK's own objects, and
    without ``guide`` no byte of a request changes.

    Parameters
    ----------
    client : object
        A client of ``openai`` or ``anthropic``, ``litellm.completion``, ``litellm.acompletion`` or a router of
        ``litellm``, a ``bedrock-runtime`` client of ``boto3``, or a ``google.genai.Client``.
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
    module = _module_of(client)
    if stainless.watch_of(client) is not None:
        raise ValueError("the client is wrapped already: coherence.unwrap(client) gives the one to wrap otherwise")
    check_flag("guide", guide)
    if monitor is None:
        monitor = Monitor(agent=agent, goal=goal, store=store, config=config, budget=budget, source="wrap")
    elif agent != "agent" or any(given is not None for given in (goal, store, config, budget)):
        raise ValueError("pass monitor= alone, or agent=, goal=, store=, config= and budget= for a new one")
    wrapped: C = module.wrapped(client, Watch(monitor, guide=guide))
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
    _module_of(client)
    if (watch := stainless.watch_of(client)) is None:
        raise ValueError("the client is not wrapped: coherence.wrap(client) returns one that is")
    return watch


def _module_of(client: object) -> Any:
    """Return the module that knows a client; raise TypeError for what is none of the known clients."""
    for module in KNOWN:
        if module.is_client(client):
            return module
    known = "; ".join(module.CLIENTS for module in KNOWN)
    raise TypeError(f"client must be one of {known}; not {type_name(client)}. For others, feed a coherence.Monitor")
