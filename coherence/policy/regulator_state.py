"""What the regulator remembers between ticks: plain data, changed only by folding."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision, Finding, FiringOutcome, Guidance
from coherence.core.events import BLOCK, Feedback, is_success
from coherence.detect.detector import EventDetector, Observed
from coherence.lessons.episodes import Solved
from coherence.policy.budgets import is_budget
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.known_errors import Judged, Recollection, known_error
from coherence.state.data import Action, Facts
from coherence.state.history import renew
from coherence.state.reducer import AgentState

HORIZONS = (1, 5, 10)
"""Actions after a firing at which one looks what became of it."""

FRESH = 1
"""Steps for which a firing is worth telling."""

MAX_UNEXPLAINED = 3
"""Errors that are looked up at one tick."""

MAX_LESSONS = 64
"""Lessons that wait to be written; older ones leave."""

MAX_PENDING = 16
MAX_ALLOWED = 16
MAX_REFUSED = 64
MAX_OPEN = 32
MAX_TRANSITIONS = 64
THEN = "\n"
"""Between two tools' names; names have no line breaks."""


class Pending(msgspec.Struct):
    """A firing whose effect is not known yet."""

    id: str
    pattern: str
    results: int
    """Tool results before it."""
    pressure: float
    tool: str
    error: bool
    """Whether the newest action had failed."""
    done: list[int] = []
    """Horizons that were looked at."""


class Transition(msgspec.Struct):
    """What calling one tool after an error of another did."""

    count: int = 0
    change: float = 0.0
    """Mean fall of the pressure."""


class Refusal(msgspec.Struct, frozen=True):
    """A call that was refused."""

    seq: int
    """Number of the question; -1 = of an earlier session."""
    call: bytes = b""
    """Which call, if it was refused for what it is itself and nobody has let it through."""
    blocked: bool = False
    """Whether something else refused it (too)."""


class RegulatorState(msgspec.Struct):
    """Everything that regulating remembers."""

    held: dict[str, int] = {}
    """Active rule -> step since which it is."""
    blocking: list[str] = []
    """Rules that block now."""
    lifted: list[str] = []
    """Rules whose block was ended before they calmed down."""
    refusals: int = 0
    """Calls refused in this block."""
    refused_calls: list[Refusal] = []
    """The newest refusals since the newest goal."""
    allowed: list[bytes] = []
    """Such calls that somebody has let through since, until there is another goal; the newest."""
    fired: dict[str, int] = {}
    """Pattern -> firings so far."""
    fired_step: dict[str, int] = {}
    """Pattern -> step of its newest firing."""
    newest: Guidance | None = None
    """The newest firing, until it is delivered."""
    pending: list[Pending] = []
    open: list[str] = []
    """Firings of the task that has not ended."""
    ended: bool | None = None
    """How a task ended whose firings do not know it yet."""
    transitions: dict[str, Transition] = {}
    """Tool that failed, line break, tool called next -> what it did to the pressure."""
    pressure: float = 0.0
    """At the newest tick."""
    results: int = 0
    """Tool results at the newest tick."""
    recollection: Recollection = msgspec.field(default_factory=Recollection)
    """Of errors and what fixed them."""
    born: int = 0
    """Steps of the agent's life before this state began."""

    @property
    def last_step(self) -> int:
        """Step of the newest firing of any pattern, -1 before the first."""
        return max(self.fired_step.values(), default=-1)

    def guidance(self, steps: int) -> Guidance | None:
        """Return the newest firing if it still says something about now.

        It was not delivered, and fired one step ago at most, or tells of an error after which nothing was called yet:
        the results of parallel calls are steps too.
        """
        newest = self.newest
        current = newest is not None and any(found.lesson == newest.lesson for found in self.recollection.recalled)
        return newest if current or steps - self.last_step <= FRESH else None

    def unblock(self, seq: int | None) -> None:
        """Answer a refusal, ``None``: the newest; then whatever blocks ends, though it may have refused no call yet."""
        answered = next((each for each in reversed(self.refused_calls) if seq in (None, each.seq)), Refusal(0))
        if seq is None or answered.blocked:
            self._lift(self.blocking)
        if answered.call:
            self.allowed = [*self.allowed, answered.call][-MAX_ALLOWED:]
            known = Refusal(answered.seq, blocked=answered.blocked)
            self.refused_calls = [known if each is answered else each for each in self.refused_calls]

    def renumber(self) -> None:
        """Let the next event be number 1: a refusal of an earlier session cannot be named any more."""
        self.refused_calls = [msgspec.structs.replace(refusal, seq=-1) for refusal in self.refused_calls]
        self.newest = None
        self.recollection.renumber()

    def _lift(self, rules: list[str]) -> None:
        self.lifted += [rule for rule in rules if rule not in self.lifted]
        self.blocking = [rule for rule in self.blocking if rule not in self.lifted]
        self.refusals = 0

    def add_check(self, decision: Decision, config: MonitorConfig, key: bytes = b"") -> None:
        """Take in what was answered to the question whether a call may run; ``key``: which call.

        A call that was refused for what it is itself wears no block down, and makes none.
        """
        if decision.kind != "block":
            return
        blocking = [finding.rule for finding in decision.findings if finding.acts == "block"]
        others = [rule for rule in blocking if rule != HIJACK]
        refusal = Refusal(decision.seq, key if HIJACK in blocking else b"", blocked=bool(others))
        self.refused_calls = [*self.refused_calls, refusal][-MAX_REFUSED:]
        if not others:
            return
        self.blocking = others
        wearing = [rule for rule in self.blocking if not is_budget(rule)]
        if wearing:
            self.refusals += 1
            if self.refusals >= config.refusals:
                self._lift(wearing)

    def add_decision(
        self, decision: Decision, facts: Facts, pressure: float, outcomes: tuple[FiringOutcome, ...]
    ) -> None:
        """Take in what was decided at a tick."""
        active = {finding.rule for finding in decision.findings if finding.active}
        self.held = {rule: self.held.get(rule, facts.steps) for rule in sorted(active)}
        self.blocking = [finding.rule for finding in decision.findings if finding.acts == "block"]
        self.lifted = [finding.rule for finding in decision.findings if finding.lifted and finding.severity == "block"]
        if all(is_budget(rule) for rule in self.blocking):
            self.refusals = 0
        self._learn_transition(facts, pressure)
        for outcome in outcomes:
            self._add_outcome(outcome)
        self.pending = [pending for pending in self.pending if HORIZONS[-1] not in pending.done]
        self.pressure, self.results = pressure, facts.results
        guidance = decision.guidance
        if guidance is not None:
            pattern = guidance.pattern
            self.fired[pattern] = self.fired.get(pattern, 0) + 1
            self.fired_step[pattern] = facts.steps
            self.newest = guidance
            self.recollection.tell(guidance)
            last = facts.actions[-1] if facts.actions else None
            tool, error = (last.tool, last.error) if last is not None else ("", False)
            fired = Pending(guidance.id, pattern, facts.results, pressure, tool, error)
            self.pending = [*self.pending, fired][-MAX_PENDING:]
            self.open = [*self.open, guidance.id][-MAX_OPEN:]

    def _add_outcome(self, outcome: FiringOutcome) -> None:
        if outcome.horizon == 0:
            self.open, self.ended = [], None
        for pending in self.pending:
            if pending.id == outcome.firing:
                pending.done.append(outcome.horizon)

    def _learn_transition(self, facts: Facts, pressure: float) -> None:
        """Learn what the call after an error did, if exactly one result came since the last tick."""
        if facts.results != self.results + 1 or len(facts.actions) < 2 or not facts.actions[-2].error:
            return
        key = f"{facts.actions[-2].tool[:64]}{THEN}{facts.actions[-1].tool[:64]}"
        known = self.transitions.get(key) or Transition()
        known.count += 1
        known.change += (self.pressure - pressure - known.change) / known.count
        renew(self.transitions, key, known, MAX_TRANSITIONS)


