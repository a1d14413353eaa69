"""Events of an agent that are recorded already, by the ids that its transcript has too: nothing is counted twice."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from coherence.core.events import Feedback, Message, Ticked, ToolCall, ToolResult, Usage, decode_event
from coherence.monitor.monitor import Monitor

MAX_IDS = 20_000
"""Ids that are remembered; the oldest are forgotten."""

MAX_EVENTS = 10_000
"""Newest events of a session that are looked at when it goes on."""

MAX_TEXTS = 50
"""Prompts and last words that wait to be found in the transcript."""

INTERRUPTED = "the user interrupted the agent"
"""Note of it."""

_KINDS = ("message", "tool_call", "tool_result", "usage", "tick", "feedback")


class Known:
    """Ids of recorded messages and calls, and what hooks or transcript alone have told so far."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self.ahead: list[str] = []
        """Words of the agent that a hook has told before the transcript."""
        self.last_said = ""
        """Words of the agent that nothing has followed."""
        self.is_measured = True
        """False if the agent has said or called something since the newest measurement."""
        self.is_interrupted = False
        """True if nothing has come since the user interrupted the agent."""
        self._told: list[tuple[str, str]] = []
        """Ids and words of prompts that a hook has told, and the transcript not yet."""
        self._taken: list[tuple[str, str]] = []
        """Those of prompts that the transcript has told, and no hook."""

    @classmethod
    def of(cls, monitor: Monitor) -> Known:
        """Return what the store holds of a monitor's session."""
        known = cls()
        newest = monitor.state.facts.seq
        if monitor.store is None or not newest:
            return known
        for row in monitor.store.sessions(agent=monitor.agent):
            if row.session == monitor.session:
                for event in monitor.store.events(row.id, after=max(newest - MAX_EVENTS, 0)):
                    if event.kind in _KINDS:
                        known._learn(decode_event(event.data))
        return known

    def _learn(self, event: Any) -> None:
        if type(event) is Message and event.role == "user":
            self.told_prompt("", event.content)
            self.last_said = ""
            return
        if type(event) is Feedback:
            self.is_interrupted |= event.text == INTERRUPTED
            return
        if type(event) is Ticked and event.tool_name is None:
            self.is_measured = True
        if type(event) is Ticked or (type(event) is Message and event.role != "assistant"):
            return
        if type(event) is Message:
            self.is_measured, self.last_said = False, event.content
            if event.response_id is None:
                self.tell_ahead(event.content)
            else:
                self.add(event.response_id)
        elif type(event) is ToolCall:
            self.add(event.call_id)
            self.is_measured, self.last_said = False, ""
        elif type(event) is ToolResult and event.call_id:
            self.add_result(event.call_id)
        elif type(event) is Usage and event.response_id:
            self.add_usage(event.response_id)
        self._told.clear()  # what the transcript says of them lies before this

    def __bool__(self) -> bool:
        return bool(self._ids or self.ahead or self._told)

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def add(self, id: str) -> None:
        """Remember that a message or a call is recorded."""
        self.is_interrupted = False
        self._ids[id] = self._ids.pop(id, None)
        while len(self._ids) > MAX_IDS:
            self._ids.popitem(last=False)

    def add_result(self, call: str) -> None:
        """Remember that the result of a call is recorded."""
        self.add(f"result {call}")

    def has_result(self, call: str) -> bool:
        """Tell whether the result of a call is recorded."""
        return f"result {call}" in self._ids

    def add_usage(self, message: str) -> None:
        """Remember that the tokens of a message are recorded."""
        self.add(f"usage {message}")

    def has_usage(self, message: str) -> bool:
        """Tell whether the tokens of a message are recorded."""
        return f"usage {message}" in self._ids

    def tell_ahead(self, words: str) -> None:
        """Remember words that the transcript will tell again."""
        if words.strip():
            self.ahead = [*self.ahead, words.strip()][-MAX_TEXTS:]

    def told_prompt(self, id: str, text: str) -> bool:
        """Take in a prompt of a hook; ``False`` if the transcript has told it before."""
        self.is_interrupted = False
        return not _drop(self._taken, id, text) and _keep(self._told, id, text)

    def is_told(self, id: str, text: str) -> bool:
        """Tell whether a hook has told a prompt of the transcript."""
        return any(_is_same(each, id, text) for each in self._told)

    def took_prompt(self, id: str, text: str) -> bool:
        """Take in a prompt of the transcript; ``False`` if a hook has told it before."""
        return not _drop(self._told, id, text, or_oldest=True) and _keep(self._taken, id, text)


def _keep(prompts: list[tuple[str, str]], id: str, text: str) -> bool:
    prompts.append((id, text.strip()))
    del prompts[:-MAX_TEXTS]
    return True


def _is_same(prompt: tuple[str, str], id: str, text: str) -> bool:
    return prompt[0] == id if prompt[0] and id else prompt[1] == text.strip()


def _drop(prompts: list[tuple[str, str]], id: str, text: str, *, or_oldest: bool = False) -> bool:
    """Take a prompt away, the same by its id or, where one of both has none, by its words.

    The transcript has some prompts in other words than the hook: then the oldest one without an id is meant.
    """
    same = [each for each in prompts if _is_same(each, id, text)]
    same += [each for each in prompts if or_oldest and not (each[0] and id)]
    if same:
        prompts.remove(same[0])
    return bool(same)
