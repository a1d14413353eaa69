"""Snapshots of an agent's state: lossless, versioned, deterministic, bounded; two of them can be merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any

import msgspec
from msgspec.json import Decoder as JsonDecoder
from msgspec.msgpack import Decoder as MsgpackDecoder

from coherence.baseline.appraiser import AppraiserState, SignalBaseline
from coherence.core.readings import frozen_hook
from coherence.detect.detector import DATA_TYPES
from coherence.monitor.tick_result import TickResult
from coherence.policy.corrections import Corrections
from coherence.policy.regulator import RegulatorState
from coherence.state.data import Facts
from coherence.state.reducer import MAX_MEMORIES, MAX_TOOLS, MAX_TOTAL

VERSION = 1
"""Of the form of snapshots; another one is refused, and the events are folded again."""

OTHER = "(other)"
"""The name under which a state counts further tools."""


class Snapshot(msgspec.Struct):
    """Everything that folding has changed."""

    parts: dict[str, Any]
    """Detector -> what it remembers. What a detector of somebody else remembers is plain: lists, dicts, numbers."""
    measured: TickResult | None = None
    version: int = VERSION


class _Packed(msgspec.Struct):
    parts: dict[str, msgspec.Raw]
    measured: TickResult | None = None
    version: int = VERSION


class CarryOver(msgspec.Struct):
    """State that the next session of an agent inherits."""

    baselines: dict[str, SignalBaseline] = {}
    corrections: Corrections = msgspec.field(default_factory=Corrections)
    steps: int = 0
    """Of the agent's life so far."""


_CARRY_OVER = MsgpackDecoder(CarryOver)


def read_carry_over(data: bytes) -> CarryOver:
    """Return what an agent's sessions carry over, as the store holds it."""
    return _CARRY_OVER.decode(data)


_PACKER = msgspec.msgpack.Encoder()
_WRITER = msgspec.json.Encoder()  # in the order of folding, which says what is newest


def pack(snapshot: Snapshot) -> bytes:
    """Return a snapshot in its short form, for the store."""
    return _PACKER.encode(snapshot)


def unpack(data: bytes) -> Snapshot:
    """Return what :func:`pack` made.

    Raises
    ------
    ValueError
        If it is no snapshot of this version.
    """
    return _read(msgspec.msgpack.Decoder, data)


def to_text(snapshot: Snapshot) -> str:
    """Return a snapshot as JSON: the same text for the same state, on every machine."""
    return _WRITER.encode(snapshot).decode()


def from_text(text: str) -> Snapshot:
    """Return what :func:`to_text` made.

    Raises
    ------
    ValueError
        If it is no snapshot of this version.
    """
    try:
        data = text.encode()
    except UnicodeError as error:
        raise ValueError(f"not a snapshot: {error}") from error
    return _read(msgspec.json.Decoder, data)


def from_json(plain: Snapshot) -> Snapshot:
    """Return a snapshot that was decoded from JSON as part of something larger, with the types of its parts.

    Raises
    ------
    ValueError
        If it is no snapshot of this version.
    """
    return from_text(_WRITER.encode(plain).decode())


def _read(form: type[JsonDecoder[Any]] | type[MsgpackDecoder[Any]], data: bytes) -> Snapshot:
    try:
        packed: _Packed = _decoder(form, _Packed).decode(data)
        if packed.version != VERSION:
            raise ValueError(f"a snapshot of version {packed.version}, expected {VERSION}")
        parts = {name: _decoder(form, DATA_TYPES.get(name, Any)).decode(raw) for name, raw in packed.parts.items()}
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    return Snapshot(parts, packed.measured)


_decoders: dict[tuple[Any, Any], JsonDecoder[Any] | MsgpackDecoder[Any]] = {}
_making = RLock()


def _decoder(
    form: type[JsonDecoder[Any]] | type[MsgpackDecoder[Any]], kind: Any
) -> JsonDecoder[Any] | MsgpackDecoder[Any]:
    with _making:  # msgspec ends the process where two threads look into one class for the first time
        if (form, kind) not in _decoders:
            _decoders[form, kind] = form(kind, dec_hook=frozen_hook)
        return _decoders[form, kind]


def merge(one: Snapshot, other: Snapshot) -> Snapshot:
    """Return one state of two that one agent lived through apart, for instance in two processes.

    Totals are added, what was learned is put together (baselines weighted by their samples, corrections by their
    provenance), and the present - context, latest actions, what is held or blocked - is that of the state whose newest
    event is later. The order of the two does not matter. A state merged with itself counts its totals twice: only the
    user knows whether two states share a past.

    Raises
    ------
    ValueError
        If their corrections were embedded by different models.
    """
    # Equal times are told apart by content, so that the order of the two does not matter.
    late, early = sorted((one, other), key=lambda each: (_facts(each).latest_ts, _WRITER.encode(each)), reverse=True)
    # the merge must not change what was given
    parts = {name: _copied(data) for name, data in late.parts.items()}
    past = _facts(early)
    _merge_facts(parts["facts"], past)
    for name, merge_part in _MERGES.items():
        if name in parts and name in early.parts:
            parts[name] = merge_part(parts[name], early.parts[name], past)
    return Snapshot(parts, late.measured)


