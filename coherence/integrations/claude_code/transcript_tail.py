"""Newest part of an agent's transcript: its words and calls, their results, its tokens, and what it was shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from coherence.integrations.added_lines import AddedLines, object_in, size_of
from coherence.integrations.host_session import REFUSED, text_of
from coherence.providers.readers import chat
from coherence.providers.readers.anthropic_messages import AnthropicMessage, AnthropicUsage
from coherence.providers.readers.claude_code import keep_typed, typed_by_client

MAX_READ = 4_000_000
"""Bytes that are read for one event; what lies behind them is read for the next ones."""

MAX_BEHIND = 16_000_000
"""Bytes that a reader goes back at most; what lies before them is left out."""

MAX_WAITING = 10_000
"""Entries that wait for the event to which they belong; the oldest leave."""

Kind: TypeAlias = Literal[
    "prompt", "text", "usage", "call", "result", "context", "refusal", "interruption", "compaction"
]

_OF_CALLS = ("call", "result", "refusal")

_SYNTHETIC = "<synthetic>"
"""Model of messages that the client writes itself, of errors."""

_REJECTED = "User rejected tool use"
"""Result of a call that the user refused or stopped; 2.1.197 tells no more of it."""

NOT_WANTED = "The user doesn't want to "
"""Beginning of what the agent is shown of a call that the user refused or stopped."""

_INTERRUPTED = "[Request interrupted by user"
"""Beginning of what the client writes in the user's name when they press Esc."""


class Entry(NamedTuple):
    """One thing that a transcript says of its agent."""

    kind: Kind
    value: str
    """Words of a person or of the agent; id of a message, a call, a result, or a call that the user refused or stopped;
    what a hook has added to the context."""
    message: str = ""
    """Id of the agent's message, or of a person's prompt."""
    model: str = ""
    usage: AnthropicUsage | None = None
    tool: str = ""
    data: Any = None
    """Arguments of a call; text of a result."""
    error: bool = False
    """True for the result of a call that failed."""
    ran: bool | None = None
    """Of a call that the user refused or stopped: whether it had begun; ``None`` = the client does not tell."""


class TranscriptTail:
    """Read what is added to a transcript, a bounded piece at each event.

    The file is the client's own: a line that is not understood is passed over, and a file that cannot be read has
    nothing to say.

    Parameters
    ----------
    path : Path
        It may be missing yet.
    """

    def __init__(self, path: Path) -> None:
        self._lines = AddedLines(path, max_read=MAX_READ, max_behind=MAX_BEHIND)
        self._is_subagents = path.parent.name == "subagents"
        self.waiting: list[Entry] = []
        """Entries that were read and not taken."""

    @property
    def exists(self) -> bool:
        """True if there is a transcript."""
        return size_of(self._lines.path) > 0

    @property
    def left_out(self) -> int:
        """Bytes that were too many to read."""
        return self._lines.left_out

    @property
    def at_end(self) -> bool:
        """True if the newest reading came to the end of the file."""
        return self._lines.at_end

    def read(self) -> None:
        """Add what was written since, up to :data:`MAX_READ` bytes, to what waits."""
        for line in self._lines.read():
            self.waiting += entries_of(line, of_subagent=self._is_subagents)
        del self.waiting[:-MAX_WAITING]

    def take(self, count: int) -> list[Entry]:
        """Return the oldest entries that wait, and let go of them."""
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def up_to_call(self, id: str) -> int:
        """Return how many entries wait up to a call, itself included; 0 if it is not there."""
        return next((at for at, each in enumerate(self.waiting, 1) if each.kind == "call" and each.value == id), 0)

    def up_to_results(self, ids: Collection[str]) -> int:
        """Return how many entries wait up to the last one about some calls; 0 if there is none."""
        about = (at for at, each in enumerate(self.waiting, 1) if each.kind in _OF_CALLS and each.value in ids)
        return max(about, default=0)

    def up_to_prompt(self, id: str, text: str) -> int | None:
        """Return how many entries wait before a prompt; ``None`` if it is not there.

        Parameters
        ----------
        id, text : str
            Of the prompt; its text decides where one of both ids is not known.
        """
        for at, each in enumerate(self.waiting):
            if each.kind == "prompt" and (each.message == id if each.message and id else each.value == text):
                return at
        return None

    def has_words(self, text: str) -> bool:
        """Tell whether some words wait."""
        return any(each.kind == "text" and each.value.strip() == text.strip() for each in self.waiting)

    def up_to_words(self, text: str) -> int:
        """Return how many entries wait up to the message that ends with some words; without it, to the next prompt."""
        wanted, end = text.strip(), 0
        for at, each in enumerate(self.waiting):
            if end and each.message != self.waiting[end - 1].message:
                return end
            if each.kind == "call":
                end = 0
            elif end or (wanted and each.kind == "text" and each.value.strip() == wanted):
                end = at + 1
        return end or next((at for at, each in enumerate(self.waiting) if each.kind == "prompt"), len(self.waiting))


