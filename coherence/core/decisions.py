"""The frozen nouns of judgement: signals, appraisal, findings, decision."""

from __future__ import annotations

from enum import StrEnum
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.events import Received
from coherence.core.readings import FrozenDict, excerpt

DecisionKind: TypeAlias = Literal["continue", "guide", "warn", "block"]
"""Decisions, from mild to severe: go on, give help, inform somebody, stop."""

Arm: TypeAlias = Literal["treatment", "control"]
"""Arm of a randomised comparison: sent (``treatment``) or withheld (``control``)."""

EVIDENCE = 8
"""Largest number of events that a finding names."""

KINDS: tuple[DecisionKind, ...] = ("continue", "guide", "warn", "block")
"""From mild to severe."""


Policy: TypeAlias = Literal["promote", "retire"]
"""Effect of a verdict on a pattern of guidance: always sent, or never."""


class Mode(StrEnum):
    """Range of the pressure, in a word. A mode compares equal to its word."""

    OBSERVE = "observe"
    GUIDE = "guide"
    WARN = "warn"
    BLOCK = "block"


class Signal(msgspec.Struct, frozen=True):
    """One signal against this agent's own baseline."""

    value: float | None
    """Compared value, in [0, 1]; ``None`` = unknown."""
    usual: float | None
    """The baseline's mean before this value was learned; ``None`` where a signal is judged absolutely."""
    z: float
    """Distance above the usual in standard deviations; 0 without a baseline."""
    pressure: float
    """In [0, 1], 0 = calm."""


