"""Clients that one generator makes: ``openai`` and ``anthropic``. Every call passes ``client.request``.

The client is copied by its own ``copy``. Of the copy, ``request`` and ``copy`` are ours, and its HTTP client has a
stand-in that sees each attempt. Answers are read as bytes, so that the objects that a user gets are the SDK's own.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from typing import Any, Protocol

import msgspec

from coherence.core.errors import CoherenceBlocked
from coherence.integrations.anthropic_wire import MessagesWire
from coherence.integrations.conversation import Answer, Json, Turn, Wire, events_of
from coherence.integrations.openai_wire import ChatWire, ResponsesWire
from coherence.integrations.watch import Watch

CLIENTS = (
    "openai.OpenAI, AsyncOpenAI, AzureOpenAI, AsyncAzureOpenAI; "
    "anthropic.Anthropic, AsyncAnthropic and those of its clouds"
)


class ByteWire(Wire, Protocol):
    """Format of an API whose streams are read as bytes."""

    END: re.Pattern[bytes]
    """Beginning of the event of a stream by which the answer is whole."""
    CALLS: re.Pattern[bytes]
    """Bytes without which an answer has no call."""


WIRES: dict[str, ByteWire] = {
    "/chat/completions": ChatWire(),
    "/responses": ResponsesWire(),
    "/v1/messages": MessagesWire(),
}
"""Path of an endpoint -> its format; all others are left alone."""

LOOK_BACK = 64
"""Bytes before a chunk in which the end of a stream may begin."""

EVENT_ENDS = (b"\n\n", b"\r\n\r\n")


class Exchange:
    """One request and its answer.

    Where nothing waits for a decision, the request, and an answer without calls, are read behind the host's back.
    """

    def __init__(self, watch: Watch, wire: ByteWire, body: Json) -> None:
        self.wire = wire
        self._watch = watch
        self._turn: Turn | None = None
        self._untaken: Json | None = body
        """The request, until its bytes are there."""
        self._waits = watch.asks
        if self._waits:
            self._take(body)
        self.told = ""
        """Text that was added to the request."""
        self._attempts: list[str] = []
        self._began = time.monotonic()
        self.body: bytes | None = None
        """An answer that was read at once."""
        self.settled = self.is_tapped = False
        self._spent = False

    def begin(self) -> None:
        """Start to measure the time that the answer takes, with all attempts."""
        self._began = time.monotonic()

    @property
    def turn(self) -> Turn:
        """The request as it was recorded."""
        if self._untaken is not None:
            self._take(self._untaken)
        if self._turn is None:
            self._watch.monitor.deferred.settle()
        return self._turn or Turn("")

    def sent(self, request: Any) -> None:
        """Have a request be recorded, at its first attempt: its bytes do not change any more."""
        if self._untaken is None:
            return
        try:
            raw: bytes = request.content
        except Exception:  # bytes that are not in memory
            self._take(self._untaken)
            return
        self._untaken = None
        self._watch.monitor.record_later(lambda: self._take_bytes(raw), size=len(raw))

    def _take_bytes(self, raw: bytes) -> None:
        try:
            self._take(msgspec.json.decode(raw))
        except Exception as error:
            self.broken(error)

    def _take(self, body: Json) -> None:
        self._untaken = None
        self._turn = self._watch.asked(self.wire, body)

    def attempted(self, what: str, *, arrived: bool) -> None:
        """Count an attempt, by its status or error; the one that arrived comes last."""
        self._attempts.append(what)
        if arrived:
            self._watch.arrived(self.told)
            if len(self._attempts) > 1:
                self._watch.monitor.note(
                    f"the model was asked {len(self._attempts)} times: {', '.join(self._attempts)}"
                )

    def failed(self, error: BaseException) -> None:
        """Record that no answer came."""
        if self._untaken is not None:  # it was never sent
            self._take(self._untaken)
        tried = f" after {len(self._attempts)} attempts" if len(self._attempts) > 1 else ""
        self._watch.monitor.fault("model", f"{type(error).__name__}{tried}: {error}")

    def read(self, raw: bytes, *, streamed: bool) -> Answer:
        """Return the answer of its bytes."""
        value = self.wire.assemble(events_of(raw)) if streamed else msgspec.json.decode(raw)
        answer = self.wire.answer(value, self.turn.begun)
        return answer._replace(duration_s=time.monotonic() - self._began)

    def read_later(self) -> bool:
        """Have an answer that was read at once be recorded behind the host's back; return False if it cannot wait."""
        raw = self.body
        if raw is None or self._waits or self.wire.CALLS.search(raw):
            return False
        lasted = time.monotonic() - self._began
        self.settled = self._spent = True
        self._watch.monitor.record_later(lambda: self._record(raw, lasted), size=len(raw))
        return True

    def _record(self, raw: bytes, duration_s: float) -> None:
        try:
            answer = self.read(raw, streamed=False)._replace(duration_s=duration_s)
            self._watch.conversation.answered(answer, self.turn)
        except Exception as error:
            self.broken(error)

    def settle(self, answer: Answer) -> None:
        """Record an answer; raise CoherenceBlocked if one of its calls must not run."""
        self.settled, self._spent = True, answer.has_usage
        refused = self._watch.conversation.answered(answer, self.turn)
        if refused:
            raise self._watch.blocked(refused)

    def end(self, raw: bytes, *, streamed: bool) -> None:
        """Record what remains when the last of a stream was read, or nobody reads on."""
        if self.settled and (self._spent or not streamed):
            return
        answer = self.read(raw, streamed=streamed) if raw else Answer("", finished=False)
        if self.settled:
            self._spent = True
            self._watch.conversation.spent(answer)
        elif streamed and answer.finished:
            # It has its end, only nobody has waited for the event that says so; it is too late to refuse.
            self.settled, self._spent = True, True
            self._watch.conversation.answered(answer, self.turn)
        else:
            self.settled = self._spent = True
            self._watch.conversation.abandoned(answer)

    def broken(self, error: Exception) -> None:
        """Record that something of this package failed; the host goes on."""
        self._watch.monitor.fault("wrap", error)


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("coherence_exchange", default=None)


