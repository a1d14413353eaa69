"""State from functions you already have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from coherence.core.protocols import MaybeAwaitable
from coherence.core.readings import Counters

Texts: TypeAlias = MaybeAwaitable[Sequence[str]]


class CallableState:
    """A state provider of functions, each plain or ``async``, called at every tick.

    Parameters
    ----------
    goals, context, memories, all_memories : callable, optional
        Return a list of texts. A source without a function is empty; ``all_memories`` defaults to ``memories``.
    counters : callable, optional
        Returns :class:`~coherence.core.readings.Counters`, for the scalar metrics.

    Examples
    --------
    >>> messages = ["reading the manual"]
    >>> state = CallableState(goals=lambda: ["install the pump"], context=lambda: messages[-20:])
    >>> state.get_goals(), state.get_goal_relevant_memories()
    (['install the pump'], ())
    """

    def __init__(
        self,
        *,
        goals: Callable[[], Texts] = tuple,
        context: Callable[[], Texts] = tuple,
        memories: Callable[[], Texts] = tuple,
        all_memories: Callable[[], Texts] | None = None,
        counters: Callable[[], Counters] = Counters,
    ) -> None:
        all_memories = memories if all_memories is None else all_memories
        functions = {
            "goals": goals,
            "context": context,
            "memories": memories,
            "all_memories": all_memories,
            "counters": counters,
        }
        for name, function in functions.items():
            if not callable(function):
                raise TypeError(f"{name} must be callable, not {function!r}; for lists use StaticState")
        self.get_goals = goals
        self.get_recent_context = context
        self.get_goal_relevant_memories = memories
        self.get_all_memories = all_memories
        self.get_counters = counters
