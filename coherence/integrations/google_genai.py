"""google-genai: ``generate_content`` and its stream, sync and async, called by the user, by chats and by the SDK.

The SDK asks again by itself where its tools are functions of the user, so what it calls for each request is watched.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from copy import copy
from typing import Any

from coherence.integrations.calls import Api, Exchange, StandIn
from coherence.integrations.conversation import Json
from coherence.integrations.gemini_wire import GeminiWire
from coherence.integrations.watch import Watch

CLIENTS = "google.genai.Client"

_READ = {"candidates", "model_version", "response_id", "usage_metadata"}


def is_client(client: Any) -> bool:
    """Return True for a client of ``google.genai``."""
    return any(
        kind.__module__ == "google.genai.client" and kind.__name__ == "Client" for kind in client.__class__.__mro__
    )


def wrapped(client: Any, watch: Watch) -> Any:
    """Return a stand-in of a client that is watched."""
    models, amodels = _watched(client.models, watch), _awatched(client.aio.models, watch)
    aio = StandIn(client.aio, models=amodels, chats=type(client.aio.chats)(modules=amodels))
    return StandIn(
        client,
        models=models,
        chats=type(client.chats)(modules=models),
        aio=aio,
        _coherence=(watch, client),
    )


def _watched(models: Any, watch: Watch) -> Any:
    """Return a copy of models each of whose requests is watched."""
    names = _names(models)
    ask, stream = (getattr(models, name) for name in names)

    def asked(**body: Any) -> Any:
        exchange = Exchange(watch, _API, body)
        asks = exchange.asks()
        with exchange.under_way():
            answer = ask(**asks)
        exchange.came(answer)
        return answer

    def streamed(**body: Any) -> Iterator[Any]:
        exchange = Exchange(watch, _API, body)
        yield from exchange.chunks(stream(**exchange.asks()))

    return _with(models, names, asked, streamed)


def _awatched(models: Any, watch: Watch) -> Any:
    """Do what :func:`_watched` does for the models of an event loop."""
    names = _names(models)
    ask, stream = (getattr(models, name) for name in names)

    async def asked(**body: Any) -> Any:
        exchange = Exchange(watch, _API, body)
        asks = await exchange.aasks()
        with exchange.under_way():
            answer = await ask(**asks)
        await exchange.acame(answer)
        return answer

    async def streamed(**body: Any) -> AsyncIterator[Any]:
        exchange = Exchange(watch, _API, body)
        opened = stream(**await exchange.aasks())
        if inspect.isawaitable(opened):
            with exchange.under_way():
                opened = await opened
        async for chunk in exchange.achunks(opened):
            yield chunk

    async def opens(**body: Any) -> AsyncIterator[Any]:
        return streamed(**body)

    return _with(models, names, asked, streamed if inspect.isasyncgenfunction(stream) else opens)


def _names(models: Any) -> tuple[str, str]:
    """Return the names of the methods that ask once: the SDK joins pieces of an answer there, or is too old to."""
    plain = "_generate_content_with_continuation"
    if hasattr(models, plain):
        return plain, "_generate_content_stream_with_continuation"
    return "_generate_content", "_generate_content_stream"


def _with(models: Any, names: tuple[str, str], *ours: Any) -> Any:
    """Return a copy of models with other methods."""
    made = copy(models)
    for name, method in zip(names, ours, strict=True):
        setattr(made, name, method)
    return made


def _value(answer: Any) -> Json:
    value: Json = answer.model_dump(exclude_none=True, include=_READ, warnings=False)
    return value


def _ends(chunk: Any) -> bool:
    return any(candidate.finish_reason for candidate in chunk.candidates or ())


def _calls(chunk: Any) -> bool:
    contents = [candidate.content for candidate in chunk.candidates or ()]
    return any(part.function_call for content in contents if content for part in content.parts or ())


_API = Api(GeminiWire(), _value, _ends, _calls)
