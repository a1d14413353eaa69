"""Transcript of a session of Gemini CLI: the model's words, its tokens, and what no hook tells of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from coherence.integrations.added_lines import AddedLines, object_in
from coherence.integrations.host_session import text_of

MAX_WAITING = 10_000
"""Entries that wait for the event to which they belong; the oldest leave."""

Kind: TypeAlias = Literal["text", "usage", "call", "context", "compaction"]

_CONTEXT = re.compile(r"<hook_context>(.*?)</hook_context>", re.DOTALL)
_SUMMARY = "<state_snapshot>"
"""Beginning of the message that takes the place of a compacted context."""


class Entry(NamedTuple):
    """One thing that a transcript says."""

    kind: Kind
    at: str
    """Time, in the form of the payloads of hooks; empty where there is none."""
    value: str = ""
    """Words of the model, its name, a text of a hook that the model was shown, or the summary of the context."""
    tokens: dict[str, Any] | None = None
    call: dict[str, Any] | None = None
    """A call that has ended, as the client notes it."""


class Transcript:
    """Read what is added to a transcript, each thing once.

    The file is the client's own: a line that is not understood is passed over.

    Parameters
    ----------
    path : Path
        It may be missing yet.
    since : str
        Time up to which all is passed over: what a session that goes on has written before was read then.
    """

    def __init__(self, path: Path, *, since: str = "") -> None:
        self._lines, self._since = AddedLines(path), since
        self._waiting: list[Entry] = []
        self._message = ""
        """Id of the newest message; the client writes it again whenever it has more to say of it."""
        self._told: set[str] = set()
        """Parts of that message that were told: kinds, and ids of calls."""
        self._summary = ""

    def read(self, until: str = "") -> list[Entry]:
        """Return the entries up to a time, by default all.

        Parameters
        ----------
        until : str
            Time of an event, as its payload has it.
        """
        for line in self._lines.read():
            self._waiting += (entry for entry in self._entries(line) if not self._since or entry.at > self._since)
        del self._waiting[:-MAX_WAITING]
        end = len(self._waiting)
        if until:
            end = next((at for at, entry in enumerate(self._waiting) if entry.at > until), end)
        found, self._waiting = self._waiting[:end], self._waiting[end:]
        return found

    def _entries(self, line: bytes) -> Iterator[Entry]:
        read = object_in(line)
        if read.get("type") == "gemini":
            yield from self._of_message(read)
        elif read.get("type") == "user":
            said = "\n".join(texts_in(read.get("content")))
            yield from (Entry("context", text_of(read, "timestamp"), found) for found in _CONTEXT.findall(said))
        elif isinstance(read.get("$set"), dict):
            yield from self._of_history(read["$set"])

    def _of_message(self, message: dict[str, Any]) -> Iterator[Entry]:
        if (found := text_of(message, "id")) != self._message:
            self._message, self._told = found, set()
        at, said = text_of(message, "timestamp"), "\n".join(texts_in(message.get("content")))
        if said.strip() and self._new("text"):
            yield Entry("text", at, said)
        tokens = message.get("tokens")
        if isinstance(tokens, dict) and self._new("usage"):
            yield Entry("usage", at, text_of(message, "model"), tokens=tokens)
        calls = message.get("toolCalls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and self._new(f"call {text_of(call, 'id')}"):
                yield Entry("call", text_of(call, "timestamp") or at, call=call)

    def _of_history(self, changed: dict[str, Any]) -> Iterator[Entry]:
        """Yield the summary of a context that the client has put another one in the place of."""
        messages = changed.get("messages")
        for message in messages if isinstance(messages, list) else ():
            said = "\n".join(texts_in(message.get("content"))) if isinstance(message, dict) else ""
            if said.startswith(_SUMMARY) and said != self._summary:
                self._summary = said
                yield Entry("compaction", text_of(changed, "lastUpdated"), said)

    def _new(self, told: str) -> bool:
        if told in self._told:
            return False
        self._told.add(told)
        return True


def texts_in(content: Any) -> list[str]:
    """Return the texts of what the client calls parts: a text, an object, or a list of both.

    Examples
    --------
    >>> texts_in([{"text": "I look."}, {"functionResponse": {"response": {"output": "a.txt"}}}])
    ['I look.', 'a.txt']
    """
    found = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, dict):
            returned = part.get("functionResponse")
            response = returned.get("response") if isinstance(returned, dict) else None
            values = [part.get("text"), *(response.values() if isinstance(response, dict) else ())]
            found += [value for value in values if isinstance(value, str)]
    return found