class RegulatorMemory(EventDetector[RegulatorState]):
    """Follows what happens to firings, blocks and known errors.

    Parameters
    ----------
    state : AgentState
        The agent, which has folded each event before.
    """

    name, data_type = "regulator", RegulatorState

    def __init__(self, state: AgentState) -> None:
        super().__init__()
        self._state = state
        self.lessons: deque[Solved | Judged] = deque(maxlen=MAX_LESSONS)
        """What events have taught, until somebody takes it; not part of the data."""

    def on_goal(self, observed: Observed) -> None:
        """Begin another task."""
        data = self.data
        data.open = data.open if data.ended is not None else []
        data.allowed, data.refused_calls = [], []
        data.recollection.end_task()

    def on_message(self, observed: Observed) -> None:
        """Note that a firing has reached the agent."""
        data, firing = self.data, observed.event.firing
        if data.newest is not None and data.newest.id == firing:
            data.newest = None
        if firing is not None:
            data.recollection.mark_delivered(firing)

    def on_tool_call(self, observed: Observed) -> None:
        """Note a call, which may be the fix of an error."""
        self.data.recollection.troubles.observe_call(observed.event)

    def on_tool_result(self, observed: Observed) -> None:
        """Learn from a result what fixed an error."""
        called = self._state.facts.actions[-1].called
        self.lessons.extend(self.data.recollection.add_result(observed.seq, observed.event, called))

    def on_feedback(self, observed: Observed) -> None:
        """End a block, unless the feedback is a judgement of a firing."""
        event: Feedback = observed.event
        if event.about == BLOCK and event.score is None:
            self.data.unblock(event.decision)

    def on_outcome(self, observed: Observed) -> None:
        """Note how a task with firings ended."""
        data = self.data
        known = is_success(observed.event)
        if data.open and known is not None:
            data.ended = known
        data.recollection.end_task()

    def on_tick(self, observed: Observed) -> None:
        """Note which lessons were found for the newest errors."""
        actions = self._state.facts.actions
        if observed.event.recalled is not None and actions:
            self.data.recollection.recall(actions[-1].seq, observed.event.recalled)

    def findings(self, state: Any, reading: Any, appraisal: Any) -> list[Finding]:
        """Return that the newest errors were fixed before, if anything is known of them."""
        found = known_error(self.data.recollection)
        return [] if found is None else [found]

    @property
    def unexplained(self) -> list[Action]:
        """Failed actions since the newest tick whose error nobody has looked up, the newest first, three at most.

        Those count after which the agent has called nothing yet (a parallel call may have succeeded), and those that
        still wait for their fix.
        """
        facts, recollection = self._state.facts, self.data.recollection
        waiting = {trouble.newest for trouble in recollection.troubles.open}
        found: list[Action] = []
        newest_call = 0
        for action in reversed(facts.actions[-max(facts.results - self.data.results, 1) :]):
            new = action.error and not action.came.rate_limited and action.seq > recollection.looked
            if new and (newest_call < action.seq or action.seq in waiting):
                found.append(action)
            newest_call = max(newest_call, action.called)
        return found[:MAX_UNEXPLAINED]

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.renumber()
