"""What an agent's state holds: plain data, bounded, so that it can be kept and taken up again."""

from __future__ import annotations

import msgspec

from coherence.language import Shape


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
    digest: bytes


class Action(msgspec.Struct):
    """One tool result and the call it belongs to."""

    seq: int
    tool: str
    call: bytes
    """Digest of tool and arguments."""
    result: bytes
    """Digest of the result."""
    error: bool
    retry: bool
    duration_s: float | None = None


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
    context_used: int | None = None
    """Input tokens of the newest model call."""
    error_streak: int = 0
    same_streak: int = 0
    """Identical calls with identical results in a row, the newest included."""
    first_ts: float | None = None
    latest_ts: float = 0.0
    changed_seq: int = 0
    """The newest event that is no tick."""
    step_seq: int = 0
    compacted_seq: int = 0
    faults: int = 0
    joinable: bool = False
    """Whether a call now still belongs to the message before it."""
    outcome: bool | None = None
    nameless: int = 0
    """Memories without an id so far."""
