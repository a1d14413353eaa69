"""Signs that a run leaves its course, told from its events alone: new matter, standing still, failing, breakdown ..."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from coherence.core.readings import Evidence, excerpt, times
from coherence.state.reducer import AgentState

RECENT_CALLS = 14
"""Model calls among which one is compared, the newest two included."""

CHARS_A_TOKEN = 2.5
"""Characters of recorded text that explain one token more; few, so that text explains much."""

HALF = 2.0
"""Repeats, or failures in a row, at which half of the range is reached."""

MIN_TOLD = 0.3
"""Values from here on are explained."""


@dataclass(frozen=True)
class CourseMetric(ABC):
    """A metric of the data that one detector of a monitor's state keeps.

    Range [0, 1], inverted. ``None`` for a provider that is no monitor's state, and where :attr:`why_unknown` says.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    inverted = True
    in_place = True
    steady = True
    told_from = MIN_TOLD
    detector: ClassVar[str]
    """Name of the detector in the agent's state."""

    @property
    def data(self) -> Any:
        """Data that the detector keeps; ``None`` for a provider that is no monitor's state."""
        return getattr(self.state, self.detector).data if isinstance(self.state, AgentState) else None

    def compute(self) -> float | None:
        """Return the value."""
        return None if self.data is None else self.value(self.data)

    @abstractmethod
    def value(self, data: Any) -> float | None:
        """Return the value of what the detector keeps."""

    def explain(self) -> Evidence | None:
        """Name what makes the value high, with the items of the context where it shows."""
        if (self.compute() or 0.0) < self.told_from:
            return None
        why, seqs = self.reason(self.data)
        items = tuple(at for at, item in enumerate(self.state.context) if item.seq in seqs and item.seq > 0)
        return Evidence(why, "context", items[-4:])

    @abstractmethod
    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Return why the value is high, and the numbers of the events that show it."""


@dataclass(frozen=True)
class Novelty(CourseMetric):
    """Share of the agent's newest step that is about things nobody has spoken of before.

    ``n / (w + 3)`` with *n* the weight of tokens that occur in no request, result, memory or earlier step, and *w* the
    weight of all its tokens. A step is a message of the agent with its calls.

    Range [0, 1], inverted: 0 = nothing new. ``None`` before the first step, for one without a word or a call, and for a
    provider that is no monitor's state. Compare it with the run's own earlier steps.

    Examples
    --------
    >>> from coherence.core.events import Goal, Message
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Fix the login test."))
    >>> state.fold(2, 1.0, Message("assistant", "Now a recipe: bake potatoes with rosemary."))
    >>> round(Novelty(state).compute(), 2)
    0.62
    """

    name = "novelty"
    detector = "assumption"
    why_unknown = "no step of the agent yet"

    def value(self, data: Any) -> float | None:
        """Return the share of the newest step."""
        return None if data.step is None or data.step.silent else min(data.step.novelty, 1.0)

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Name what is new."""
        named = f", such as {', '.join(data.step.entities[:3])}" if data.step.entities else ""
        return f"much of the newest step is about things not spoken of before{named}", [data.step.seq]


@dataclass(frozen=True)
class Stall(CourseMetric):
    """Degree to which the agent's actions repeat each other without coming to anything.

    ``s / (s + 2)`` with *s* the sum over the newest actions of how much each repeats one before it, fading by 0.9 an
    action. The same call with the same result repeats fully, or half if something was changed in between; other words
    for a call that finds nothing or fails alike, as far as the words are alike; a call that waits for something, by
    0.15. See :mod:`coherence.state.progress`.

    Range [0, 1], inverted: 0 = each action brings something. ``None`` before the first result.
    """

    name = "stall"
    detector = "progress"
    why_unknown = "no tool result yet"

    def value(self, data: Any) -> float | None:
        """Return how much the newest actions repeat each other."""
        return data.stall / (data.stall + HALF) if data.tried else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say that nothing came of it."""
        return "the newest actions repeat each other and bring nothing new", data.seqs


@dataclass(frozen=True)
class FailureStreak(CourseMetric):
    """Failures of the newest calls in a row, flagged as failed or not.

    ``f / (f + 2)`` with *f* the failures in a row, those like one before each 0.7; of each success 0.3 is left. A
    search in other words that finds nothing again counts 0.3. What counts as a failure without a flag is told by
    :func:`~coherence.detect.failure_cues.failure_of`; a call that waits, or was asked to come back later,
    counts 0.3.

    Range [0, 1], inverted: 0 = the newest call succeeded. ``None`` before the first result.
    """

    name = "failure_streak"
    detector = "progress"
    told_from = 0.33
    why_unknown = "no tool result yet"

    def value(self, data: Any) -> float | None:
        """Return how long the streak is."""
        return data.failures / (data.failures + HALF) if data.tried else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say that calls failed."""
        one = data.failures < 1.5
        return "one of the newest calls failed" if one else "the newest calls failed one after the other", data.seqs