class Appraisal(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a reading with this agent's own baselines."""

    seq: int
    """The tick's event number."""
    pressure: float
    """The agent's own pressure in [0, 1], 0 = calm; higher is worse."""
    mode: Mode
    """Range of the own pressure."""
    signals: FrozenDict[str, Signal] = FrozenDict()
    """Comparison of each signal."""
    floor: str = ""
    """Cause, in words, that holds the pressure above its signals: ``4 errors in a row``."""
    received: Received | None = None
    """Pressure from another agent, if there is any."""
    learned_from: str = ""
    """Source of learned thresholds, in words; empty = the shipped ones."""

    @property
    def effective(self) -> float:
        """The agent's own pressure or what came from other agents, whichever is higher."""
        return max(self.pressure, self.received.pressure) if self.received is not None else self.pressure

    def causes(self) -> list[str]:
        """Return the signals under pressure, highest first."""
        loud = [name for name, signal in self.signals.items() if signal.pressure > 0]
        return sorted(loud, key=lambda name: (-self.signals[name].pressure, name))


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one rule."""

    rule: str
    """Name of the rule."""
    severity: DecisionKind
    """Decision that the rule asks for while it is active."""
    active: bool = False
    """``True`` once the score has reached the threshold, until it has fallen far enough below it."""
    score: float
    """Strength in [0, 1]; it is given below the threshold, too."""
    threshold: float
    """Score from which the rule is active, in [0, 1]."""
    evidence: tuple[int, ...] = ()
    """Numbers of the events it is about."""
    why: str = ""
    """One plain sentence."""
    action: str = ""
    """Suggestion for people."""
    lifted: bool = False
    """``True`` if somebody has ended the finding's block; it then counts as a warning until it calms down."""

    @property
    def acts(self) -> DecisionKind:
        """The mildest decision that the finding allows now; ``continue`` while it is inactive."""
        if not self.active:
            return "continue"
        return "warn" if self.lifted and self.severity == "block" else self.severity

    def __str__(self) -> str:
        return f"{self.rule}: {self.why}"


class Guidance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One firing of a pattern: a short factual text for the agent, or the record that it was withheld."""

    id: str
    """The firing's id: unique in a store."""
    pattern: str
    """The rule whose finding fired."""
    arm: Arm
    """``treatment`` = sent, ``control`` = withheld."""
    pair: int | None = None
    """Firings of one pattern are randomised in pairs; this is the pair's number. ``None``: not randomised."""
    text: str = ""
    """Text for the agent; empty in the control arm."""
    withheld: str = ""
    """Withheld text of the control arm."""
    evidence: tuple[int, ...] = ()
    """Numbers of the events it is about."""
    lesson: int | None = None
    """Id of the lesson whose fix the text names."""

    def __bool__(self) -> bool:
        return bool(self.text)

    def __str__(self) -> str:
        return self.text


class Blocking(msgspec.Struct, frozen=True):
    """Rules and call that refuse an agent's calls now, and end by ``unblock``. False in a condition if nothing does."""

    rules: tuple[str, ...] = ()
    """Rules that block."""
    call: int | None = None
    """Number of the question by which the newest refused call was refused for what it is itself; ``None``: it was not,
    or somebody has let it through; -1: it was asked in an earlier session."""

    def __bool__(self) -> bool:
        return bool(self.rules) or self.call is not None


class FiringOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of an agent some actions after a firing. ``None`` = unknown."""

    firing: str
    """The firing's id."""
    horizon: int
    """Actions since the firing: 1, 5 or 10; 0 = the end of the task."""
    pressure_change: float | None = None
    """Pressure then minus pressure now, in [-1, 1]; higher is better."""
    error_resolved: bool | None = None
    """``True`` if the newest action succeeded; ``None`` if the firing was about no error."""
    tool_switched: bool | None = None
    """``True`` if the newest action uses another tool than the firing's."""
    task_success: bool | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Decision on the agent's next step, with its reasons. False only for ``block``."""

    seq: int
    """The tick's event number; 0 before the first event."""
    kind: DecisionKind
    """``continue``, ``guide``, ``warn`` or ``block``. ``decision == "warn"`` compares it."""
    findings: tuple[Finding, ...] = ()
    """All findings, the most severe first, inactive ones too."""
    message: str = ""
    """The active findings in one or two sentences, for people; empty if there is nothing to say."""
    guidance: Guidance | None = None
    """Text for the agent, if a pattern fired at this tick; false if it is withheld for comparison."""

    def __bool__(self) -> bool:
        return self.kind != "block"

    def __eq__(self, other: object) -> bool:
        """Tell whether another decision is the same; a word is compared with the kind: ``decision == "warn"``."""
        if isinstance(other, str):
            return self.kind == other
        if not isinstance(other, Decision):
            return NotImplemented
        return msgspec.structs.astuple(self) == msgspec.structs.astuple(other)

    def __hash__(self) -> int:
        return hash((self.seq, self.kind, self.message))

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind

    def __repr__(self) -> str:
        return f"<Decision {self.seq}: {excerpt(str(self))}>"

    def _repr_html_(self) -> str:
        """Draw a card, for notebooks."""
        from coherence.core.cards import decision_card  # which only a notebook needs

        return decision_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and strings, ready for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def refusal_id(agent: str, session: str, ts: float) -> str:
    """Return the id of a refusal, a decision of the kind ``block``; the digits alone mean it too.

    Its number is no part of it: that moves up if another process writes to the session first.

    Parameters
    ----------
    agent, session : str
        Names of the agent that was refused something, and of its session.
    ts : float
        Unix time of the decision.

    Examples
    --------
    >>> refusal_id("claude-code", "s1", 1795828766.25)
    'refusal-111b915568afa486'
    """
    told = "\0".join((agent, session, ts.hex()))
    return f"refusal-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def as_shown(name: str, value: float) -> float:
    """Return a signal's value as its vital has it: a signal is high where it is bad, goal coherence where good."""
    return 1.0 - value if name == "goal_coherence" else value


def worst_kind(kinds: list[DecisionKind]) -> DecisionKind:
    """Return the most severe of some kinds, ``continue`` of none."""
    worst: DecisionKind = "continue"
    for kind in kinds:
        if KINDS.index(kind) > KINDS.index(worst):
            worst = kind
    return worst
