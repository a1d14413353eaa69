"""Newest part of an agent's transcript: its words between calls, its tokens, and what it was shown."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from coherence.core.files import open_input
from coherence.providers.readers.anthropic_messages import AnthropicUsage

MAX_READ = 32_000_000
"""Bytes that are read at once; what a client has written beyond them since the last event is left out."""

MAX_WAITING = 10_000
"""Entries that wait for the event to which they belong; the oldest leave."""

Kind: TypeAlias = Literal["text", "usage", "call", "result", "context", "refusal", "interruption"]

_SYNTHETIC = "<synthetic>"
"""Model of messages that the client writes itself, of errors."""

_REJECTED = "User rejected tool use"
"""Result of a call that the user refused or stopped; 2.1.197 tells no more of it."""

_INTERRUPTED = "[Request interrupted by user"
"""Beginning of what the client writes in the user's name when they press Esc."""


class Entry(NamedTuple):
    """One thing that a transcript says of its agent."""

    kind: Kind
    value: str
    """The agent's words; the id of a message, a call, a result, or a call that the user refused or stopped; what a hook
    has added to the context."""
    message: str = ""
    """Id of the agent's message."""
    model: str = ""
    usage: AnthropicUsage | None = None
    ran: bool | None = None
    """Of a call that the user refused or stopped: whether it had begun; ``None`` = the client does not tell."""


class TranscriptTail:
    """Read what is added to a transcript, up to the call that an event is about.

    The file is the client's own: a line that is not understood is passed over, and a file that cannot be read has
    nothing to say.

    Parameters
    ----------
    path : Path
        It may be missing yet.
    at_end : bool
        Begin with what is written from now on.
    """

    def __init__(self, path: Path, *, at_end: bool = False) -> None:
        self._path = path
        self._offset = _size(path) if at_end else 0
        self._waiting: list[Entry] = []

    def read(self, until: Collection[str] | None = None) -> list[Entry]:
        """Return the entries up to the last one about some calls, those before it included.

        Parameters
        ----------
        until : collection of str, optional
            Ids of calls. Where the transcript does not know any of them yet, nothing is returned. Default: all that is
            there.
        """
        self._waiting += self._added()
        del self._waiting[:-MAX_WAITING]
        end = len(self._waiting)
        if until is not None:
            about = [at for at, each in enumerate(self._waiting, 1) if each.kind in ("call", "result")]
            end = max((at for at in about if self._waiting[at - 1].value in until), default=0)
        found, self._waiting = self._waiting[:end], self._waiting[end:]
        return found

    def _added(self) -> list[Entry]:
        if _size(self._path) <= self._offset:
            return []
        try:
            with open_input(self._path) as file:
                file.seek(self._offset)
                added = file.read(MAX_READ)
        except OSError:
            return []
        whole = added.rfind(b"\n") + 1
        self._offset += whole
        if len(added) == MAX_READ:
            self._offset = max(self._offset, _size(self._path))
        return [entry for line in added[:whole].splitlines() for entry in entries_of(line)]


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def entries_of(line: bytes) -> Iterator[Entry]:
    r"""Yield what one line of a transcript says.

    Examples
    --------
    >>> said = b'{"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look."}]}}'
    >>> list(entries_of(said))
    [Entry(kind='text', value='I look.', message='m1', model='', usage=None)]
    """
    try:
        read = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return
    if not isinstance(read, dict):
        return
    attached, message = read.get("attachment"), read.get("message")
    if isinstance(attached, dict) and attached.get("type") == "hook_additional_context":
        yield from (Entry("context", text) for text in _list(attached.get("content")) if isinstance(text, str))
    elif isinstance(message, dict) and read.get("type") == "assistant" and message.get("model") != _SYNTHETIC:
        yield from _of_message(message)
    elif isinstance(message, dict) and read.get("type") == "user":
        blocks = [block for block in _list(message.get("content")) if isinstance(block, dict)]
        yield from (Entry("result", found) for block in blocks if (found := _text(block, "tool_use_id")))
        yield from _of_user(read, blocks)


def _of_user(line: dict[str, Any], blocks: list[dict[str, Any]]) -> Iterator[Entry]:
    """Yield which calls the user has refused or stopped, and whether they interrupted the agent."""
    told = "toolDenialKind" in line
    if line.get("toolDenialKind") == "user-rejected" or (not told and line.get("toolUseResult") == _REJECTED):
        ran = line.get("toolDenialBeforeRun") is not True if told else None
        yield from (Entry("refusal", found, ran=ran) for block in blocks if (found := _text(block, "tool_use_id")))
    if any(_text(block, "text").startswith(_INTERRUPTED) for block in blocks):
        yield Entry("interruption", "")


def _of_message(message: dict[str, Any]) -> Iterator[Entry]:
    id, model = _text(message, "id"), _text(message, "model")
    try:
        usage = msgspec.convert(message.get("usage"), AnthropicUsage | None)
    except msgspec.ValidationError:
        usage = None
    if usage is not None:
        yield Entry("usage", id, id, model, usage)
    for block in _list(message.get("content")):
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and _text(block, "text").strip():
            yield Entry("text", _text(block, "text"), id, model)
        elif block.get("type") == "tool_use" and _text(block, "id"):
            yield Entry("call", _text(block, "id"), id, model)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(block: dict[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""
