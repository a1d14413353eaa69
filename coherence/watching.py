"""The detectors' eyes: what each of them keeps of an event, before the state has taken it in."""

from __future__ import annotations

from coherence.events import Correction, Event, Goal, Memory, Message, Ticked, ToolCall, ToolResult
from coherence.facts import Facts
from coherence.plain import call_text
from coherence.provenance.watch import read_arguments


def watch(facts: Facts, seq: int, event: Event) -> None:
    """Let the detectors take in an event; what they keep stands in the facts, each in one field of its own."""
    facts.service.observe(event, facts.goal)
    _watch_hijack(facts, seq, event)
    _watch_assumption(facts, seq, event)


def _watch_assumption(facts: Facts, seq: int, event: Event) -> None:
    assumption = facts.assumption
    if isinstance(event, ToolCall):
        assumption.call(seq, call_text(event.tool_name, read_arguments(bytes(event.arguments))))
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
    elif isinstance(event, Correction | Memory) and not event.removed:
        assumption.read(event.text)


def _watch_hijack(facts: Facts, seq: int, event: Event) -> None:
    hijack = facts.hijack
    if isinstance(event, ToolCall | Ticked) and not hijack.known.asked and facts.goal:
        for text in (facts.goal, *facts.requests):  # of a state that was kept by an older version
            hijack.ask(text)
    if isinstance(event, ToolCall):
        hijack.call(seq, event.tool_name, read_arguments(bytes(event.arguments)))
    elif isinstance(event, ToolResult):
        hijack.read(seq, event.result)
    elif isinstance(event, Message):
        if event.role == "user":
            hijack.ask(event.content)
        elif event.role == "assistant":
            hijack.fresh = True
    elif isinstance(event, Goal):
        hijack.ask(event.text, anew=event.text.strip() != facts.goal)
    elif isinstance(event, Correction):
        if not event.removed:
            hijack.ask(event.text)
    elif isinstance(event, Ticked) and event.tool_name is None:
        hijack.look()
