"""Shapes of what the faces show; each encodes to JSON as it is.

Times are Unix seconds, costs US dollars; indices, pressures and scores lie in [0, 1]. ``None`` is unknown.
"""

from __future__ import annotations

from typing import Any

import msgspec


class SessionLine(msgspec.Struct, frozen=True):
    """Row of the overview: one session of one agent."""

    agent: str
    session: str
    parent: str | None
    """Agent that started this one."""
    source: str
    started: float
    last_ts: float
    steps: int
    events: int
    goal: str
    """Beginning of the newest goal, else of the first user message, on one line."""
    band: str
    """``green``, ``yellow``, ``orange``, ``red`` or ``unknown``: now."""
    worst: str
    """Worst band so far."""
    index: float | None
    pressure: float | None
    cause: str
    """Reason of the light or of a refusal, on one line; empty if there is nothing to say."""
    decision: str
    """Newest kind: ``continue``, ``guide``, ``warn`` or ``block``."""
    strip: str
    """Worst band of each part, at most 60 letters of ``gyor?``, oldest first."""
    spark: tuple[float | None, ...]
    """Lowest index of each part, as many as the strip has letters."""
    tokens: int
    cost_usd: float | None
    context: float | None
    """Fill of the context window, if its size is known."""
    label: str | None
    """``good`` or ``bad``."""
    rules: tuple[str, ...]
    """Rules that fired, the most frequent first."""
    refused: int
    """Calls that were refused."""
    outcome: str
    """``succeeded``, ``failed``, or ``ended`` where nobody said which; empty while the task goes on."""
    live: bool
    """``True`` if its newest event is less than a minute old, and none was an outcome of the task since its goal."""


class Overview(msgspec.Struct, frozen=True):
    """Sessions that were asked for, and what there is to ask for."""

    lines: tuple[SessionLine, ...]
    total: int
    """Sessions of the store."""
    matched: int
    """Sessions that fit, shown or not."""
    newest: int
    """Position of the newest event in the store."""
    agents: tuple[str, ...]
    rules: tuple[str, ...]
    partial: bool = False
    """``True`` if the search for a text took so long that events of the oldest sessions were left out."""


class Point(msgspec.Struct, frozen=True):
    """One measured tick, or the worst of several in a row."""

    seq: int
    ts: float
    step: int
    """Steps that were complete."""
    index: float | None
    pressure: float | None
    band: str
    decision: str
    count: int
    """Ticks that it stands for."""


class Mark(msgspec.Struct, frozen=True):
    """Something worth a mark on a timeline."""

    seq: int
    ts: float
    kind: str
    """``firing``, ``refusal``, ``finding``, ``outcome``, ``compaction``, ``unblock`` or ``goal``."""
    text: str


class Timeline(msgspec.Struct, frozen=True):
    """Course of a session between two of its events."""

    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    first: int
    """Number of the first event that was asked for and is there."""
    last: int
    total: int
    """Events of the whole session."""


class EventView(msgspec.Struct, frozen=True):
    """One event of a session."""

    seq: int
    ts: float
    kind: str
    role: str = ""
    tool: str = ""
    text: str = ""
    call: str = ""
    """Arguments of a tool call, as JSON."""
    error: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    model: str = ""


class EvidenceView(msgspec.Struct, frozen=True):
    """Event that a finding rests on."""

    seq: int
    text: str
    start: int = 0
    """First character of the part to highlight; nothing if ``end`` is the same."""
    end: int = 0
    kind: str = ""
    """Kind of the event; empty if it is not kept."""


class FindingView(msgspec.Struct, frozen=True):
    """Result of one rule at a step."""

    rule: str
    severity: str
    score: float | None
    threshold: float | None
    why: str
    action: str
    evidence: tuple[EvidenceView, ...] = ()
    active: bool = True


class FiringView(msgspec.Struct, frozen=True):
    """Guidance that fired, and what came of it."""

    id: str
    agent: str
    session: str
    seq: int
    ts: float
    pattern: str
    arm: str
    """``treatment`` = sent, ``control`` = withheld for comparison."""
    delivered: bool
    text: str
    effect: str
    """Outcome in words; ``not measured yet`` before there is one, no figures of what is not known to have arrived."""
    verdict: str
    """``better``, ``worse``, ``mixed`` or ``same``: how things stood after it, which is no proof that it was the
    reason; empty if nothing is known, or it was not delivered."""
    label: str | None
    lesson: int | None = None
    """Id of the lesson whose fix the text names."""


class RefusalView(msgspec.Struct, frozen=True):
    """Decision that refused something."""

    id: str
    seq: int
    ts: float
    tool: str
    """Tool of the refused call; empty if a step was measured, after which calls are refused."""
    why: str
    unblocked: bool
    label: str | None
    rules: tuple[str, ...] = ()
    reason: str = ""
    """Reason given by whoever let it through."""
    agent: str = ""
    session: str = ""
    count: int = 1
    """Refusals of this kind, of which this is the newest."""
    since: int = 0
    """Number of the first one's event."""


