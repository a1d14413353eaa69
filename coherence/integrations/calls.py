"""Functions of an SDK that ask a model: a request by keyword arguments, an answer at once or in chunks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from coherence.core.errors import CoherenceBlocked
from coherence.integrations.conversation import Answer, Json, Wire
from coherence.integrations.watch import Watch


class Api(NamedTuple):
    """Format of a function's requests, and of what it returns."""

    wire: Wire
    value: Callable[[Any], Json]
    """JSON of an answer, or of a chunk, as ``wire`` reads it."""
    ends: Callable[[Any], bool]
    """True for a chunk with which the answer may be whole."""
    calls: Callable[[Any], bool] = lambda chunk: False
    """True for a chunk with a whole call, which may be run at once: it waits until the answer is whole."""


class Exchange:
    """One request and its answer.

    Parameters
    ----------
    watch : Watch
        Told of all that happens.
    api : Api
        The format.
    body : mapping
        The keyword arguments of the call; not changed.
    """

    def __init__(self, watch: Watch, api: Api, body: Json) -> None:
        self._watch, self._api, self._body = watch, api, body
        self._turn = watch.asked(api.wire, body)
        self._told = ""
        self._began = time.monotonic()
        self._chunks: list[Any] = []
        self._held: list[Any] = []
        self._settled = self._spent = self._ended = False

    def asks(self) -> Json:
        """Return the request to send; raise CoherenceBlocked for a used-up budget."""
        return self._guided(self._watch.ask())

    async def aasks(self) -> Json:
        """Do what :meth:`asks` does in an event loop."""
        return self._guided(await self._watch.aask())

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Record the error that ends the call."""
        try:
            yield
        except (CoherenceBlocked, GeneratorExit):
            raise
        except BaseException as error:
            self._watch.failed(error)
            raise

    def came(self, value: Any) -> None:
        """Record an answer; raise CoherenceBlocked if one of its calls must not run."""
        self._watch.arrived(self._told)
        if (answer := self._whole(lambda: self._api.value(value))) is not None:
            self._settle(answer, value)

    async def acame(self, value: Any) -> None:
        """Do what :meth:`came` does in an event loop."""
        self._watch.arrived(self._told)
        if (answer := self._whole(lambda: self._api.value(value))) is not None:
            await self._asettle(answer, value)

    def chunks(self, stream: Iterator[Any]) -> Iterator[Any]:
        """Yield the chunks; raise CoherenceBlocked in place of the last one if a call must not run."""
        try:
            with self.under_way():
                for chunk in stream:
                    if (answer := self._taken(chunk)) is not None:
                        try:
                            self._settle(answer)
                        except CoherenceBlocked:
                            with suppress(Exception):  # nobody reads on, and the tokens come last
                                self._chunks.extend(stream)
                            raise
                    yield from self._free(chunk)
                if (answer := self._rest()) is not None:
                    self._settle(answer)
                yield from self._held
        finally:
            self.end()

    async def achunks(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Do what :meth:`chunks` does in an event loop."""
        try:
            with self.under_way():
                async for chunk in stream:
                    if (answer := self._taken(chunk)) is not None:
                        try:
                            await self._asettle(answer)
                        except CoherenceBlocked:
                            with suppress(Exception):
                                self._chunks.extend([rest async for rest in stream])
                            raise
                    for free in self._free(chunk):
                        yield free
                if (answer := self._rest()) is not None:
                    await self._asettle(answer)
                for held in self._held:
                    yield held
        finally:
            self.end()

    def end(self) -> None:
        """Record what remains when the last chunk was read, or nobody reads on."""
        if self._ended:
            return
        self._ended = True
        if self._spent or (answer := self._whole(self._assembled)) is None:
            return
        if self._settled:
            self._watch.conversation.spent(answer)
        else:
            self._watch.conversation.abandoned(answer._replace(finished=False))

    def _guided(self, text: str) -> Json:
        """Return the request that tells the agent a text; the same one if there is none. The answer's time begins."""
        self._began = time.monotonic()
        if not text:
            return self._body
        try:
            body = self._api.wire.guided(self._body, text)
        except Exception as error:  # the host goes on
            self._watch.monitor.fault("wrap", error)
            return self._body
        self._told = text
        return body

    def _taken(self, chunk: Any) -> Answer | None:
        """Take a chunk in; return the answer if the chunk makes it whole."""
        if not self._chunks:
            self._watch.arrived(self._told)
        self._chunks.append(chunk)
        try:
            if self._settled or not self._api.ends(chunk):
                return None
        except Exception as error:
            self._watch.monitor.fault("wrap", error)
            self._settled = self._spent = True
            return None
        answer = self._whole(self._assembled)
        return answer if answer is not None and answer.finished else None

    def _free(self, chunk: Any) -> list[Any]:
        """Return the chunks that are handed on now: none from the first call on, until the answer is settled."""
        if not self._settled and (self._held or self._api.calls(chunk)):
            self._held.append(chunk)
            return []
        free, self._held = [*self._held, chunk], []
        return free

    def _rest(self) -> Answer | None:
        """Return the answer of a stream that has come to its end and told no reason."""
        return None if self._settled else self._whole(self._assembled)

    def _assembled(self) -> Json:
        return self._api.wire.assemble(self._api.value(chunk) for chunk in self._chunks)

    def _whole(self, value: Callable[[], Json]) -> Answer | None:
        """Return an answer, ``None`` if it cannot be read."""
        try:
            answer = self._api.wire.answer(value(), self._turn.begun)
            model = answer.model or self._body.get("modelId") or self._body.get("model")
            return answer._replace(model=model, duration_s=time.monotonic() - self._began)
        except Exception as error:
            self._settled = self._spent = True
            self._watch.monitor.fault("wrap", error)
            return None

    def _settle(self, answer: Answer, value: Any = None) -> None:
        self._settled, self._spent = True, answer.has_usage
        try:
            refused = self._watch.conversation.answered(answer, self._turn)
        except Exception as error:
            self._watch.monitor.fault("wrap", error)
            return
        if refused:
            blocked = self._watch.blocked(refused)
            blocked.answer = value
            raise blocked

    async def _asettle(self, answer: Answer, value: Any = None) -> None:
        """Record an answer, on another thread if that waits for a measurement."""
        if answer.calls:
            await asyncio.to_thread(self._settle, answer, value)
        else:
            self._settle(answer, value)


class StandIn:
    """An object in place of another one: of its class, with its attributes, but for ours.

    Parameters
    ----------
    inner : object
        The other one; attributes that are set are set there.
    **ours
        Attributes in place of its own.
    """

    def __init__(self, inner: Any, **ours: Any) -> None:
        self.__dict__.update(ours, _inner=inner)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class that SDKs ask for."""
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def __enter__(self) -> StandIn:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._inner.__exit__(*error)

    async def __aenter__(self) -> StandIn:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class Stream(StandIn):
    """A stream of the SDK that is read along."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        ours: dict[str, Any] = {"_exchange": exchange, "_chunks": exchange.chunks(iter(stream))}
        if hasattr(stream, "__aiter__"):
            ours["_achunks"] = exchange.achunks(aiter(stream))
        super().__init__(stream, **ours)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._achunks)

    def close(self) -> None:
        """Close the stream, and record what was said so far."""
        self._inner.close()
        self._exchange.end()

    async def aclose(self) -> None:
        """Do what :meth:`close` does in an event loop."""
        await self._inner.aclose()
        self._exchange.end()

    def __exit__(self, *error: Any) -> Any:
        self.close()

    async def __aexit__(self, *error: Any) -> Any:
        await self.aclose()