async def _asettle(exchange: Exchange, answer: Answer) -> None:
    """Record an answer, on another thread if that waits for a measurement."""
    if answer.calls:
        await asyncio.to_thread(exchange.settle, answer)
    else:
        exchange.settle(answer)


@contextmanager
def _carrying(answer: Any) -> Iterator[None]:
    """Give an exception the answer that was refused."""
    try:
        yield
    except CoherenceBlocked as error:
        error.answer = answer
        raise


class Tap:
    """Reads a streamed response along, chunk by chunk, as its reader gets them."""

    def __init__(self, exchange: Exchange, response: Any) -> None:
        self._exchange = exchange
        self._streamed = "text/event-stream" in response.headers.get("content-type", "")
        self._raw = bytearray()
        self._looked = 0
        self._ending = -1
        self._inside = False
        """True while the next chunk is awaited: then a close of the response is the end of its bytes."""
        self._ended = False

    def whole(self, chunk: bytes) -> Answer | None:
        """Take a chunk in; return the answer if the chunk makes it whole. An empty one is the end of the bytes."""
        if self._exchange.settled:
            self._raw += chunk
            return None
        try:
            if chunk if self._streamed else not chunk:
                return self._read(chunk)
            self._raw += chunk
        except Exception as error:
            self._exchange.settled = True
            self._exchange.broken(error)
        return None

    def _read(self, chunk: bytes) -> Answer | None:
        self._raw += chunk
        if self._streamed:
            if self._ending < 0:
                found = self._exchange.wire.END.search(self._raw, max(0, self._looked - LOOK_BACK))
                self._looked = len(self._raw)
                if found is None:
                    return None
                self._ending = found.end()
            if not any(self._raw.find(end, self._ending) >= 0 for end in EVENT_ENDS):
                return None
        answer = self._exchange.read(bytes(self._raw), streamed=self._streamed)
        if self._streamed and not answer.finished:  # of several answers, another one goes on
            self._ending = -1
            return None
        return answer

    def end(self) -> None:
        """Record what remains, once."""
        if self._inside or self._ended:
            return
        self._ended = True
        try:
            self._exchange.end(bytes(self._raw), streamed=self._streamed)
        except Exception as error:
            self._exchange.broken(error)

    def chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks; raise CoherenceBlocked in place of the last one if a call must not run."""
        try:
            while True:
                self._inside = True
                try:
                    chunk = next(chunks, b"")
                finally:
                    self._inside = False
                if (answer := self.whole(chunk)) is not None:
                    try:
                        self._exchange.settle(answer)
                    except CoherenceBlocked:
                        self._inside = True
                        with suppress(Exception):  # nobody reads on, and the tokens come last
                            for rest in chunks:
                                self.whole(rest)
                        self._inside = False
                        raise
                if not chunk:
                    return
                yield chunk
        finally:
            self.end()

    async def achunks(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Do what :meth:`chunks` does in an event loop."""
        try:
            while True:
                self._inside = True
                try:
                    chunk = await anext(chunks, b"")
                finally:
                    self._inside = False
                if (answer := self.whole(chunk)) is not None:
                    try:
                        await _asettle(self._exchange, answer)
                    except CoherenceBlocked:
                        self._inside = True
                        with suppress(Exception):
                            async for rest in chunks:
                                self.whole(rest)
                        self._inside = False
                        raise
                if not chunk:
                    return
                yield chunk
        finally:
            self.end()


