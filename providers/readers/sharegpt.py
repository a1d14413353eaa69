"""Conversations in the format of ShareGPT: ``from`` and ``value``, with calls and observations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from coherence.providers.readers.chat import marker
from coherence.providers.readers.detect import flat
from coherence.providers.readers.openai_chat import parse_arguments
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import loads
from coherence.providers.transcript import Role, Step, Transcript, TranscriptCall

EXPECTED = "ShareGPT {conversations: [{from, value}]}: a list, or one a line"

_SPEAKERS: dict[str, Role] = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model", "function_call"), "assistant"),
    **dict.fromkeys(("observation", "tool", "tool_response", "function_response", "function"), "tool"),
    "system": "system",
}
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_MEDIA = ("image", "video", "audio")


class _Turn(msgspec.Struct):
    speaker: str | None = msgspec.field(name="from", default=None)
    value: str | None = None
    # names that some sets of data have in their place
    role: str | None = None
    content: str | None = None

    def __post_init__(self) -> None:
        self.speaker = self.speaker if self.speaker is not None else self.role
        if self.speaker not in _SPEAKERS:
            raise ValueError(f"from {self.speaker!r} is not one of {', '.join(_SPEAKERS)}")

    def text(self) -> str:
        """Return its words; media stand in them as tags."""
        text = (self.value if self.value is not None else self.content) or ""
        for kind in _MEDIA:
            text = text.replace(f"<{kind}>", marker(kind))
        return text


class _Sample(msgspec.Struct):
    conversations: list[_Turn]
    id: str | int | None = None
    system: Any = None


class ShareGPTReader:
    """Conversations of ShareGPT, as sets of data for fine-tuning have them."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a list of conversations."""
        return any(isinstance(value.get("conversations"), list) for value in flat(documents))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each conversation."""
        for document in source.documents:
            if isinstance(document.value, list):
                samples = source.convert(document, list[_Sample], EXPECTED)
            else:
                samples = [source.convert(document, _Sample, EXPECTED)]
            for sample in samples:
                turns = sample.conversations
                begun = next((at for at, turn in enumerate(turns) if turn.speaker != "system"), len(turns))
                given = sample.system if isinstance(sample.system, str) else ""
                system = "\n".join(filter(None, (given, *(turn.text() for turn in turns[:begun]))))
                yield source.transcript(_steps(turns[begun:]), line=document.line, id=sample.id, system=system)


def _steps(turns: Iterable[_Turn]) -> Iterator[Step]:
    waiting: deque[str] = deque()
    for turn in turns:
        role, text = _SPEAKERS[turn.speaker or ""], turn.text()
        if role == "assistant":
            said, calls = ("", _calls(text)) if turn.speaker == "function_call" else _tagged(text)
            waiting = deque(call.name for call in calls)
            yield Step(role=role, content=said, tool_calls=tuple(calls))
        elif role == "tool":
            text = text.strip().removeprefix("<tool_response>").removesuffix("</tool_response>").strip()
            yield Step(role=role, content=text, tool_name=waiting.popleft() if waiting else None)
        else:
            yield Step(role=role, content=text)


def _tagged(text: str) -> tuple[str, list[TranscriptCall]]:
    """Return what is said, and the calls that stand in it between tags; a tag that is never closed is text."""
    first, *rest = text.split(_OPEN)
    said, calls = [first], list[TranscriptCall]()
    for part in rest:
        inside, closed, after = part.partition(_CLOSE)
        if closed:
            calls += _calls(inside)
        said.append(after if closed else _OPEN + part)
    return "".join(said).strip() if calls else text, calls


def _calls(text: str) -> list[TranscriptCall]:
    """Return the calls of a text in JSON, one or a list; any other text is the argument of one without a name."""
    try:
        found = loads(text.strip())
    except (ValueError, RecursionError):
        found = None
    each = found if isinstance(found, list) else [found]
    if not each or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in each):
        return [TranscriptCall("unknown", text.strip())]
    try:
        arguments = [parse_arguments(call.get("arguments", call.get("parameters"))) for call in each]
    except ValueError:  # nested too deep
        return [TranscriptCall("unknown", text.strip())]
    return [TranscriptCall(call["name"], given) for call, given in zip(each, arguments, strict=True)]
