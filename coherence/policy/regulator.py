"""The regulator: from an appraisal, the rules and the budgets to one decision, and what it remembers between events."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coherence.core.config import MonitorConfig, PressureConfig, RuleConfig
from coherence.core.decisions import (
    EVIDENCE,
    KINDS,
    Appraisal,
    Blocking,
    Decision,
    DecisionKind,
    Finding,
    FiringOutcome,
    Guidance,
    Mode,
    as_shown,
    worst_kind,
)
from coherence.core.events import BLOCK, Feedback, Received, is_success
from coherence.core.readings import one_line
from coherence.detect.detector import EventDetector, Observed
from coherence.lessons.troubles import Solved
from coherence.policy.budgets import is_budget
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.known_errors import LessonOutcome, Recollection, known_error
from coherence.policy.one_call import OF_ONE_CALL
from coherence.policy.rules.finding_builders import shown_error
from coherence.state.data import Action, Facts
from coherence.state.reducer import AgentState

OF_MODE: dict[Mode, DecisionKind] = {
    Mode.OBSERVE: "continue",
    Mode.GUIDE: "guide",
    Mode.WARN: "warn",
    Mode.BLOCK: "block",
}

ADVICE: dict[DecisionKind, str] = {
    "continue": "",
    "guide": "look at the cause before going on",
    "warn": "stop repeating what fails; re-read the goal and the last results",
    "block": "stop and have somebody look at it",
}

TELLING = 0.1
"""Pressure from which a signal is named beside the highest one."""

STEADY = RuleConfig(release=0.0, dwell=0)
"""Pressure and budgets follow their numbers at once: the mode and the limits do, too."""

STEADY_RULES = ("pressure", "received_pressure", HIJACK, "harmful_call", "forbidden_call")
"""Rules without hysteresis, beside the budgets: one call says nothing of whether the next was asked for."""

DEFAULT = RuleConfig()


def pressure_finding(appraisal: Appraisal, config: PressureConfig, state: AgentState) -> Finding:
    """Return what the pressure says."""
    kind, facts = OF_MODE[appraisal.mode], state.facts
    patient = kind in ("warn", "block") and _asked_to_wait(facts)
    kind = "guide" if patient else kind
    causes = appraisal.causes()
    last = shown_error(facts.actions[-1], ", the last") if facts.error_streak and facts.actions else ""
    parts = [appraisal.floor + last] if appraisal.floor else []
    telling = [name for at, name in enumerate(causes) if not at or appraisal.signals[name].pressure >= TELLING]
    for name in telling[: 2 if parts else 3]:
        signal = appraisal.signals[name]
        usual = f" (usual {as_shown(name, signal.usual):.2f})" if signal.usual is not None else ""
        value = "" if signal.value is None else f" {as_shown(name, signal.value):.2f}"
        parts.append(f"{name}{value}{usual}")
    why = f"pressure {appraisal.pressure:.2f}: " + (", ".join(parts) if parts else "nothing is unusual")
    if patient:
        why += "; these calls wait, or were asked to: an outage rather than an agent that is lost"
    if appraisal.learned_from:
        why += f" (thresholds learned from {appraisal.learned_from})"
    # What happened in a session before this one has no number here.
    about: list[int] = []
    if facts.error_streak or "error_rate" in causes:
        about = [action.seq for action in facts.actions if action.error and action.seq]
    elif facts.same_streak > 1:
        about = [action.seq for action in facts.actions[-facts.same_streak :] if action.seq]
    return Finding(
        rule="pressure",
        severity="guide" if kind == "continue" else kind,
        active=kind != "continue",
        score=appraisal.pressure,
        threshold=_edge(kind, config),
        evidence=tuple(about[-EVIDENCE:]) or ((facts.step_seq,) if facts.step_seq else ()),
        why=why,
        action=ADVICE[kind],
    )


def _asked_to_wait(facts: Facts) -> bool:
    """Tell whether all of the last errors in a row are of calls that wait, or were asked to come back later."""
    failed = facts.actions[-facts.error_streak :] if facts.error_streak else []
    return bool(failed) and all(action.came.rate_limited or action.made.waits for action in failed)


def received_finding(received: Received | None, config: PressureConfig) -> Finding | None:
    """Return what the pressure of another agent says, ``None`` if none came."""
    if received is None:
        return None
    pressure = received.pressure
    kind: DecisionKind = "continue"
    for name, edge in (("guide", config.guide), ("warn", config.warn), ("block", config.block)):
        if pressure >= edge:
            kind = name  # type: ignore[assignment]  # one of the kinds
    way = " > ".join(received.path)
    return Finding(
        rule="received_pressure",
        severity="guide" if kind == "continue" else kind,
        active=kind != "continue",
        score=pressure,
        threshold=_edge(kind, config),
        why=f"{received.path[0]} is in trouble, and {pressure:.2f} of it reaches this agent ({way})",
        action=f"look at {received.path[0]} before relying on it",
    )


def _edge(kind: DecisionKind, config: PressureConfig) -> float:
    return {"continue": config.guide, "guide": config.guide, "warn": config.warn, "block": config.block}[kind]


def regulate(
    findings: Sequence[Finding], standing: RegulatorState, steps: int, rules: Mapping[str, RuleConfig]
) -> list[Finding]:
    """Return the findings as the configuration has them: threshold, hysteresis, dwell, and the most they may ask for.

    Parameters
    ----------
    findings : sequence of Finding
        As the rules gave them.
    standing : RegulatorState
        Which were active, and since which step; not changed.
    steps : int
        The step now.
    rules : mapping
        Rule -> how it may act; a part of a name up to a dot stands for all that begin with it.
    """
    made = []
    for finding in findings:
        name = finding.rule
        config = rules.get(name) or rules.get(name.partition(".")[0]) if rules else None
        if config is None:
            config = STEADY if name in STEADY_RULES or "." in name else DEFAULT
        if not config.enabled:
            continue
        made.append(_regulated(finding, config, standing.held.get(name), steps, name in standing.lifted))
    return made


def _regulated(finding: Finding, config: RuleConfig, since: int | None, steps: int, lifted: bool) -> Finding:
    active, threshold, severity = finding.active, finding.threshold, finding.severity
    if config.threshold is not None:
        threshold = config.threshold
        active = finding.score >= threshold
        if finding.rule == HIJACK:
            threshold = max(threshold, finding.threshold)  # that of a refusal is stricter, and its text names it
    if not active and since is not None:
        active = steps - since < config.dwell or finding.score > threshold * (1.0 - config.release)
    if KINDS.index(severity) > KINDS.index(config.most):
        severity = config.most
    blocks = active and severity == "block"
    # a budget stays lifted for as long as it would refuse: the limit of a tool that is not in use does not block
    lifted = lifted and (finding.score >= 1.0 if is_budget(finding.rule) else blocks)
    if (active, threshold, severity, lifted) == (finding.active, finding.threshold, finding.severity, False):
        return finding
    why = finding.why or (f"{finding.rule} has only just calmed down" if active else "")
    return msgspec.structs.replace(
        finding, active=active, threshold=threshold, severity=severity, lifted=lifted, why=why
    )


def make_decision(
    seq: int, findings: Sequence[Finding], extra: str = "", *, kind: DecisionKind | None = None
) -> Decision:
    """Return the decision: of the given kind, else what the worst active finding asks for."""
    active = [finding for finding in findings if finding.active]
    if not active:
        return Decision(seq=seq, kind=kind or "continue", findings=tuple(sorted(findings, key=_mildness)))
    ordered = sorted(findings, key=_mildness)
    active = ordered[: len(active)]
    first = active[0]
    # What rests on the same events is the same trouble in other words.
    others = [finding for finding in active[1:] if finding.evidence != first.evidence or not first.evidence]
    told = [first, *others]
    message = "; ".join(finding.why for finding in told[:2])
    if active[0].action:
        message = f"{message}. {active[0].action[0].upper()}{active[0].action[1:]}."
    kind = kind or worst_kind([finding.acts for finding in active])
    return Decision(seq=seq, kind=kind, findings=tuple(ordered), message=one_line(message + extra))


def _mildness(finding: Finding) -> tuple[bool, int, float]:
    return not finding.active, -KINDS.index(finding.acts if finding.active else finding.severity), -finding.score


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


class Pending(msgspec.Struct):
    """A firing whose effect is not known yet."""

    id: str
    pattern: str
    results: int
    """Tool results before it."""
    pressure: float
    tool: str
    error: bool
    """True if the newest action had failed."""
    done: list[int] = []
    """Horizons that were looked at."""


class RefusedCall(msgspec.Struct, frozen=True):
    """A call that was refused."""

    seq: int
    """Number of the question; -1 = of an earlier session."""
    call: bytes = b""
    """Key of the call, if it was refused for what it is itself and nobody has let it through."""
    blocked: bool = False
    """True if something else refused it (too)."""
    ts: float = 0.0
    """Unix time of the question; 0 = not known."""


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
    refused_calls: list[RefusedCall] = []
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
    """Success of a task whose firings do not know it yet."""
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

    @property
    def blocks(self) -> Blocking:
        """Rules and refused call that :meth:`unblock` would end."""
        newest = self.refused_calls[-1] if self.refused_calls else None
        return Blocking(tuple(self.blocking), newest.seq if newest is not None and newest.call else None)

    def guidance(self, steps: int) -> Guidance | None:
        """Return the newest firing if it still says something about now.

        It was not delivered, and fired one step ago at most, or tells of an error after which nothing was called yet:
        the results of parallel calls are steps too.
        """
        newest = self.newest
        if newest is None:
            return None
        current = any(found.lesson == newest.lesson for found in self.recollection.recalled)
        return newest if current or steps - self.last_step <= FRESH else None

    def unblock(self, seq: int | None) -> None:
        """Answer a refusal, ``None``: the newest; then whatever blocks ends, though it may have refused no call yet."""
        answered = next((each for each in reversed(self.refused_calls) if seq in (None, each.seq)), RefusedCall(0))
        if seq is None or answered.blocked:
            self._lift(self.blocking)
        if answered.call:
            self.allowed = [*self.allowed, answered.call][-MAX_ALLOWED:]
            known = msgspec.structs.replace(answered, call=b"")
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

    def add_check(self, decision: Decision, config: MonitorConfig, key: bytes = b"", ts: float = 0.0) -> None:
        """Take in what was answered to the question whether a call may run; ``key``: which call, ``ts``: when.

        A call that was refused for what it is itself wears no block down, and makes none.
        """
        if decision.kind != "block":
            return
        blocking = [finding.rule for finding in decision.findings if finding.acts == "block"]
        others = [rule for rule in blocking if rule not in OF_ONE_CALL]
        itself = len(others) < len(blocking)
        refusal = RefusedCall(decision.seq, key if itself else b"", blocked=bool(others), ts=ts)
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
        self.lifted = [finding.rule for finding in decision.findings if finding.lifted]
        if all(is_budget(rule) for rule in self.blocking):  # also where nothing blocks any more
            self.refusals = 0
        for outcome in outcomes:
            self._add_outcome(outcome)
        self.pending = [pending for pending in self.pending if HORIZONS[-1] not in pending.done]
        self.results = facts.results
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
        self.lessons: deque[Solved | LessonOutcome] = deque(maxlen=MAX_LESSONS)
        """Lessons from events, until somebody takes it; not part of the data."""

    def on_goal(self, observed: Observed) -> None:
        """Begin another task."""
        data = self.data
        # Firings of a task that has ended wait for the next tick, which tells them its outcome.
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
