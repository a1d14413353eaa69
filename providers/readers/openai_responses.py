"""Items of the OpenAI Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from coherence.core.readings import Counters
from coherence.core.validation import to_json
from coherence.providers.readers.chat import ContentPart, text_of
from coherence.providers.readers.detect import flat
from coherence.providers.readers.openai_chat import parse_arguments
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import check_depth
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "OpenAI Responses: responses {output, usage?}, requests {input, output?}, or items {type, ...}, one a line"

ITEMS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
"""Types of items that no chat message has."""


class Item(msgspec.Struct):
    """One item of an input or an output."""

    type: str = "message"
    role: str = "assistant"
    content: str | list[ContentPart] | None = None
    name: str | None = None
    arguments: Any = None
    input: Any = None
    call_id: str | None = None
    output: Any = None

    def __post_init__(self) -> None:
        self.arguments = parse_arguments(self.arguments if self.arguments is not None else self.input)
        check_depth(self.output)


class Usage(msgspec.Struct):
    """The tokens of one response."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class Exchange(msgspec.Struct):
    """A request's input, a response's output, or both."""

    input: str | list[Item] | None = None
    output: list[Item] | None = None
    usage: Usage | None = None
    id: str | None = None
    goal: str | None = None
    instructions: Any = None
    """Text that the host gives the agent; only a text is read."""


class ResponsesReader:
    """Items, requests and responses of the OpenAI Responses API."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a response, a request or an item that no chat has."""
        return any(map(_is_response, flat(documents)))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield the one conversation of the file."""
        return read_responses(source)


def _is_response(value: dict[str, Any]) -> bool:
    if "messages" in value or "steps" in value:
        return False
    return value.get("type") in ITEMS or value.get("object") == "response" or isinstance(value.get("input"), list)


def read_responses(source: Source) -> Iterator[Transcript]:
    """Yield the one conversation of a file: its items in order, or those of its responses one after another.

    An input that repeats what came before, as of a client that sends the whole conversation each time, counts once.
    """
    steps: list[Step] = []
    names: dict[str, str] = {}
    seen: list[Any] = []
    first: Exchange | None = None
    for document in source.documents:
        exchange = _exchange(source, document)
        first = first or exchange
        given = exchange.input
        if isinstance(given, str):
            given = [Item(role="user", content=given)]
        fresh = list(given or ())
        if len(fresh) > len(seen) and fresh[: len(seen)] == seen:
            fresh = fresh[len(seen) :]
        output = list(exchange.output or ())
        seen += [*fresh, *output]
        steps += _steps(fresh, names)
        answer = list(_steps(output, names))
        usage = exchange.usage
        if usage is not None and answer:
            counters = Counters(tokens_in=usage.input_tokens, tokens_out=usage.output_tokens)
            answer[-1] = msgspec.structs.replace(answer[-1], usage=counters)
        steps += answer
    system = first.instructions if first and isinstance(first.instructions, str) else None
    yield source.transcript(steps, id=first.id if first else None, goal=first.goal if first else None, system=system)


def _exchange(source: Source, document: Document) -> Exchange:
    value = document.value
    if isinstance(value, list):
        value = {"input": value}
    elif isinstance(value, dict) and (value.get("type") in ITEMS or not value.keys() & {"input", "output"}):
        value = {"input": [value]}
    return source.convert(Document(value, document.line), Exchange, EXPECTED)


def _steps(items: Iterable[Item], names: dict[str, str]) -> Iterator[Step]:
    """Yield the steps of items; calls join the message of the same answer."""
    said: list[str] = []
    calls: list[TranscriptCall] = []

    def answer() -> Iterator[Step]:
        if said or calls:
            yield Step(role="assistant", content="\n".join(said), tool_calls=tuple(calls))
        said.clear()
        calls.clear()

    for item in items:
        if item.type == "message" and item.role == "assistant":
            if calls:
                yield from answer()
            said.append(text_of(item.content))
        elif item.type in ("function_call", "custom_tool_call"):
            name = item.name or "unknown"
            calls.append(TranscriptCall(name, item.arguments, item.call_id))
            if item.call_id is not None:
                names[item.call_id] = name
        elif item.type in ("function_call_output", "custom_tool_call_output"):
            yield from answer()
            yield Step(role="tool", content=output_text(item.output), tool_name=names.get(item.call_id or ""))
        elif item.type == "message":
            yield from answer()
            yield Step(role="user" if item.role == "user" else "system", content=text_of(item.content))
    yield from answer()


def output_text(output: Any) -> str:
    """Return what a tool answered as text: a text, content parts, or data as JSON."""
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in output
    ):
        return text_of(msgspec.convert(output, list[ContentPart]))
    return "" if output is None else to_json("output", output).decode()