def _tap(response: Any, exchange: Exchange) -> None:
    """Have a response that is read piece by piece tell what was read."""
    tap = Tap(exchange, response)
    exchange.is_tapped = True
    iter_bytes, aiter_bytes = response.iter_bytes, response.aiter_bytes
    close, aclose = response.close, response.aclose

    def closed() -> None:
        close()
        tap.end()

    async def aclosed() -> None:
        await aclose()
        tap.end()

    response.iter_bytes = lambda *given, **named: tap.chunks(iter_bytes(*given, **named))
    response.aiter_bytes = lambda *given, **named: tap.achunks(aiter_bytes(*given, **named))
    response.close, response.aclose = closed, aclosed


class Http:
    """Stand-in of an HTTP client: the same connections, cookies and state, and each attempt is seen."""

    def __init__(self, http: Any) -> None:
        self.http = http
        self._is_async = hasattr(http, "aclose")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class that SDKs ask for."""
        return type(self.http)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.http, name)

    def send(self, request: Any, **options: Any) -> Any:
        """Send a request; return its response, as it is of an async client: to be awaited."""
        exchange = _EXCHANGE.get()
        if exchange is None:
            return self.http.send(request, **options)
        if self._is_async:
            return self._asend(exchange, request, options)
        exchange.sent(request)
        try:
            response = self.http.send(request, **options)
        except BaseException as error:
            exchange.attempted(type(error).__name__, arrived=False)
            raise
        return _seen(exchange, response, options)

    async def _asend(self, exchange: Exchange, request: Any, options: dict[str, Any]) -> Any:
        exchange.sent(request)
        try:
            response = await self.http.send(request, **options)
        except BaseException as error:
            exchange.attempted(type(error).__name__, arrived=False)
            raise
        return _seen(exchange, response, options)


def _seen(exchange: Exchange, response: Any, options: dict[str, Any]) -> Any:
    """Have an answer read when it is there; return it."""
    try:
        exchange.attempted(str(response.status_code), arrived=response.is_success)
        if response.is_success:
            if options.get("stream"):
                _tap(response, exchange)
            else:
                exchange.body = response.content
    except Exception as error:
        exchange.broken(error)
    return response


def wrapped(client: Any, watch: Watch, original: Any = None) -> Any:
    """Return a copy of a client that is watched.

    Parameters
    ----------
    client : object
        The client; not changed.
    watch : Watch
        Told of all that happens.
    original : object, optional
        What :func:`original_of` returns; default: ``client``.
    """
    made = client.copy(http_client=Http(client._client))
    _attach(made, watch, client if original is None else original)
    return made


def _attach(made: Any, watch: Watch, original: Any) -> None:
    kind = type(made)
    request = made.request
    is_async = inspect.iscoroutinefunction(kind.request)

    def copied(**options: Any) -> Any:
        if options.get("http_client") is not None:
            options["http_client"] = Http(options["http_client"])
        other = kind.copy(made, **options)
        _attach(other, watch, None)
        return other

    made.request = _async_request(request, watch) if is_async else _sync_request(request, watch)
    made.copy = made.with_options = copied
    made._coherence = watch, original


def watch_of(client: Any) -> Watch | None:
    """Return the watch of a client, ``None`` if it is not wrapped."""
    kept = getattr(client, "_coherence", None)
    return kept[0] if isinstance(kept, tuple) else None


def original_of(client: Any) -> Any:
    """Return a wrapped client as it was; of a copy with other options, one with these options."""
    original = client._coherence[1]
    return type(client).copy(client, http_client=client._client.http) if original is None else original


def is_client(client: Any) -> bool:
    """Return True for a client, as opposed to a part of one."""
    packages = {kind.__module__.partition(".")[0] for kind in client.__class__.__mro__}
    if not packages & {"openai", "anthropic"}:
        return False
    return callable(getattr(getattr(client, "_client", None), "send", None)) and callable(getattr(client, "copy", None))


def _begin(watch: Watch, options: Any) -> tuple[Exchange | None, Any]:
    """Begin the exchange of a request, ``None`` if it is none of a conversation; return it and the request's options.

    The options are the same ones, unless the messages can be read only once.
    """
    try:
        wire = WIRES.get(options.url.partition("?")[0]) if options.method.lower() == "post" else None
        body = options.json_data
        if wire is None or not isinstance(body, dict):
            return None, options
        for field in ("messages", "input"):
            given: Any = body.get(field)
            if hasattr(given, "__next__"):
                body = {**body, field: list(given)}
                options = copy(options)
                options.json_data = body
        return Exchange(watch, wire, body), options
    except Exception as error:
        watch.monitor.fault("wrap", error)
        return None, options


def _guided(exchange: Exchange, options: Any, text: str) -> Any:
    """Return the options of a request that tells the agent a text; the same ones if there is none."""
    if not text:
        return options
    try:
        body = exchange.wire.guided(options.json_data, text)
    except Exception as error:
        exchange.broken(error)
        return options
    exchange.told = text
    made = copy(options)
    made.json_data = body
    return made


def _body_answer(exchange: Exchange) -> Answer | None:
    """Return an answer that was read at once, ``None`` if there is none left to record or it cannot be read."""
    if exchange.is_tapped:
        return None
    try:
        if exchange.body is None:
            raise ValueError("an answer came from elsewhere than the API, and was not seen")
        if exchange.read_later():
            return None
        return exchange.read(exchange.body, streamed=False)
    except Exception as error:
        exchange.broken(error)
        return None


@contextmanager
def _under_way(exchange: Exchange) -> Iterator[None]:
    """Have what is sent meanwhile belong to an exchange, and record the error that ends it."""
    token = _EXCHANGE.set(exchange)
    exchange.begin()
    try:
        yield
    except CoherenceBlocked:
        raise
    except BaseException as error:
        exchange.failed(error)
        raise
    finally:
        _EXCHANGE.reset(token)


def _sync_request(request: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def watched(cast_to: Any, options: Any, **more: Any) -> Any:
        exchange, options = _begin(watch, options)
        if exchange is None:
            return request(cast_to, options, **more)
        options = _guided(exchange, options, watch.ask())
        with _under_way(exchange):
            answer = request(cast_to, options, **more)
        told = _body_answer(exchange)
        if told is not None:
            with _carrying(answer):
                exchange.settle(told)
        return answer

    return watched


def _async_request(request: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    async def watched(cast_to: Any, options: Any, **more: Any) -> Any:
        exchange, options = _begin(watch, options)
        if exchange is None:
            return await request(cast_to, options, **more)
        options = _guided(exchange, options, await watch.aask())
        with _under_way(exchange):
            answer = await request(cast_to, options, **more)
        told = _body_answer(exchange)
        if told is not None:
            with _carrying(answer):
                await _asettle(exchange, told)
        return answer

    return watched
