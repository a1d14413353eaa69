"""Sessions of Claude Code: JSON lines of events, with Anthropic messages inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from coherence.core.errors import TranscriptError
from coherence.providers.readers.anthropic_messages import AnthropicMessage, message_steps
from coherence.providers.readers.chat import text_of
from coherence.providers.readers.detect import objects
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import seconds_of
from coherence.providers.transcript import Transcript

_ENVELOPE = {"sessionId", "parentUuid", "leafUuid"}

EXPECTED = "lines of a Claude Code session {type, message, sessionId, ...}"


class _Line(msgspec.Struct):
    message: AnthropicMessage


class ClaudeCodeReader:
    """Sessions of Claude Code, finished or still being written."""

    growing = True

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for an event of a session."""
        return any(map(_is_event, objects(documents)))

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield the one session of the file."""
        return read_claude_code(source)


def _is_event(value: Mapping[str, Any]) -> bool:
    if not isinstance(value.get("type"), str) or value.keys() & {"role", "messages", "steps"}:
        return False
    wraps = value["type"] in ("user", "assistant") and isinstance(value.get("message"), dict)
    return wraps or bool(value.keys() & _ENVELOPE)


def read_claude_code(source: Source) -> Iterator[Transcript]:
    """Yield the one session of the file, without subagents; summaries are its memories.

    A file of nothing but a subagent's messages is that subagent's run.
    """
    alone = all(_is_sidechain(document.value) for document in source.documents if _is_said(document.value))
    session: str | None = None
    messages: list[AnthropicMessage] = []
    streamed: dict[str, AnthropicMessage] = {}
    memories: list[tuple[int, str]] = []
    sidechain = 0
    for document in source.documents:
        event = document.value
        if not isinstance(event, dict):
            raise TranscriptError(source.path, f"not an object, expected {EXPECTED}", document.line)
        if session is None and isinstance(event.get("sessionId"), str):
            session = event["sessionId"]
        kind = event.get("type")
        # remarks of the client itself, such as its caveat about local commands
        if event.get("isMeta") is True:
            continue
        if _is_sidechain(event) and not alone:
            sidechain += 1
        elif kind == "summary" and isinstance(event.get("summary"), str):
            memories.append((0, event["summary"]))
        elif kind in ("user", "assistant"):
            message = source.convert(document, _Line, EXPECTED).message
            message.ts = seconds_of(event.get("timestamp"))
            if event.get("isCompactSummary") is True:
                memories.append((len(list(message_steps(messages))), text_of(message.content)))
            elif message.role == "assistant" and message.id in streamed:
                _extend(streamed[message.id], message)
            elif message.role != "user" or (keep_typed(message) and not typed_by_client(event)):
                messages.append(message)
                if message.role == "assistant" and message.id is not None:
                    streamed[message.id] = message
    warnings = []
    if sidechain:
        warnings.append(f"{sidechain} line{'s'[: sidechain > 1]} of subagents (isSidechain) left out")
    if source.torn is not None:
        warnings.append(f"line {source.torn.line}, the last, left out: {source.torn.reason}")
    yield source.transcript(message_steps(messages), id=session, memories=memories, warnings=warnings)


def _is_said(event: object) -> bool:
    """Tell whether a line is a message, and no note of the client, which does not say whose it is."""
    return isinstance(event, dict) and event.get("type") in ("user", "assistant")


def _is_sidechain(event: object) -> bool:
    return isinstance(event, dict) and event.get("isSidechain") is True


def _extend(message: AnthropicMessage, part: AnthropicMessage) -> None:
    """Add one more streamed part; each part repeats the usage, and the last one knows it best."""
    blocks = message.blocks()
    blocks += part.blocks()
    message.content = blocks
    message.usage = part.usage or message.usage
    message.ts = part.ts or message.ts


def typed_by_client(event: Mapping[str, Any]) -> bool:
    """Tell whether the client says that nobody typed the prompt of a line: a task in the background has ended."""
    origin = event.get("origin")
    return event.get("promptSource") == "system" or (
        isinstance(origin, dict) and origin.get("kind") == "task-notification"
    )


def keep_typed(message: AnthropicMessage) -> bool:
    """Reduce a slash command to ``/name arguments``; ``False`` for what the client typed itself.

    That is a command without arguments, a command's output, the note that a task in the background has ended, and the
    one that the user has interrupted the agent. All are recorded as the user's words, and the first words of the user
    are the goal of the session.
    """
    text = text_of(message.content)
    if text.startswith(("<local-command-", "<task-notification>", "[Request interrupted by user")):
        return False
    command = _tagged(text, "command-name") if text.startswith("<command-") else ""
    if not command:
        return True
    arguments = _tagged(text, "command-args")
    message.content = f"{command} {arguments}"
    return bool(arguments)


def _tagged(text: str, tag: str) -> str:
    _, opened, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if opened and closed else ""