@dataclass(frozen=True)
class Breakdown(CourseMetric):
    """Signs that the agent's newest messages have lost the thread of language.

    The worst of: words in an order that English does not have, the same groups of words again and again, marks left
    over from a template, letters that nobody in this run has used. Fades by 0.7 a message. Code does not count. See
    :mod:`coherence.detect.breakdown`.

    Range [0, 1], inverted: 0 = sound. ``None`` before the first message of the agent.
    """

    name = "breakdown"
    detector = "breakdown"
    why_unknown = "no message of the agent yet"

    def value(self, data: Any) -> float | None:
        """Return the worst of the newest messages."""
        return float(data.value) if data.messages else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say what is wrong with it."""
        return data.why, [data.seq]


@dataclass(frozen=True)
class IdenticalCalls(CourseMetric):
    """Repetitions of the newest call that came to the very same, without anything changed in between.

    ``n / (n + 1)`` with *n* the times among the last twelve actions, fading by 0.7 an action. Ids and timestamps in
    arguments and results count as the same, other numbers do not. One that was only spelt in another way, or had a few
    words more or fewer, counts where both found nothing or failed alike. A call that waits for something counts 0.15.

    Range [0, 1], inverted: 0 = never, 0.5 = once, 0.67 = twice. ``None`` before the first result.
    """

    name = "identical_calls"
    detector = "progress"
    told_from = 0.5
    why_unknown = "no tool result yet"

    def value(self, data: Any) -> float | None:
        """Return how often."""
        return data.repeats / (data.repeats + 1.0) if data.tried else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say how often."""
        often = times(round(data.repeats) + 1)
        return f"the same call, or one all but the same, came to the same result {often}", data.seqs


@dataclass(frozen=True)
class Reversal(CourseMetric):
    """Changes of what the agent has just changed: to and fro, or one value after the other.

    ``r / (r + 1)`` with *r* of :func:`~coherence.state.progress.reversal_of`, fading by 0.8 an action.

    Range [0, 1], inverted: 0 = nothing is changed twice. ``None`` before the first result.
    """

    name = "reversal"
    detector = "progress"
    why_unknown = "no tool result yet"

    def value(self, data: Any) -> float | None:
        """Return how much."""
        return data.reversals / (data.reversals + 1.0) if data.tried else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say so."""
        return "the newest calls change the same thing again, or take a change back", [data.newest]


@dataclass(frozen=True)
class GoalLoss(CourseMetric):
    """Loss of the goal in the newest summary of the conversation, until the agent's steps show it again.

    One minus the share of the goal's token weight (at most 12) that the summary holds; halved by each step that speaks
    of what was asked. A summary is a compaction, or a system message in mid-run that speaks of one.

    Range [0, 1], inverted: 0 = the summary holds the goal. ``None`` before the first summary.
    """

    name = "goal_loss"
    detector = "goal_loss"
    why_unknown = "the context was never summarised"

    def value(self, data: Any) -> float | None:
        """Return how little."""
        return None if data.value is None else float(data.value)

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Say so."""
        return "the summary that took the place of the conversation does not hold the goal", [data.seq]


@dataclass(frozen=True)
class CostSurge:
    """Surge of the tokens that the newest two model calls took, beyond what the recorded texts explain.

    ``1 - 1 / r`` with *r* the lowest of four ratios, two of each call: of its tokens to the median of those before,
    each plus a token for each 2.5 characters that were said, called or returned since it; and of what the model wrote
    to the median of that. A long text that is read makes every later call dearer, but not what is written; a file that
    is written the other way round: only both together count.

    Range [0, 1], inverted: 0 = as before, 0.5 = twice as much, 0.8 = five times. ``None`` before the third call.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "cost_surge"
    inverted = True
    in_place = True
    told_from = 0.5
    why_unknown = "fewer than three model calls with their usage"

    def compute(self) -> float | None:
        """Return how much more."""
        calls = self.state.facts.spending[-RECENT_CALLS:] if isinstance(self.state, AgentState) else []
        before, newest = calls[:-2], calls[-2:]
        if not before or (usual := median([call.tokens for call in before])) <= 0.0:
            return None
        if min(call.tokens for call in newest) <= usual:  # text that explains more of them cannot raise it
            return 0.0
        more = min(
            call.tokens / median([one.tokens + max(call.chars - one.chars, 0) / CHARS_A_TOKEN for one in before])
            for call in newest
        )
        if more > 1.0 and (written := median([call.output for call in before])) > 0.0:
            more = min(more, *(call.output / written for call in newest))
        return 1.0 - 1.0 / max(more, 1.0)

    def explain(self) -> Evidence | None:
        """Say how much more."""
        value = self.compute() or 0.0
        if value < self.told_from:
            return None
        why = f"the newest model calls take {1 / (1 - value):.0f} times as much as is usual in this run"
        return Evidence(why, "context", ())


@dataclass(frozen=True)
class UnknownId(CourseMetric):
    """Nearness of a call that refers to something by an id that nothing has given.

    1 for a call with an id (letters and two digits) as a whole argument that is in no goal, message of the user or the
    system, memory or tool's result, and in no successful call either; 0.6 as long as no call has named an id that was
    given; fades by 0.7 at each later message or call. Tools that may give a thing its id (``create``, ``upload`` ...)
    do not count, nor does a call before the first result.

    Range [0, 1], inverted: 0 = every id is known. ``None`` before the first result.

    Examples
    --------
    >>> from coherence.core.events import Goal, ToolCall, ToolResult
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Cancel order K7-1207."))
    >>> state.fold(2, 1.0, ToolCall("get_order", b'{"order": "K7-1207"}', "a"))
    >>> state.fold(3, 2.0, ToolResult("K7-1207: shipped", tool_name="get_order"))
    >>> state.fold(4, 3.0, ToolCall("get_order", b'{"order": "B4-5511"}', "b"))
    >>> UnknownId(state).compute()
    1.0
    """

    name = "unknown_id"
    detector = "grounding"
    why_unknown = "no tool result yet"

    def value(self, data: Any) -> float | None:
        """Return how near such a call is."""
        return float(data.unknown) if data.results else None

    def reason(self, data: Any) -> tuple[str, list[int]]:
        """Name the id."""
        return f"a call refers to “{excerpt(data.unknown_id)}”, which nothing has given", [data.unknown_seq]
