"""Saved state of a regulator: plain data, written as JSON, read back unchanged; the classic regulator's files, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

import coherence.monitor.snapshots as snapshots
from coherence.compat.confidence import Tokens
from coherence.core.config import MonitorConfig
from coherence.core.readings import frozen_hook
from coherence.core.validation import MAX_NAME, check_text, clean
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.snapshots import Snapshot
from coherence.policy.corrections import EXAMPLES, MAX_NOTES

VERSION = 1
DEFAULT_CAP = 10_000
"""Output tokens."""


Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class Turn(msgspec.Struct):
    """Counts since the user's message."""

    seq: Count = 0
    """The event that began it; 0 = none has."""
    calls: Count = 0
    failures: Count = 0
    duration_ms: float = 0.0
    tools: dict[str, int] = {}
    tokens: Tokens = msgspec.field(default_factory=Tokens)


class Saved(msgspec.Struct):
    """Everything that a regulator knows."""

    user_id: str
    snapshot: Snapshot
    version: int = VERSION
    cost_cap: Count = DEFAULT_CAP
    window_s: float | None = None
    """Seconds after an answer in which a message may be an implicit correction; ``None``: none is."""
    implicit: Count = 0
    """Implicit corrections so far."""
    answered: str = ""
    """The request that was answered last."""
    completed_ts: float | None = None
    """Time of that answer, Unix seconds."""
    stale: bool = False
    """True if something other than an event has changed since the newest decision."""
    turn: Turn = msgspec.field(default_factory=Turn)


def new_saved(user_id: str) -> Saved:
    """Return what a regulator without a past knows."""
    return Saved(user_id, AgentPipeline(MonitorConfig(), None).snapshot())


class _ClassicPattern(msgspec.Struct):
    """As much of a pattern in a file of the classic regulator as it reads back itself."""

    topic_cluster: str
    example_corrections: list[str]
    learned_from_turns: Count = 0


class _ClassicLearned(msgspec.Struct):
    gain_mode: Literal["phasic", "tonic", "neutral"]
    tick: Count
    response_success: dict[str, Any]
    response_strategies: dict[str, dict[str, Any]]


class _Classic(msgspec.Struct):
    user_id: str
    learned: _ClassicLearned
    correction_patterns: dict[str, _ClassicPattern] = {}


class _Peek(msgspec.Struct):
    version: int = 0
    learned: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    snapshot: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_WRITER = msgspec.json.Encoder()  # in the order of folding, which says what is newest
_READER = msgspec.json.Decoder(Saved, dec_hook=frozen_hook)
_PEEK = msgspec.json.Decoder(_Peek)
_CLASSIC = msgspec.json.Decoder(_Classic)


def to_text(saved: Saved) -> str:
    """Return the JSON of a state: the same text for the same state, on every machine."""
    return _WRITER.encode(saved).decode()


def from_text(text: str) -> Saved:
    """Return the state of a JSON text, of :func:`to_text` or of the classic regulator.

    Raises
    ------
    TypeError
        If it is not a str.
    ValueError
        If it is no such state, or of another version; the message says where.
    """
    try:
        data = check_text("json_str", text).encode()
        # Looked at first: a state of another version is refused for its version, not for a field that differs.
        peek = _PEEK.decode(data)
        if peek.snapshot is msgspec.UNSET and peek.learned is not msgspec.UNSET:
            found = _from_classic(_CLASSIC.decode(data))
        elif peek.version not in (0, VERSION):
            raise ValueError(f"version {peek.version}, expected {VERSION}")
        else:
            found = _READER.decode(data)
            found.snapshot = snapshots.from_json(found.snapshot)
    except TypeError:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a regulator's state: {error or 'nested too deep'}") from error
    return found


def _from_classic(classic: _Classic) -> Saved:
    """Return what survives of a file of the classic regulator: up to three corrections a topic, oldest first."""
    saved = new_saved(clean(classic.user_id, MAX_NAME))
    kept = saved.snapshot.parts["corrections"]
    for cluster in sorted(classic.correction_patterns)[: MAX_NOTES // EXAMPLES]:
        examples = classic.correction_patterns[cluster].example_corrections[:EXAMPLES]
        request = cluster.replace("+", " ")
        for at, example in enumerate(reversed(examples)):
            kept.add(example, request=request, seq=at, session=f"classic {cluster}", step=0)
    return saved


def merged(one: Saved, other: Saved) -> Saved:
    """Return one state of two that lived apart, see :func:`coherence.monitor.snapshots.merge`.

    Raises
    ------
    ValueError
        If they are of different users, or their corrections were embedded by different models.
    """
    if one.user_id != other.user_id:
        raise ValueError(f"states of two users cannot be merged: {one.user_id!r}, {other.user_id!r}")
    late, early = sorted(
        (one, other), key=lambda each: (each.snapshot.parts["facts"].latest_ts, to_text(each)), reverse=True
    )
    return msgspec.structs.replace(
        late,
        snapshot=snapshots.merge(late.snapshot, early.snapshot),
        implicit=late.implicit + early.implicit,
        stale=True,
    )
