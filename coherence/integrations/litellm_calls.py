"""LiteLLM: ``completion``, ``acompletion``, and routers, whose requests and answers are those of Chat Completions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

from coherence.integrations.calls import Api, Exchange, StandIn, Stream
from coherence.integrations.conversation import Json
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch

CLIENTS = "litellm.completion, litellm.acompletion, litellm.Router"

_NAMES = ("completion", "acompletion")


def is_client(client: Any) -> bool:
    """Return True for a function of ``litellm`` that asks a model, and for a router."""
    if inspect.isroutine(client):
        return _is_litellm(client) and client.__name__ in _NAMES
    return any(kind.__name__ == "Router" and _is_litellm(kind) for kind in client.__class__.__mro__)


def wrapped(client: Any, watch: Watch) -> Any:
    """Return a function like the one given, or a stand-in of a router, that is watched."""
    if inspect.isroutine(client):
        made: Any = _watched(client, watch)
        made._coherence = watch, client
        return made
    ours = {name: _watched(getattr(client, name), watch) for name in _NAMES}
    router = StandIn(client, **ours, _coherence=(watch, client))
    if (chat := getattr(client, "chat", None)) is not None:
        chat = copy(chat)
        chat.completions = copy(chat.completions)
        chat.completions.router_obj = router
        router.__dict__["chat"] = chat
    return router


def _is_litellm(made: Any) -> bool:
    return str(getattr(made, "__module__", "")).partition(".")[0] == "litellm"


def _watched(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    kinds = inspect.signature(function).parameters.values()
    # a router's functions take any arguments, in the order of the others
    names = [each.name for each in kinds if each.kind is each.POSITIONAL_OR_KEYWORD] or ["model", "messages"]

    @wraps(function)
    def completion(*given: Any, **named: Any) -> Any:
        exchange = Exchange(watch, _API, {**dict(zip(names, given, strict=False)), **named})
        asks = exchange.asks()
        with exchange.under_way():
            answer = function(**asks)
        if hasattr(answer, "__next__"):
            return Stream(answer, exchange)
        exchange.came(answer)
        return answer

    @wraps(function)
    async def acompletion(*given: Any, **named: Any) -> Any:
        exchange = Exchange(watch, _API, {**dict(zip(names, given, strict=False)), **named})
        asks = await exchange.aasks()
        with exchange.under_way():
            answer = await function(**asks)
        if hasattr(answer, "__anext__"):
            return Stream(answer, exchange)
        await exchange.acame(answer)
        return answer

    return acompletion if inspect.iscoroutinefunction(function) else completion


def _value(answer: Any) -> Json:
    value: Json = answer.model_dump(exclude_none=True, warnings=False)
    return value


def _ends(chunk: Any) -> bool:
    return any(choice.finish_reason for choice in chunk.choices)


_API = Api(ChatWire(), _value, _ends)
