"""Snapshots of an agent's state: lossless, versioned, deterministic, bounded."""

from __future__ import annotations

from threading import Lock
from typing import Any

import msgspec
from msgspec.json import Decoder as JsonDecoder
from msgspec.msgpack import Decoder as MsgpackDecoder

from coherence.baseline.appraiser import SignalBaseline
from coherence.core.readings import frozen_hook
from coherence.detect.detector import DATA_TYPES
from coherence.monitor.tick_result import TickResult
from coherence.policy.corrections import Corrections

VERSION = 1
"""Of the form of snapshots; another one is refused, and the events are folded again."""


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
_making = Lock()


def _decoder(
    form: type[JsonDecoder[Any]] | type[MsgpackDecoder[Any]], kind: Any
) -> JsonDecoder[Any] | MsgpackDecoder[Any]:
    with _making:  # msgspec ends the process where two threads look into one class for the first time
        if (form, kind) not in _decoders:
            _decoders[form, kind] = form(kind, dec_hook=frozen_hook)
        return _decoders[form, kind]
