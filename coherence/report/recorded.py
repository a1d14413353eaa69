"""Sessions of a store as transcripts: what a monitor has recorded can be scored anew, with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.events import (
    Correction,
    Event,
    Goal,
    Memory,
    Message,
    Outcome,
    ToolCall,
    ToolResult,
    Usage,
    decode_event,
    is_success,
)
from coherence.core.readings import Counters
from coherence.monitor.session_header import began_as, is_without_text
from coherence.providers.transcript import Step, Transcript, TranscriptCall, add_usage
from coherence.store.errors import StoreError
from coherence.store.rows import SessionRow
from coherence.store.runs import session_label
from coherence.store.store import Store


def read_recorded(path: str | Path) -> list[Transcript]:
    """Return each session of a store that has a step, oldest first, called ``agent/session``.

    Raises
    ------
    TranscriptError
        If the file is no store, or holds no session with a step.
    """
    try:
        with Store(path) as store:
            read = (
                _labelled(_transcript(f"{row.agent}/{row.session}", str(path), _events(store, row)), store, row)
                for row in store.sessions()
                if not is_without_text(row)
            )
            found = [transcript for transcript in read if transcript is not None]
    except StoreError as error:
        raise TranscriptError(path, str(error)) from error
    if not found:
        raise TranscriptError(path, "a store without a session that has a step")
    return found


def _labelled(transcript: Transcript | None, store: Store, row: SessionRow) -> Transcript | None:
    """Return a session with what its labels say of it; they count more than its outcome."""
    good = session_label(store, row.agent, began_as(store, row.agent, row.session))
    if transcript is None or good is None:
        return transcript
    return msgspec.structs.replace(transcript, outcome="good" if good else "bad", went_wrong=not good)


def _events(store: Store, session: SessionRow) -> Iterator[tuple[float | None, Event]]:
    """Yield each event and when it was; a run that was played again has the times of the player, which say nothing."""
    for row in store.events(session.id):
        yield (None if session.source == "replay" else row.ts), decode_event(row.data)


def _transcript(name: str, path: str, events: Iterator[tuple[float | None, Event]]) -> Transcript | None:
    steps: list[Step] = []
    tools: dict[str, str] = {}
    newest = goal = outcome = ""
    system: list[str] = []
    memories: list[tuple[int, str]] = []
    went_wrong: bool | None = None
    for ts, event in events:
        match event:
            case Goal(text=text):
                if not goal:
                    goal = text
                elif text != goal:
                    steps.append(Step(role="user", content=text, ts=ts))
            case Message(role="system", content=content, firing=None) if not steps:
                system.append(content)
            case Message(role=role, content=content) if not event.firing:
                steps.append(Step(role="system" if role == "tool" else role, content=content, ts=ts))
            case Correction(text=text, removed=False) if text:
                steps.append(Step(role="user", content=text, ts=ts))
            case ToolCall(tool_name=tool, arguments=arguments, call_id=call):
                newest = tools[call] = tool
                _join(steps, TranscriptCall(tool, msgspec.json.decode(arguments), call), ts)
            case ToolResult():
                tool = event.tool_name or tools.get(event.call_id or "", newest)
                took = event.duration_s
                said = Step(role="tool", content=event.result, tool_name=tool, is_error=event.error)
                steps.append(msgspec.structs.replace(said, ts=ts, latency_s=took))
            case Usage(input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost):
                _spend(steps, Counters(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost))
            case Memory(text=text, removed=False):
                memories.append((len(steps), text))
            case Outcome():
                success = is_success(event)
                went_wrong = None if success is None else not success
                outcome = "" if success is None else "good" if success else "failed"
            case _:
                pass
    if not steps:
        return None
    return Transcript(
        id=name,
        steps=tuple(steps),
        goal=goal,
        system="\n".join(system),
        memories=tuple(memories),
        path=path,
        format="store",
        outcome=outcome,
        went_wrong=went_wrong,
    )


def _join(steps: list[Step], call: TranscriptCall, ts: float | None) -> None:
    """Add a call to the agent's newest step, or begin one."""
    if steps and steps[-1].role == "assistant":
        steps[-1] = msgspec.structs.replace(steps[-1], tool_calls=(*steps[-1].tool_calls, call))
    else:
        steps.append(Step(role="assistant", tool_calls=(call,), ts=ts))


def _spend(steps: list[Step], used: Counters) -> None:
    """Note what the agent's newest step took; of several calls of the model, their sum."""
    at = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].role == "assistant"), None)
    if at is None:
        return
    steps[at] = msgspec.structs.replace(steps[at], usage=add_usage(steps[at].usage or Counters(), used))
