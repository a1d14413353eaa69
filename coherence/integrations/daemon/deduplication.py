"""Deduplication: an event that reaches the daemon more than once is recorded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from coherence.core.events import Compaction, Message, ToolCall, ToolResult, decode_event
from coherence.store.store import Store

MAX_KNOWN = 1_000
"""Newest events of a session that are known again."""

Answer: TypeAlias = dict[str, Any]

Said: TypeAlias = tuple[str, str]
"""Kind of a recorded event, and its id or its words."""

_CALLS = ("call", "result")

_KINDS: Mapping[str, Said] = {
    "PreToolUse": ("call", "tool_use_id"),
    "PostToolUse": ("result", "tool_use_id"),
    "PostToolUseFailure": ("result", "tool_use_id"),
    "UserPromptSubmit": ("user", "prompt"),
    "Stop": ("assistant", "last_assistant_message"),
    "SubagentStop": ("assistant", "last_assistant_message"),
    "PostCompact": ("compaction", "compact_summary"),
}
"""Event of a hook -> kind of the event that is recorded for it, and the field with its id or its words."""


class Deduplicator:
    """Know the newest events of a session again, and their answers.

    Calls and results are known by the agent and their id. Other events are the same if all that they say is, and they
    name the prompt that the agent works on: what the client says more than once in the same words, such as that a
    session starts, names no prompt.

    Parameters
    ----------
    recorded : iterable
        What a daemon that was killed may have recorded of events that come again; by default nothing.

    Examples
    --------
    >>> events, call = Deduplicator([("user", "Go.")]), {"hook_event_name": "PreToolUse", "tool_use_id": "t1"}
    >>> events.answer_to(call), events.add(call, {"decision": "deny"}), events.answer_to(call)
    (None, None, {'decision': 'deny'})
    >>> events.answer_to({"hook_event_name": "UserPromptSubmit", "prompt": "Go."})
    {}
    """

    def __init__(self, recorded: Iterable[Said] = ()) -> None:
        self._recorded = frozenset(recorded)
        self._answers: dict[object, Answer] = {}

    def answer_to(self, payload: Mapping[str, Any]) -> Answer | None:
        """Return the answer to an event that has come before, ``None`` if it is new."""
        return {} if _said(payload) in self._recorded else self._answers.get(_key(payload))

    def add(self, payload: Mapping[str, Any], answer: Answer) -> None:
        """Keep what is answered if an event comes again: a refusal, or nothing."""
        if (key := _key(payload)) is not None:
            self._answers[key] = answer
            if len(self._answers) > MAX_KNOWN:
                del self._answers[next(iter(self._answers))]

    def forget(self, payload: Mapping[str, Any]) -> None:
        """Take an event for new again: it could not be recorded."""
        self._answers.pop(_key(payload), None)


def _said(payload: Mapping[str, Any]) -> Said | None:
    kind, field = _KINDS.get(str(payload.get("hook_event_name")), ("", ""))
    said = payload.get(field)
    return (kind, said) if isinstance(said, str) and said else None


def _key(payload: Mapping[str, Any]) -> object:
    """Return what two reports of one event have in common, ``None`` if they cannot be told from two events."""
    said = _said(payload)
    if said is not None and said[0] in _CALLS:
        return *said, str(payload.get("agent_id"))
    if isinstance(payload.get("prompt_id"), str):
        return hashlib.sha256(msgspec.json.encode(payload)).digest()
    return None


def recorded(store: Store, session: str) -> Iterator[Said]:
    """Yield what is known again of the newest events that a store has of a session."""
    for row in store.sessions():
        if row.session != session:
            continue
        last = store.last_seq(row.id)
        for kept in store.events(row.id, after=max(0, last - MAX_KNOWN)):
            match decode_event(kept.data):
                case ToolCall(call_id=str(call)):
                    yield "call", call
                case ToolResult(call_id=str(call)):
                    yield "result", call
                case Message(role="user" | "assistant" as role, content=str(text)):
                    yield role, text
                case Compaction(summary=str(text)):
                    yield "compaction", text
