"""Goal loss: a summary that takes the place of the conversation, and does not hold what was asked."""

from __future__ import annotations

from collections.abc import Set

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.text_analysis import mass, weight

MAX_ASKED = 400
"""Tokens of what was asked that are remembered, those that say most."""

ASKED_CHARS, SAID_CHARS = 10_000, 10_000
"""Characters that are looked at, half from each end: of a request and a summary, and of a step."""

ENOUGH = 12.0
"""Weight of the goal's tokens that a summary must hold to hold the goal; all, of a shorter goal."""

ON_GOAL = 0.4
"""Share of a step's tokens that were asked for, from which it shows that the goal is still known."""

STEP_WEIGHT = 15.0
"""Of a step with more weight only this much must have been asked for."""

FOUND_AGAIN, KEPT = 0.5, 0.95
"""Share that is left of a loss at a step that shows the goal, and at any other step."""

_SUMMARY = lazy_regex(
    r"compact|summar|condens|shorten|digest|truncat|history|context (?:was|is|has)"
    r"|(?:earlier|previous|prior) (?:turns?|messages?|steps?|conversation)|conversation (?:so far|above)",
)
"""A system message that speaks of this takes the place of what was said before."""


class LostGoal(msgspec.Struct):
    """Memory of the goal, and of its loss; plain data, bounded."""

    goal: list[str] = []
    """Tokens of the goal, sorted."""
    asked: list[str] = []
    """Tokens of the goal and of later requests, sorted."""
    acted: bool = False
    """True if the agent has said or done anything."""
    value: float | None = None
    """Share of the goal that the newest summary lacks, in [0, 1], faded by steps; ``None`` = there was none."""
    seq: int = 0
    """Number of the summary; 0 = of an earlier session."""


class GoalLossDetector(EventDetector[LostGoal]):
    """Follows whether the goal survives summaries of the conversation.

    Examples
    --------
    >>> from coherence.core.events import Compaction, Goal
    >>> detector = GoalLossDetector()
    >>> detector.observe(Observed.of(Goal("Fix the login test of the shop")))
    >>> detector.observe(Observed.of(Compaction("Several tools were called and returned results."), 7))
    >>> detector.data.value
    1.0
    >>> detector.observe(Observed.of(Compaction("Task: fix the login test of the shop. Done: read login.py."), 9))
    >>> detector.data.value
    0.0
    """

    name, data_type = "goal_loss", LostGoal

    def on_goal(self, observed: Observed) -> None:
        """Begin anew with another goal."""
        if observed.new_goal:
            self.restore(LostGoal())
        self._ask(observed, goal=True)

    def on_message(self, observed: Observed) -> None:
        """Take in a request, a step of the agent, or a summary in the place of a system message."""
        role = observed.event.role
        if role == "user":
            self._ask(observed, goal=not self.data.goal)
            if self.data.value is not None:
                self.data.value = 0.0
        elif role == "assistant":
            self._step(observed)
        elif self.data.acted and _SUMMARY.search(observed.text.raw[:ASKED_CHARS].lower()):
            self._summarise(observed)

    def on_tool_call(self, observed: Observed) -> None:
        """Take in a call of the agent."""
        self._step(observed)

    def on_compaction(self, observed: Observed) -> None:
        """Look for the goal in what is left of the conversation."""
        self._summarise(observed)

    def _ask(self, observed: Observed, *, goal: bool) -> None:
        found = observed.text.part(ASKED_CHARS).tokens
        if goal:
            self.data.goal = _weightiest(found)
        self.data.asked = _weightiest(found | set(self.data.asked))

    def _summarise(self, observed: Observed) -> None:
        data = self.data
        wanted = min(mass(set(data.goal)), ENOUGH)
        if wanted:
            held = mass(observed.text.part(ASKED_CHARS).tokens & set(data.goal))
            data.value, data.seq = max(0.0, 1.0 - held / wanted), observed.seq

    def _step(self, observed: Observed) -> None:
        data = self.data
        data.acted = True
        if data.value:
            found = observed.text.part(SAID_CHARS).tokens
            shown = mass(found & set(data.asked)) / (min(mass(found), STEP_WEIGHT) + 1.0)
            data.value *= FOUND_AGAIN if shown > ON_GOAL else KEPT

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.seq = 0


def _weightiest(found: Set[str]) -> list[str]:
    """Return the tokens that say most, sorted."""
    most = found if len(found) <= MAX_ASKED else sorted(found, key=lambda token: (-weight(token), token))[:MAX_ASKED]
    return sorted(most)
