"""What an eval case is made of: the steps of a session, and the verdict that its decisions are to lead to."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.events import Role
from coherence.core.readings import FrozenDict

CaseKind: TypeAlias = Literal[
    "silent_failure",
    "stale_artifact",
    "provider_drift",
    "missing_event_trail",
    "rollback_gap",
    "unsafe_escalation",
]
"""How a session goes wrong: success is claimed where there is none; old material is taken for new; the model or its
price changes; what was done is not recorded; there is no way back; more is done than was allowed."""

CaseVerdict: TypeAlias = Literal["blocked", "review", "learning", "unseen"]
"""What becomes of a session, see :func:`~coherence.guard.cases.play.verdict_of`."""

VERDICTS: tuple[CaseVerdict, ...] = ("blocked", "review", "learning", "unseen")
"""From severe to nothing at all."""


class _Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="step"):
    pass


class CaseText(_Step, frozen=True, tag="message"):
    """Something said."""

    role: Role
    text: str
    logprobs: tuple[float, ...] | None = None


class Called(_Step, frozen=True, tag="call"):
    """A call of a tool: the host asks whether it may run, and makes it unless it is refused."""

    tool: str
    arguments: Any = FrozenDict[str, Any]()


class Came(_Step, frozen=True, tag="result"):
    """What the call before answered; with ``tool`` it is the result of a call that nobody recorded."""

    text: str
    error: bool = False
    tool: str | None = None


class Used(_Step, frozen=True, tag="usage"):
    """One call of the model."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    model: str | None = None


class CaseFeedback(_Step, frozen=True, tag="feedback"):
    """Somebody's judgement, in [-1, 1]."""

    score: float


class Corrected(_Step, frozen=True, tag="correction"):
    """Somebody told the agent to do it differently."""

    text: str


class Remembered(_Step, frozen=True, tag="memory"):
    """Something that the agent remembers."""

    text: str


class Shortened(_Step, frozen=True, tag="compaction"):
    """The context was shortened to a summary."""

    summary: str = ""


class Failed(_Step, frozen=True, tag="fault"):
    """Something failed silently in the host."""

    where: str
    message: str


class Ended(_Step, frozen=True, tag="outcome"):
    """How the task ended, as the host was told."""

    success: bool
    text: str = ""


Step: TypeAlias = CaseText | Called | Came | Used | CaseFeedback | Corrected | Remembered | Shortened | Failed | Ended
"""One thing that happens, told to the monitor by the method of the same name."""


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A session and the verdict that is expected of it."""

    id: str
    kind: CaseKind
    expected: CaseVerdict
    why: str
    """Why this verdict, in a sentence; where the sensor cannot see the failure, what it does not see."""
    goal: str
    healthy: bool = False
    """Whether it is the near miss of a failure: nothing is wrong with it, and it must not be blocked."""
    seen: bool = True
    """Whether the sensor is to see the failure by itself; false = it shows in nothing but what somebody told."""
    rule: str = ""
    """The rule that is to decide; empty = any."""
    config: dict[str, Any] = {}
    """Settings of the monitor, in place of those of the packet of the same name."""
    budget: dict[str, Any] = {}
    """What the agent may use up."""
    steps: tuple[Step, ...]


class Packet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Cases that are judged with the same settings."""

    config: dict[str, Any] = {}
    """Settings of every monitor."""
    cases: tuple[Case, ...]
