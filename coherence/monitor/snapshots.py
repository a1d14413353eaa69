"""Snapshots of an agent's state: lossless, versioned, deterministic, bounded; two of them can be merged."""

from __future__ import annotations

from typing import Any

import msgspec

from coherence.baseline.appraiser import Baseline, Mood
from coherence.baseline.runs import Run
from coherence.core.readings import frozen_hook
from coherence.monitor.codec import Verdict
from coherence.policy.corrections import Corrections
from coherence.policy.regulator_state import MAX_TRANSITIONS, Standing, Transition
from coherence.state.data import Facts
from coherence.state.reducer import MAX_MEMORIES, MAX_TOOLS, MAX_TOTAL

VERSION = 2
"""Of the form of snapshots; another one is refused, and the events are folded again."""

OTHER = "(other)"
"""The name under which a state counts further tools."""


class Snapshot(msgspec.Struct):
    """Everything that folding has changed; plain data."""

    facts: Facts
    mood: Mood
    standing: Standing
    version: int = VERSION
    measured: Verdict | None = None
    run: Run = msgspec.field(default_factory=Run)


class Legacy(msgspec.Struct):
    """What an agent's next session, of another name, begins with."""

    baselines: dict[str, Baseline] = {}
    corrections: Corrections = msgspec.field(default_factory=Corrections)
    steps: int = 0
    """Of the agent's life so far."""


_PACKER = msgspec.msgpack.Encoder()
_UNPACKER = msgspec.msgpack.Decoder(Snapshot, dec_hook=frozen_hook)
_WRITER = msgspec.json.Encoder()  # in the order of folding, which says what is newest
_READER = msgspec.json.Decoder(Snapshot, dec_hook=frozen_hook)


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
    return _read(_UNPACKER, data)


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
    return _read(_READER, data)


def _read(decoder: Any, data: bytes) -> Snapshot:
    try:
        snapshot: Snapshot = decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    if snapshot.version != VERSION:
        raise ValueError(f"a snapshot of version {snapshot.version}, expected {VERSION}")
    return snapshot


def merge(one: Snapshot, other: Snapshot) -> Snapshot:
    """Return one state of two that one agent lived through apart, for instance in two processes.

    Totals are added, what was learned is put together (baselines and transitions weighted by their samples,
    corrections by their provenance), and the present - context, latest actions, what is held or blocked - is that of
    the state whose newest event is later. The order of the two does not matter. A state merged with itself counts its
    totals twice: only the user knows whether two states share a past.

    Raises
    ------
    ValueError
        If their corrections were embedded by different models.
    """
    late, early = sorted((one, other), key=lambda each: (each.facts.latest_ts, _WRITER.encode(each)), reverse=True)
    facts = _copied(late.facts, Facts)
    past = early.facts
    for name in ("calls", "results", "errors", "messages", "steps", "priced", "unpriced", "faults"):
        setattr(facts, name, getattr(facts, name) + getattr(past, name))
    for name in ("tokens_in", "tokens_out"):
        total = _added(getattr(facts, name), getattr(past, name))
        setattr(facts, name, None if total is None else min(total, MAX_TOTAL))
    facts.cost_usd = _added(facts.cost_usd, past.cost_usd)
    facts.tools = _few(_counted(facts.tools, past.tools))
    facts.shapes = _counted(facts.shapes, past.shapes)
    _add_memories(facts, past)
    facts.first_ts = min((ts for ts in (facts.first_ts, past.first_ts) if ts is not None), default=None)
    mood = _copied(late.mood, Mood)
    mood.learned_steps += past.steps
    mood.baselines = {
        name: _together(late.mood.baselines.get(name), early.mood.baselines.get(name))
        for name in sorted({*late.mood.baselines, *early.mood.baselines})
    }
    standing = _copied(late.standing, Standing)
    _count_on(standing, past)
    standing.fired = _counted(standing.fired, early.standing.fired)
    known = {**early.standing.transitions, **late.standing.transitions}
    standing.transitions = {
        key: _both(late.standing.transitions.get(key), early.standing.transitions.get(key))
        for key in list(known)[-MAX_TRANSITIONS:]
    }
    standing.corrections = late.standing.corrections.merge(early.standing.corrections)
    standing.born += early.standing.born
    return Snapshot(facts, mood, standing, measured=late.measured, run=_copied(late.run, Run))


def _copied(value: Any, kind: Any) -> Any:
    return msgspec.msgpack.decode(_PACKER.encode(value), type=kind, dec_hook=frozen_hook)


def _added(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _count_on(standing: Standing, past: Facts) -> None:
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


def _together(one: Baseline | None, other: Baseline | None) -> Baseline:
    """Return the mean and variance of both samples together."""
    if one is None or other is None or not one.count or not other.count:
        found = one if one is not None and one.count else other or one or Baseline()
        return Baseline(found.mean, found.variance, found.count, found.refused)
    count = one.count + other.count
    mean = (one.mean * one.count + other.mean * other.count) / count
    spread = sum(each.count * (each.variance + (each.mean - mean) ** 2) for each in (one, other)) / count
    return Baseline(mean, spread, count, one.refused)


def _both(one: Transition | None, other: Transition | None) -> Transition:
    found = [each for each in (one, other) if each is not None and each.count]
    count = sum(each.count for each in found)
    change = sum(each.count * each.change for each in found) / count if count else 0.0
    return Transition(count, change)