class StepView(msgspec.Struct, frozen=True):
    """One step: what was said and done, and what was measured after it."""

    seq: int
    """Number of the tick that measured it; 0 = it was not measured."""
    step: int
    """Its number, 1 = the first."""
    first: int
    """Number of its first event."""
    last: int
    events: tuple[EventView, ...]
    metrics: dict[str, float | None]
    inverted: tuple[str, ...]
    """Metrics of which a high value is bad."""
    index: float | None
    band: str
    pressure: float | None
    decision: str
    message: str
    findings: tuple[FindingView, ...]
    """Findings that are active, the most severe first."""
    firings: tuple[FiringView, ...]
    cause: str = ""
    coverage: float | None = None
    losses: dict[str, float] = {}
    """Amount that each sign takes from the index."""
    told: dict[str, str] = {}
    """Sign -> evidence in words."""
    unknown: dict[str, str] = {}
    """Metric -> reason why it is unknown."""
    errors: tuple[str, ...] = ()
    refusals: tuple[RefusalView, ...] = ()


class OriginView(msgspec.Struct, frozen=True):
    """Events that taught a lesson."""

    agent: str
    session: str
    seqs: tuple[int, ...]


class LessonView(msgspec.Struct, frozen=True):
    """Error that was fixed once, and how."""

    id: int
    pattern: str
    error: str
    fix: str
    tool: str
    count: int
    helped: int
    failed: int
    retired: bool
    created: float
    seen: float
    origins: tuple[OriginView, ...] = ()
    role: str = ""
    """In a session: ``told`` = its fix was told to the agent, ``learned`` = it was learned here."""


class SessionView(msgspec.Struct, frozen=True):
    """One session as a whole."""

    line: SessionLine
    firings: tuple[FiringView, ...]
    refusals: tuple[RefusalView, ...]
    lessons: tuple[LessonView, ...]
    ended: str
    """End of its newest task in words; empty if it has not ended."""
    goals: tuple[str, ...] = ()
    calls: int = 0
    errors: int = 0
    first: int = 0
    """Number of its first event that is kept."""
    last: int = 0
    subagents: tuple[tuple[str, str], ...] = ()
    """(agent, session) of those that it started."""
    cause: str = ""
    """Reason of the light as a whole, of which the line has the beginning."""
    comment: str = ""
    """Newest comment on a label."""


class RateView(msgspec.Struct, frozen=True):
    """One amount of two sessions."""

    name: str
    unit: str
    one: float | None
    other: float | None
    difference: float | None
    """The other minus the one."""


class Comparison(msgspec.Struct, frozen=True):
    """Two sessions side by side."""

    one: SessionView
    other: SessionView
    one_timeline: Timeline
    other_timeline: Timeline
    rates: tuple[RateView, ...]
    findings: tuple[tuple[str, int, int], ...]
    """(rule, times that it fired in the one, in the other), the largest difference first."""


class FleetAgent(msgspec.Struct, frozen=True):
    """Agent of the fleet, by its newest session."""

    agent: str
    parent: str | None
    session: str
    band: str
    index: float | None
    own: float
    """Own pressure."""
    pressure: float
    """Own pressure, or what reaches it from others if that is higher."""
    path: tuple[str, ...]
    """Agents on the way of the pressure, from its origin to this one."""
    live: bool


class TrustEdge(msgspec.Struct, frozen=True):
    """Pressure that one agent passes on to another."""

    a: str
    """Whose pressure leaks."""
    b: str
    """To whom."""
    trust: float
    received: float
    """Pressure that reaches ``b`` over this edge now."""
    fixed: bool = False
    """``True`` if outcomes do not change the trust."""


class FleetView(msgspec.Struct, frozen=True):
    """All agents and who is affected by whom."""

    agents: tuple[FleetAgent, ...]
    edges: tuple[TrustEdge, ...]


class PatchView(msgspec.Struct, frozen=True):
    """Patch of a guarded agent's configuration."""

    agent: str
    number: int
    patch: dict[str, Any]
    before: dict[str, Any] | None
    """Configuration before it."""
    outcome: str
    why: str
    asked_at: float
    served_at: float | None
    ended_at: float | None
    metric: str | None
    evidence: float | None
    limit: float | None
    share: float | None
    """Of calls that it served while on trial."""
    can_roll_back: bool
    """``True`` if it is in force, so that the configuration before it can be restored."""


class TrialEvidence(msgspec.Struct, frozen=True):
    """Evidence of the calls that a patch on trial has served, by one metric."""

    metric: str
    calls: int
    beyond: int
    """Of these failures, or calls in what was the worst third."""
    harm: float
    """Evidence that it has got worse; 1 = none."""
    roll_back_at: float
    safe: float
    """Evidence that it has not, by a margin; 1 = none."""
    promote_at: float


class GuardedView(msgspec.Struct, frozen=True):
    """Agent under guard."""

    agent: str
    calls: int
    failures: int
    failures_in_row: int
    phase: str
    trouble: str
    failing: bool
    trial_calls: int | None
    """Calls that the patch on trial has served; ``None`` = none is on trial."""
    trial_most: int | None
    evidence: tuple[TrialEvidence, ...]
    patches: tuple[PatchView, ...]
    """The newest first."""


class GuardView(msgspec.Struct, frozen=True):
    """All agents under guard."""

    agents: tuple[GuardedView, ...]


class ExperimentView(msgspec.Struct, frozen=True):
    """Effect of one pattern's guidance, sent minus withheld; above 0 it helps."""

    pattern: str
    firings: int
    treatments: int
    delivered: int
    pairs: int
    effect: float | None
    low: float
    high: float
    verdict: str
    decided_at: int | None
    steady: bool
    policy: str | None
    """``promote`` = always sent, ``retire`` = never, ``None`` = still an experiment."""
    needed: int = 0
    """Pairs without which there is no verdict."""