def _facts(snapshot: Snapshot) -> Facts:
    found: Facts = snapshot.parts["facts"]
    return found


def _merge_facts(facts: Facts, past: Facts) -> None:
    for name in ("calls", "results", "errors", "messages", "steps", "priced", "unpriced", "faults"):
        setattr(facts, name, getattr(facts, name) + getattr(past, name))
    for name in ("tokens_in", "tokens_out"):
        total = _added(getattr(facts, name), getattr(past, name))
        setattr(facts, name, None if total is None else min(total, MAX_TOTAL))
    facts.cost_usd = _added(facts.cost_usd, past.cost_usd)
    # In the order of the newest calls: tools that only the past has called come first.
    facts.called = {
        tool: past.called.get(tool, 0) + facts.called.get(tool, 0)
        for tool in [*(tool for tool in past.called if tool not in facts.called), *facts.called]
    }
    facts.tools = _few(_counted(facts.tools, past.tools))
    facts.shapes = _counted(facts.shapes, past.shapes)
    _add_memories(facts, past)
    facts.first_ts = min((ts for ts in (facts.first_ts, past.first_ts) if ts is not None), default=None)


def _merge_baselines(late: AppraiserState, early: AppraiserState, past: Facts) -> AppraiserState:
    late.learned_steps += past.steps
    names = sorted({*late.baselines, *early.baselines})
    late.baselines = {name: _together(late.baselines.get(name), early.baselines.get(name)) for name in names}
    return late


def _merge_regulator(late: RegulatorState, early: RegulatorState, past: Facts) -> RegulatorState:
    _count_on(late, past)
    late.fired = _counted(late.fired, early.fired)
    late.born += early.born
    return late


def _merge_corrections(late: Corrections, early: Corrections, past: Facts) -> Corrections:
    return late.merge(early)


_MERGES: Mapping[str, Callable[[Any, Any, Facts], Any]] = {
    "baselines": _merge_baselines,
    "regulator": _merge_regulator,
    "corrections": _merge_corrections,
}
"""Detector -> how two of its memories become one; of others the later state's counts."""


def _copied(value: Any) -> Any:
    return msgspec.msgpack.decode(_PACKER.encode(value), type=type(value), dec_hook=frozen_hook)


def _added(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _count_on(standing: RegulatorState, past: Facts) -> None:
    """Let what is remembered of the present stay as long ago as it was, although totals were added."""
    standing.held = {rule: step + past.steps for rule, step in standing.held.items()}
    standing.fired_step = {pattern: step + past.steps for pattern, step in standing.fired_step.items()}
    standing.results += past.results
    for pending in standing.pending:
        pending.results += past.results


def _add_memories(facts: Facts, past: Facts) -> None:
    """Put the memories of the past before the present ones; those without an id get numbers of their own."""
    present, facts.memories = facts.memories, {}
    known = {*present.values()}
    for key, text in past.memories.items():
        if key.startswith("#"):
            if text in known:
                continue
            facts.nameless += 1
            key = f"#{facts.nameless}"
        facts.memories[key] = text
    for key, text in present.items():
        # to the end: where there are too many, the newest stay
        facts.memories.pop(key, None)
        facts.memories[key] = text
    for key in list(facts.memories)[:-MAX_MEMORIES]:
        del facts.memories[key]


def _few(tools: dict[str, int]) -> dict[str, int]:
    """Return the counts of the most used tools, and of the others together."""
    named = sorted((name for name in tools if name != OTHER), key=lambda name: (-tools[name], name))
    rest = sum(tools[name] for name in named[MAX_TOOLS:]) + tools.get(OTHER, 0)
    few = {name: tools[name] for name in sorted(named[:MAX_TOOLS])}
    return {**few, OTHER: rest} if rest else few


def _counted(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def _together(one: SignalBaseline | None, other: SignalBaseline | None) -> SignalBaseline:
    """Return the mean and variance of both samples together."""
    if one is None or other is None or not one.count or not other.count:
        found = one if one is not None and one.count else other or one or SignalBaseline()
        return SignalBaseline(found.mean, found.variance, found.count, found.refused)
    count = one.count + other.count
    mean = (one.mean * one.count + other.mean * other.count) / count
    spread = sum(each.count * (each.variance + (each.mean - mean) ** 2) for each in (one, other)) / count
    return SignalBaseline(mean, spread, count, one.refused)