def entries_of(line: bytes, *, of_subagent: bool = False) -> Iterator[Entry]:
    r"""Yield what one line of a transcript says.

    Parameters
    ----------
    line : bytes
        One JSON object.
    of_subagent : bool
        The transcript is that of a subagent; in another one, lines of subagents are passed over.

    Examples
    --------
    >>> said = b'{"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": "I look."}]}}'
    >>> [(entry.kind, entry.value, entry.message) for entry in entries_of(said)]
    [('text', 'I look.', 'm1')]
    """
    read = object_in(line)
    if read.get("isSidechain") is True and not of_subagent:
        return
    attached, message = read.get("attachment"), read.get("message")
    if isinstance(attached, dict) and attached.get("type") == "hook_additional_context":
        yield from (Entry("context", text) for text in _list(attached.get("content")) if isinstance(text, str))
    elif isinstance(message, dict) and read.get("type") == "assistant" and message.get("model") != _SYNTHETIC:
        yield from _of_message(message)
    elif isinstance(message, dict) and read.get("type") == "user":
        blocks = [block for block in _list(message.get("content")) if isinstance(block, dict)]
        texts = [text_of(block, "text") for block in blocks]
        yield from _of_results(read, blocks)
        if any(text.startswith(_INTERRUPTED) for text in [text_of(message, "content"), *texts]):
            yield Entry("interruption", "")
        elif read.get("isCompactSummary") is True:
            yield Entry("compaction", "")
        elif read.get("isMeta") is not True:
            yield from _of_prompt(read, message)


def _of_message(message: dict[str, Any]) -> Iterator[Entry]:
    id, model = text_of(message, "id"), text_of(message, "model")
    try:
        usage = msgspec.convert(message.get("usage"), AnthropicUsage | None)
    except msgspec.ValidationError:
        usage = None
    if usage is not None:
        yield Entry("usage", id, id, model, usage)
    for block in _list(message.get("content")):
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text" and text_of(block, "text").strip():
            yield Entry("text", text_of(block, "text"), id, model)
        elif block.get("type") == "tool_use" and text_of(block, "id"):
            yield Entry("call", text_of(block, "id"), id, model, tool=text_of(block, "name"), data=block.get("input"))


def _of_results(line: dict[str, Any], blocks: list[dict[str, Any]]) -> Iterator[Entry]:
    """Yield results of calls, and which calls the user has refused or stopped."""
    told = "toolDenialKind" in line
    stopped = line.get("toolDenialKind") == "user-rejected" or (not told and line.get("toolUseResult") == _REJECTED)
    ran = line.get("toolDenialBeforeRun") is not True if told else None
    for block in blocks:
        if block.get("type") != "tool_result" or not (id := text_of(block, "tool_use_id")):
            continue
        said = shown_text(block.get("content")) or ""
        # Where nobody is there to ask, the client refuses in the user's place, with our words.
        if stopped and not said.startswith(REFUSED):
            yield Entry("refusal", id, ran=ran)
        else:
            yield Entry("result", id, data=said, error=block.get("is_error") is True)


def _of_prompt(read: dict[str, Any], message: dict[str, Any]) -> Iterator[Entry]:
    """Yield a prompt; one that the client has written itself has no words."""
    content = message.get("content")
    blocks = [block for block in _list(content) if not isinstance(block, dict) or block.get("type") != "tool_result"]
    try:
        said = msgspec.convert(
            {"role": "user", "content": content if isinstance(content, str) else blocks}, AnthropicMessage
        )
    except msgspec.ValidationError:
        return
    id = text_of(read, "promptId")
    if typed_by_client(read) or (said.content and not keep_typed(said)):
        yield Entry("prompt", "", id)
    elif words := chat.text_of(said.content).strip():
        yield Entry("prompt", words, id)


def shown_text(content: Any) -> str | None:
    """Return the text of a result as the agent was shown it, ``None`` if it has another form.

    Examples
    --------
    >>> shown_text([{"type": "text", "text": "7 passed"}]), shown_text({"stdout": "7 passed"})
    ('7 passed', None)
    """
    try:
        return chat.text_of(msgspec.convert(content, str | list[chat.ContentPart] | None))
    except msgspec.ValidationError:
        return None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
