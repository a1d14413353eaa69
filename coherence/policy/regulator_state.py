"""What the regulator remembers between ticks: plain data, changed only by folding."""

from __future__ import annotations

import msgspec

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision, FiringOutcome, Guidance
from coherence.core.events import BLOCK, Event, Feedback, Goal, Message, Outcome, is_success
from coherence.policy.budgets import is_budget
from coherence.policy.corrections import Corrections
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.known_errors import Recollection
from coherence.state.data import Facts
from coherence.state.history import renew

HORIZONS = (1, 5, 10)
"""Actions after a firing at which one looks what became of it."""

FRESH = 1
"""Steps for which a firing is worth telling."""

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


class Standing(msgspec.Struct):
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
    corrections: Corrections = msgspec.field(default_factory=Corrections)
    recollection: Recollection = msgspec.field(default_factory=Recollection)
    """Of errors and what fixed them."""
    born: int = 0
    """Steps of the agent's life before this state began."""

    @property
    def last_step(self) -> int:
        """Step of the newest firing of any pattern, -1 before the first."""
        return max(self.fired_step.values(), default=-1)

    def observe(self, event: Event) -> None:
        """Take in an event that is no tick."""
        if type(event) is Message:
            if self.newest is not None and self.newest.id == event.firing:
                self.newest = None
        elif type(event) is Feedback and event.about == BLOCK and event.score is None:  # else a judgement of a firing
            self._unblock(event.decision)
        elif type(event) is Outcome and self.open:
            known = is_success(event)
            self.ended = known if known is not None else self.ended
        elif type(event) is Goal:
            self.open = self.open if self.ended is not None else []
            self.allowed, self.refused_calls = [], []

    def guidance(self, steps: int) -> Guidance | None:
        """Return the newest firing if it still says something about now.

        It was not delivered, and fired one step ago at most, or tells of an error after which nothing was called yet:
        the results of parallel calls are steps too.
        """
        newest = self.newest
        current = newest is not None and any(found.lesson == newest.lesson for found in self.recollection.recalled)
        return newest if current or steps - self.last_step <= FRESH else None

    def _unblock(self, seq: int | None) -> None:
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

    def take_check(self, decision: Decision, config: MonitorConfig, key: bytes = b"") -> None:
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

    def take(self, decision: Decision, facts: Facts, pressure: float, outcomes: tuple[FiringOutcome, ...]) -> None:
        """Take in what was decided at a tick."""
        active = {finding.rule for finding in decision.findings if finding.active}
        self.held = {rule: self.held.get(rule, facts.steps) for rule in sorted(active)}
        self.blocking = [finding.rule for finding in decision.findings if finding.acts == "block"]
        self.lifted = [finding.rule for finding in decision.findings if finding.lifted and finding.severity == "block"]
        if all(is_budget(rule) for rule in self.blocking):
            self.refusals = 0
        self._learn_transition(facts, pressure)
        for outcome in outcomes:
            self._take_outcome(outcome)
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

    def _take_outcome(self, outcome: FiringOutcome) -> None:
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
