"""Requests to a model as events: each request repeats the conversation so far, each event is recorded once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from coherence.core.decisions import Decision
from coherence.detect.failure_cues import FAILED, failure_of
from coherence.detect.fingerprints import trace_call
from coherence.monitor.monitor import Monitor
from coherence.providers.transcript import TranscriptCall

MAX_KEPT = 10_000
"""Answers, calls and results of a client that are remembered; the oldest are forgotten."""

Json: TypeAlias = Mapping[str, Any]

UNREADABLE = (ValueError, TypeError, AttributeError)
"""Errors of what is no message of the API."""


class Said(NamedTuple):
    """A message of a request."""

    role: str
    text: str
    calls: tuple[TranscriptCall, ...] = ()


class Result(NamedTuple):
    """The result of a tool in a request."""

    call: str | None
    text: str
    error: bool | None = None
    """``None`` where the API has no flag: then the text tells."""
    tool: str | None = None


class Answer(NamedTuple):
    """An answer of a model."""

    text: str
    calls: tuple[TranscriptCall, ...] = ()
    """Calls that the client is asked to run."""
    served: tuple[Said | Result, ...] = ()
    """Calls that the provider has run itself, and their results."""
    keys: tuple[str, ...] = ()
    """Marks by which a later request that repeats the answer is known."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    model: str | None = None
    id: str | None = None
    finished: bool = True
    """False if the model had not come to its end."""
    duration_s: float | None = None
    """Time from the request to the end of the answer, in seconds."""

    @property
    def has_usage(self) -> bool:
        """Return True if the provider has told the tokens."""
        return self.tokens_in is not None or self.tokens_out is not None


class Turn(NamedTuple):
    """A request that was recorded."""

    follows: str
    """Mark of the answer that it follows; empty for none."""
    begun: str = ""
    """Beginning of the answer that it gives."""


class Refused(NamedTuple):
    """A call that must not run."""

    tool: str
    decision: Decision
    call: str | None = None
    """Id of the call."""


