"""Signs that a run leaves its course, told from its events alone: new matter, standing still, failing, breakdown."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.readings import Evidence, times
from coherence.state.reducer import AgentState

HALF = 2.0
"""Repeats, or failures in a row, at which half of the range is reached."""

MIN_TOLD = 0.3
"""Values from here on are explained."""


@dataclass(frozen=True)
class Novelty:
    """How much of the agent's newest step is about things that nobody has spoken of before.

    ``n / (w + 3)`` with *n* the weight of tokens that occur in no request, result, memory or earlier step, and *w* the
    weight of all its tokens. A step is a message of the agent with its calls.

    Range [0, 1], inverted: 0 = nothing new. ``None`` before the first step, for one without a word or a call, and for a
    provider that is no monitor's state. Compare it with the run's own earlier steps.

    Parameters
    ----------
    state : AgentState
        The agent.

    Examples
    --------
    >>> from coherence.core.events import Goal, Message
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Fix the login test."))
    >>> state.fold(2, 1.0, Message("assistant", "Now a recipe: bake potatoes with rosemary."))
    >>> round(Novelty(state).compute(), 2)
    0.62
    """

    state: AgentState
    name = "novelty"
    inverted = True
    in_place = True
    why_unknown = "no step of the agent yet"

    def compute(self) -> float | None:
        """Return the share of the newest step."""
        step = self.state.assumption.data.step if isinstance(self.state, AgentState) else None
        return None if step is None or step.silent else min(step.novelty, 1.0)

    def explain(self) -> Evidence | None:
        """Name what is new."""
        step = self.state.assumption.data.step if isinstance(self.state, AgentState) else None
        if step is None or step.novelty < MIN_TOLD:
            return None
        items = tuple(at for at, item in enumerate(self.state.context) if item.seq == step.seq > 0)
        named = f", such as {', '.join(step.entities[:3])}" if step.entities else ""
        return Evidence(f"much of the newest step is about things not spoken of before{named}", "context", items)


@dataclass(frozen=True)
class Stall:
    """How much the agent's actions repeat each other without coming to anything.

    ``s / (s + 2)`` with *s* the sum over the newest actions of how much each repeats one before it, fading by 0.8 an
    action. The same call with the same result repeats fully, or half if something was changed in between; other words
    for a call that finds nothing or fails alike, as far as the words are alike; a call that waits for something, by
    0.15. See :mod:`coherence.state.progress`.

    Range [0, 1], inverted: 0 = each action brings something. ``None`` before the first result.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "stall"
    inverted = True
    in_place = True
    why_unknown = "no tool result yet"

    def compute(self) -> float | None:
        """Return how much the newest actions repeat each other."""
        data = self.state.progress.data if isinstance(self.state, AgentState) else None
        if data is None or not data.tried:
            return None
        return data.stall / (data.stall + HALF)

    def explain(self) -> Evidence | None:
        """Say how often nothing came of it."""
        if (self.compute() or 0.0) < MIN_TOLD:
            return None
        data = self.state.progress.data
        return Evidence(
            "the newest actions repeat each other and bring nothing new", "context", _items(self.state, data.seqs)
        )


@dataclass(frozen=True)
class FailureStreak:
    """How many of the newest calls failed in a row, whether or not they are flagged as failed.

    ``f / (f + 2)`` with *f* the failures in a row; of each success 0.3 is left. What counts as a failure without a flag
    is told by :func:`~coherence.detect.failure_cues.failure_of`; a call that waits, or was asked to come back later,
    counts 0.3.

    Range [0, 1], inverted: 0 = the newest call succeeded. ``None`` before the first result.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "failure_streak"
    inverted = True
    in_place = True
    why_unknown = "no tool result yet"

    def compute(self) -> float | None:
        """Return how long the streak is."""
        data = self.state.progress.data if isinstance(self.state, AgentState) else None
        return data.failures / (data.failures + HALF) if data is not None and data.tried else None

    def explain(self) -> Evidence | None:
        """Say how many failed."""
        data = self.state.progress.data if isinstance(self.state, AgentState) else None
        if data is None or data.failures < 1.0:
            return None
        count = round(data.failures)
        why = "one of the newest calls failed" if count == 1 else f"calls failed {times(count)} in a row"
        return Evidence(why, "context", _items(self.state, data.seqs))


@dataclass(frozen=True)
class Breakdown:
    """How much the agent's newest messages look as if it had lost the thread of language.

    The worst of: words in an order that English does not have, the same groups of words again and again, marks left
    over from a template, letters that nobody in this run has used. Fades by 0.7 a message. Code does not count. See
    :mod:`coherence.detect.breakdown`.

    Range [0, 1], inverted: 0 = sound. ``None`` before the first message of the agent.

    Parameters
    ----------
    state : AgentState
        The agent.
    """

    state: AgentState
    name = "breakdown"
    inverted = True
    in_place = True
    why_unknown = "no message of the agent yet"

    def compute(self) -> float | None:
        """Return the worst of the newest messages."""
        data = self.state.breakdown.data if isinstance(self.state, AgentState) else None
        return data.value if data is not None and data.messages else None

    def explain(self) -> Evidence | None:
        """Say what is wrong with it."""
        data = self.state.breakdown.data if isinstance(self.state, AgentState) else None
        if data is None or data.value < MIN_TOLD:
            return None
        return Evidence(data.why, "context", _items(self.state, [data.seq]))


def _items(state: AgentState, seqs: list[int]) -> tuple[int, ...]:
    return tuple(at for at, item in enumerate(state.context) if item.seq in seqs and item.seq > 0)[-4:]
