"""The detectors' eyes: what each of them keeps of an event, before the state has taken it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coherence.core.events import Correction, Event, Goal, Memory, Message, Outcome, Ticked, ToolCall, ToolResult
from coherence.core.validation import call_text
from coherence.detect.hijack import read_arguments
from coherence.state.data import Facts
from coherence.state.grounding import Accountant


class Watcher:
    """Let every detector take in the events of an agent; what each keeps stands in the facts, in a field of its own.

    Parameters
    ----------
    extractors : sequence of str
        What counts as a checkable value, see :class:`~coherence.core.config.GroundingConfig`.

    Raises
    ------
    PluginError
        If nobody offers an extractor of a name.
    """

    def __init__(self, extractors: Sequence[str]) -> None:
        self._accountant = Accountant(extractors)

    def note(self, facts: Facts, seq: int, event: Event) -> None:
        """Take in an event, before the facts have."""
        arguments = read_arguments(bytes(event.arguments)) if isinstance(event, ToolCall) else None
        facts.service.observe(event, facts.goal)
        watch_hijack(facts, seq, event, arguments)
        watch_assumption(facts, seq, event, arguments)
        self._accountant.note(facts, seq, event, arguments)


def watch_assumption(facts: Facts, seq: int, event: Event, arguments: Any) -> None:
    """Judge the agent's steps; ``arguments`` are those of a call, decoded."""
    assumption = facts.assumption
    if isinstance(event, ToolCall):
        assumption.call(seq, call_text(event.tool_name, arguments))
    elif isinstance(event, ToolResult):
        assumption.read(event.result)
    elif isinstance(event, Message):
        if event.role == "assistant":
            assumption.say(seq, event.content)
        elif event.role == "user":
            assumption.ask(event.content, anew=False)
        else:
            assumption.read(event.content)
    elif isinstance(event, Goal):
        assumption.ask(event.text)
    elif isinstance(event, Outcome):
        assumption.open = False
    elif isinstance(event, Correction | Memory) and not event.removed:
        assumption.read(event.text)


def watch_hijack(facts: Facts, seq: int, event: Event, arguments: Any) -> None:
    """Judge the agent's calls; ``arguments`` are those of a call, decoded."""
    hijack = facts.hijack
    if isinstance(event, ToolCall | Ticked) and not hijack.known.asked and facts.goal:
        for text in (facts.goal, *facts.requests):  # of a state that was kept by an older version
            hijack.ask(text)
    if isinstance(event, ToolCall):
        hijack.call(seq, event.tool_name, arguments)
    elif isinstance(event, ToolResult):
        hijack.read(seq, event.result)
    elif isinstance(event, Message):
        if event.role == "user":
            hijack.ask(event.content)
        elif event.role == "assistant":
            hijack.say(event.content)
        elif event.role == "tool":
            hijack.read(seq, event.content)
    elif isinstance(event, Goal):
        hijack.ask(event.text, anew=event.text.strip() != facts.goal)
    elif isinstance(event, Outcome):
        hijack.finish()
    elif isinstance(event, Correction):
        if not event.removed:
            hijack.ask(event.text)
    elif isinstance(event, Ticked) and event.tool_name is None:
        hijack.look()