class Wire(Protocol):
    """Format of one API."""

    def items(self, body: Json) -> Sequence[Any]:
        """Return the messages of a request."""

    def system(self, body: Json) -> str:
        """Return the text that the host gives the agent beside the messages."""

    def follows(self, body: Json) -> str | None:
        """Return the mark of the answer that a request continues, where the provider keeps the conversation."""

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the marks of an answer that a request repeats; empty for an item that no model has made."""

    def read(self, item: Json) -> Iterable[Said | Result]:
        """Yield what an item tells."""

    def begins(self, item: Json) -> bool:
        """Return True if an item at the end of a request is the beginning of the answer."""

    def answer(self, value: Json, begun: str = "") -> Answer:
        """Return an answer, behind its beginning that the request gave."""

    def assemble(self, events: Iterable[Json]) -> Json:
        """Put the events of a stream together to the answer that a client without streaming is given."""

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        """Return a copy of a request that tells the agent a text."""


class Conversation:
    """The conversations that one client has, as events of a monitor. All methods may be called from any thread.

    A request is compared with what was recorded: the newest answer in it that is known is found by its marks, and what
    follows is new. What a request without an answer told (one that failed, was refused or was abandoned) counts once if
    the next one tells it again.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._answers: dict[str, None] = {}
        self._open: dict[str, list[bytes]] = {}
        self._calls: dict[str, TranscriptCall] = {}
        self._results: dict[str, None] = {}
        self._told: dict[bytes, None] = {}
        self._unnamed: list[TranscriptCall] = []
        """Calls of the newest answer that the model gave no ids, with ours; their results come in the same order."""

    def take(self, wire: Wire, body: Json) -> Turn:
        """Record what is new in a request, but not the beginning of an answer, which is told with the answer."""
        items = wire.items(body)
        with self._alone():
            self._tell_host(wire.system(body))
            at, anchor = self._newest(wire, items)
            if not anchor and (before := wire.follows(body)) is not None:
                anchor = before
            new = [plain(item) for item in items[at:]]
            begun = ""
            if new and wire.begins(new[-1]):
                begun = "".join(told.text for told in wire.read(new.pop()) if isinstance(told, Said))
            digests = [_digest(item) for item in new]
            known = self._open.get(anchor, [])
            same = 0
            while same < min(len(known), len(digests)) and known[same] == digests[same]:
                same += 1
            since = 0
            for number, item in enumerate(new[same:], same + 1):
                if keys := self._tell(wire, item):  # an answer that another client was given
                    anchor, since = keys[0], number
                    for key in keys:
                        _keep(self._answers, key, None)
            _keep(self._open, anchor, digests[since:])
        return Turn(anchor, begun)

    def answered(self, answer: Answer, turn: Turn, *, checks: bool = True) -> list[Refused]:
        """Record an answer and return its calls that must not run; waits for a measurement where there are calls.

        Without ``checks``, all of them are recorded and none is refused, for a host that cannot hold them back.
        """
        with self._alone():
            for key in answer.keys:
                _keep(self._answers, key, None)
            for call in answer.calls:
                if call.id is not None:
                    _keep(self._calls, call.id, call)
        self._monitor.message("assistant", answer.text, model=answer.model, response_id=answer.id)
        for told in answer.served:
            self._record(told)
        refused, unnamed = [], []
        for call in answer.calls:
            decision = self._monitor.check(call.name or "unknown", call.arguments) if checks else None
            if decision is None or decision:
                own = self._monitor.tool_call(call.name or "unknown", call.arguments, call=call.id)
                if call.id is None:
                    unnamed.append(TranscriptCall(call.name, call.arguments, own))
            else:
                refused.append(Refused(call.name, decision, call.id))
        self.spent(answer)
        with self._alone():
            self._unnamed = unnamed
            if not refused:
                self._open.pop(turn.follows, None)
        return refused

    def spent(self, answer: Answer) -> None:
        """Record the tokens of an answer, if they are known."""
        if answer.has_usage:
            self._monitor.usage(
                tokens_in=answer.tokens_in,
                tokens_out=answer.tokens_out,
                tokens_cached=answer.tokens_cached,
                model=answer.model,
                response_id=answer.id,
                duration_s=answer.duration_s,
            )

    def adopt(self, other: Conversation) -> None:
        """Know the answers, calls and results that another agent was given and made; they are recorded there."""
        with other._alone():
            answers, results = list(other._answers), [*other._results, *other._calls]
        with self._alone():
            for mine, theirs in ((self._answers, answers), (self._results, results)):
                for key in theirs:
                    _keep(mine, key, None)

    def called(self, tool: str, arguments: Any, call: str | None) -> None:
        """Record a call that no answer has told."""
        with self._alone():
            self._monitor.tool_call(tool, arguments, call=call)
            if call is not None:
                _keep(self._calls, call, TranscriptCall(tool, arguments, call))

    def came(self, result: Result, *, duration_s: float | None = None, error_type: str | None = None) -> None:
        """Record a result when it is there; the request that repeats it tells nothing new."""
        with self._alone():
            self._record(result, duration_s, error_type)

    def ran(self, tool: str, arguments: Any, call: str) -> None:
        """Record a call that runs although it was refused, and let its result be recorded."""
        with self._alone():
            self._results.pop(call, None)
        self.called(tool, arguments, call)

    def refused(self, call: str) -> None:
        """Know that a call does not run: what a request gives as its result is the refusal."""
        with self._alone():
            _keep(self._results, call, None)

    def abandoned(self, answer: Answer) -> None:
        """Record an answer that nobody waited for: what was said so far, and what was spent; its calls do not run."""
        with self._alone():
            for key in answer.keys:
                _keep(self._answers, key, None)
        if answer.text:
            self._monitor.message("assistant", answer.text, model=answer.model, response_id=answer.id)
        self._monitor.note("the answer of the model was abandoned before its end")
        self.spent(answer)

    def _alone(self) -> AbstractContextManager[None]:
        """Read what waits to be read, and let no other thread tell meanwhile."""
        return self._monitor.deferred.alone()

    def _newest(self, wire: Wire, items: Sequence[Any]) -> tuple[int, str]:
        """Return the place behind the newest answer in a request that is known, and its mark."""
        for at in range(len(items) - 1, -1, -1):
            try:
                keys = wire.keys(plain(items[at]))
            except UNREADABLE:  # then nobody knows it
                continue
            if (key := next((key for key in keys if key in self._answers), None)) is not None:
                return at + 1, key
        return 0, ""

    def _tell_host(self, text: str) -> None:
        if text.strip() and (digest := _digest(text)) not in self._told:
            _keep(self._told, digest, None)
            self._monitor.message("system", text)

    def _tell(self, wire: Wire, item: Any) -> tuple[str, ...]:
        """Record an item; return its marks if a model has made it."""
        try:
            keys, read = wire.keys(item), list(wire.read(item))
        except UNREADABLE as error:
            self._monitor.fault("wrap", f"a message of a request cannot be read: {error}")
            return ()
        for told in read:
            if isinstance(told, Said) and told.role == "system":
                self._tell_host(told.text)
            else:
                self._record(told)
        return keys

    def _record(self, told: Said | Result, duration_s: float | None = None, error_type: str | None = None) -> None:
        monitor = self._monitor
        if isinstance(told, Said):
            role: Any = told.role
            monitor.message(role, told.text)
            for call in told.calls:
                monitor.tool_call(call.name or "unknown", call.arguments, call=call.id)
                if call.id is not None:
                    _keep(self._calls, call.id, call)
            return
        if told.call is not None:
            if told.call in self._results:
                return
            _keep(self._results, told.call, None)
        made = self._calls.get(told.call or "")
        if told.call is None and (made := next((call for call in self._unnamed if call.name == told.tool), None)):
            self._unnamed.remove(made)
            told = told._replace(call=made.id)
        error = _has_failed(told.text, made) if told.error is None else told.error
        tool = told.tool if made is None else made.name
        monitor.tool_result(
            told.text, error=error, call=told.call, tool=tool or None, duration_s=duration_s, error_type=error_type
        )


