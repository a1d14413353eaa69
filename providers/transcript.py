"""A recorded agent run, and a state provider that moves through it step by step."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.readings import Counters

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
"""The speaker: the one who asks, the agent, a tool with its result, or the host in the middle of a run."""


class TranscriptCall(msgspec.Struct, frozen=True):
    """One call the agent makes."""

    name: str
    arguments: Any = None
    """A mapping mostly; whatever the source holds."""
    id: str | None = None

    def __str__(self) -> str:
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({json.dumps(self.arguments, ensure_ascii=False, default=str)})"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a run."""

    role: Role
    content: str = ""
    """Words that were said; for a tool, its result."""
    tool_calls: tuple[TranscriptCall, ...] = ()
    tool_name: str | None = None
    is_error: bool = False
    """For a tool: whether the call failed."""
    agent: str | None = None
    """Name of the agent, where several take part."""
    usage: Counters | None = None
    """Tokens and cost of this step alone, where the source tells."""
    ts: float | None = None
    """Unix seconds at which it was done, where the source has them; no score reads it."""
    latency_s: float | None = None
    """Seconds that it took, where the source has them; no score reads it."""

    def text(self) -> str:
        """Return what the step says and does, as one text."""
        return "\n".join(part for part in (self.content, *map(str, self.tool_calls)) if part)


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded run."""

    id: str
    steps: tuple[Step, ...]
    group: str = ""
    """The task, where the source names it: runs of one task are alike. No score reads it."""
    goal: str = ""
    """The request, where the source names it; else the first user message is the goal."""
    system: str = ""
    """Text that the host gives the agent before it begins: its policy, its role; empty where the source has none."""
    memories: tuple[tuple[int, str], ...] = ()
    """Each with the step from which on it is there; 0 = from the beginning."""
    path: str = ""
    format: str = ""
    warnings: tuple[str, ...] = ()
    """Parts of the file that the reader passed over, in words."""
    outcome: str = ""
    """Its end by its labels, for people; empty = unknown."""
    went_wrong: bool | None = None
    """True if it failed or left its course by its labels; no score uses it."""
    off_course: int | None = None
    """Step from which on it was off its course, as its labels say; no score uses it."""
    success: bool | None = None
    """True if the run succeeded, where the source says so; no score reads it."""


class TranscriptState:
    """A moving window over a run; a state provider for :class:`~coherence.CoherenceSensor`.

    *Goals* are the task and the user's latest further messages. *Context* is the last ``window`` messages of the agent
    and its tools, tool calls and results included; the user's words are what it is measured against. *Memories* are
    the transcript's, if its source has any.

    Parameters
    ----------
    transcript : Transcript or sequence of Step
        The run.
    window : int
        Messages of context, 1 or more. A wider window reacts more slowly.
    max_requests : int
        How many of the user's further messages count as goals, 0 or more.

    Examples
    --------
    >>> run = [Step(role="user", content="What is 2+2?"), Step(role="assistant", content="4")]
    >>> state = TranscriptState(run)
    >>> while state.advance():
    ...     print(state.position, state.get_goals(), state.get_recent_context())
    0 ['What is 2+2?'] []
    1 ['What is 2+2?'] ['4']
    """

    in_place = True

    def __init__(self, transcript: Transcript | Sequence[Step], *, window: int = 20, max_requests: int = 4) -> None:
        for name, value, least in (("window", window, 1), ("max_requests", max_requests, 0)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if value < least:
                raise ValueError(f"{name} must be {least} or more, not {value}")
        if not isinstance(transcript, Transcript):
            transcript = Transcript(id="", steps=tuple(transcript))
        self.transcript = transcript
        self.window = window
        self.position = -1
        """Index of the step the state stands after; -1 before the first."""
        self._task = transcript.goal.strip()
        self._requests: deque[str] = deque(maxlen=max_requests)
        self._context: deque[tuple[int, str]] = deque(maxlen=window)
        self._calls = self._errors = 0
        self._usage: Counters = Counters()

    def advance(self) -> bool:
        """Take in the next step; ``False`` at the end."""
        if self.position + 1 >= len(self.transcript.steps):
            return False
        self.position += 1
        step = self.transcript.steps[self.position]
        text = step.text()
        if step.role == "user":
            said = step.content.strip()
            if not self._task:
                self._task = said
            elif said and said != self._task:
                self._requests.append(said)
        elif text.strip():
            self._context.append((self.position, text))
        if step.role == "tool":
            self._calls += 1
            self._errors += step.is_error
        if step.usage is not None:
            self._usage = add_usage(self._usage, step.usage)
        return True

    @property
    def context_steps(self) -> list[int]:
        """Indices of the steps that make up the context, oldest first."""
        return [at for at, _ in self._context]

    def get_goals(self) -> Sequence[str]:
        """Return the task and the user's latest further messages."""
        return [text for text in (self._task, *self._requests) if text]

    def get_recent_context(self) -> Sequence[str]:
        """Return the last messages of the agent and its tools."""
        return [text for _, text in self._context]

    def get_goal_relevant_memories(self) -> Sequence[str]:
        """Return the transcript's memories that are there by now."""
        return [text for since, text in self.transcript.memories if since <= self.position]

    def get_all_memories(self) -> Sequence[str]:
        """Return the same."""
        return self.get_goal_relevant_memories()

    def get_counters(self) -> Counters:
        """Return tool results, failed ones, tokens and cost up to here."""
        return msgspec.structs.replace(self._usage, calls=self._calls, errors=self._errors)


def add_usage(total: Counters, more: Counters) -> Counters:
    """Return the sums of tokens and cost, as far as one of both knows them."""
    sums = {}
    for name in ("tokens_in", "tokens_out", "cost_usd"):
        parts = [part for part in (getattr(total, name), getattr(more, name)) if part is not None]
        sums[name] = sum(parts) if parts else None
    return Counters(**sums)
