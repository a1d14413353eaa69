"""Content of an agent's state: plain data, bounded, so that it can be kept and taken up again."""

from __future__ import annotations

import msgspec

from coherence.core.events import Logprobs
from coherence.detect.fingerprints import CallTrace, ResultTrace
from coherence.detect.text_features import Shape


class Item(msgspec.Struct):
    """One message of the context."""

    seq: int
    role: str
    text: str


class OpenCall(msgspec.Struct):
    """A call whose result has not come yet."""

    id: str
    seq: int
    ts: float
    tool: str
    made: CallTrace


class Action(msgspec.Struct):
    """One tool result and the call it belongs to."""

    seq: int
    tool: str
    made: CallTrace
    came: ResultTrace
    error: bool
    """``True`` if it is flagged as failed, but for a command that only exits with 1: its search found nothing."""
    retry: bool
    duration_s: float | None = None
    ts: float = 0.0
    """Time of the call, Unix seconds."""
    turn: int = 0
    compacted: bool = False
    """``True`` if the context was shortened since the action before."""
    blind: str = ""
    """The existing file that the call wrote to without its ever having been read; else empty."""
    called: int = 0
    """Number of the call's event; 0 = of an earlier session."""


class Rated(msgspec.Struct):
    """One judgement of the agent's work."""

    seq: int
    turn: int
    quality: float
    """In [0, 1], 1 = good."""


class Spending(msgspec.Struct):
    """One model call."""

    seq: int
    tokens: int
    cost_usd: float | None
    chars: int = 0
    """Characters of all texts recorded until then."""
    output: int = 0
    """Tokens among them that the model wrote."""


class FailureKind(msgspec.Struct):
    """One way in which calls fail: a tool and the shape of its error."""

    tool: str
    first_line: str
    count: int = 0
    turns: list[int] = []
    """The last turns in which it happened."""
    seqs: list[int] = []
    """The last events of it."""


class Answer(msgspec.Struct):
    """The newest message of the agent, until it calls a tool or says something else.

    Most messages of an agent with tools are remarks on its way. Only what ends a turn is taken for an answer: a user
    speaks or the task ends after it, or the host asks for a decision while the agent has never called a tool.
    """

    seq: int
    text: str
    request: str
    """Last request of the user by then."""
    final: bool = False
    """``True`` if it is known to be an answer."""


class Said(msgspec.Struct):
    """One message of the agent."""

    seq: int
    hedging: float
    shape: Shape
    monotonous: bool
    digest: bytes


class Facts(msgspec.Struct):
    """Everything an agent's state holds; plain data, so that it can be kept and taken up again."""

    seq: int = 0
    """Number of the newest event."""
    goal: str = ""
    requests: list[str] = []
    request: str = ""
    """Last request of the user; corrections are no requests of their own here."""
    request_seq: int = 0
    context: list[Item] = []
    memories: dict[str, str] = {}
    open_calls: list[OpenCall] = []
    actions: list[Action] = []
    said: list[Said] = []
    tools: dict[str, int] = {}
    """Tool -> results so far."""
    shapes: dict[str, int] = {}
    """Shape -> messages so far."""
    calls: int = 0
    called: dict[str, int] = {}
    """Tool -> calls so far; the one called last is the last."""
    results: int = 0
    errors: int = 0
    messages: int = 0
    steps: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    priced: int = 0
    unpriced: int = 0
    unpriced_model: str = ""
    turn: int = 0
    """User messages so far."""
    qualities: list[Rated] = []
    spending: list[Spending] = []
    failures: dict[str, FailureKind] = {}
    """Tool and shape of error -> what is known of it; the newest last."""
    files: dict[str, int] = {}
    """Files that were read or made -> event; the newest last."""
    answer: Answer | None = None
    unsure: Logprobs | None = None
    """Token log-probabilities of the newest message, if the host recorded them."""
    unsure_seq: int = 0
    context_used: int | None = None
    """Tokens in and out of the newest model call: what its context holds now."""
    error_streak: int = 0
    same_streak: int = 0
    """Identical calls with identical results in a row, the newest included."""
    chars: int = 0
    """Characters of all texts recorded."""
    first_ts: float | None = None
    latest_ts: float = 0.0
    changed_seq: int = 0
    """The newest event that is no tick."""
    step_seq: int = 0
    compacted_seq: int = 0
    faults: int = 0
    joinable: bool = False
    """``True`` if a call now still belongs to the message before it."""
    outcome: bool | None = None
    nameless: int = 0
    """Memories without an id so far."""

    def tool_of(self, seq: int) -> str:
        """Return the tool whose result is event ``seq``; empty where it is not known, or of an earlier session (0)."""
        return next((action.tool for action in self.actions if action.seq == seq > 0), "")

    def renumber(self) -> None:
        """Let the next event be number 1: the state of one session begins another."""
        numbered: tuple[Item | OpenCall | Action | Said | Rated | Spending, ...] = (
            *self.context,
            *self.open_calls,
            *self.actions,
            *self.said,
            *self.qualities,
            *self.spending,
        )
        for part in numbered:
            part.seq = 0
        for action in self.actions:
            action.called = 0
        for failure in self.failures.values():
            failure.seqs = []
        self.files = dict.fromkeys(self.files, 0)
        self.answer = None
        self.seq = self.changed_seq = self.step_seq = self.compacted_seq = self.unsure_seq = self.request_seq = 0
        self.joinable = False