def plain(value: Any) -> Any:
    """Return what a client was given as plain dicts and lists: users mix them with objects of the SDK.

    Nothing is changed. Iterators, which can be read once only, are left alone.

    Examples
    --------
    >>> plain({"role": "user", "content": ("a", "b")})
    {'role': 'user', 'content': ['a', 'b']}
    """
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(exclude_none=True, warnings=False)
    return value


def text_key(text: str) -> str:
    """Return the mark of an answer that has nothing but its words."""
    return f"text {blake2b(text.strip().encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def events_of(stream: bytes) -> Iterator[Json]:
    r"""Yield the data of server-sent events that are JSON objects.

    Examples
    --------
    >>> list(events_of(b'event: a\ndata: {"n": 1}\n\ndata: [DONE]\n\n'))
    [{'n': 1}]
    """
    for event in re.split(r"\r?\n\r?\n", stream.decode("utf-8", "replace")):
        data = "\n".join(line[5:].lstrip(" ") for line in event.splitlines() if line.startswith("data:"))
        if data.startswith("{"):
            try:
                yield msgspec.json.decode(data)
            except msgspec.DecodeError:  # the stream was cut in the middle of it
                continue


def _has_failed(text: str, call: TranscriptCall | None) -> bool:
    """Tell from a result whether its call failed."""
    if failure_of(text) < FAILED:
        return False
    if call is None:
        return True
    made = trace_call(call.name or "unknown", msgspec.json.encode(call.arguments, enc_hook=repr))
    return made.access != "read" or failure_of(text, reads=True) >= FAILED


def _digest(item: Any) -> bytes:
    return blake2b(msgspec.json.encode(item, enc_hook=repr), digest_size=16).digest()


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember something as the newest; forget the oldest of too much."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > MAX_KEPT:
        del kept[next(iter(kept))]
