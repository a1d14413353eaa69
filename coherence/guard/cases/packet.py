"""Reading an eval packet, with errors that name what is wrong."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec

from coherence.core.errors import CoherenceError
from coherence.guard.cases.records import Case, Packet

MAX_BYTES = 50_000_000
"""A packet's file is no larger."""

MAX_STEPS = 3_000
"""Steps of a case; a monitor without a store holds the last 10,000 events, and a step makes at most three."""

_DECODER = msgspec.json.Decoder(Packet)


class PacketError(CoherenceError, ValueError):
    """A packet cannot be read; the message says where and why."""


def shipped_packet() -> Packet:
    """Return the packet that comes with this package: 30 failures of six kinds, and healthy twins of them.

    Examples
    --------
    >>> len([case for case in shipped_packet().cases if not case.healthy])
    30
    """
    return decode_packet((files(__package__) / "packet.json").read_bytes(), "packet.json")


def read_packet(path: str | Path) -> Packet:
    """Return the packet of a JSON file.

    Raises
    ------
    PacketError
        If the file cannot be read, is larger than 50 MB, or is no packet.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise PacketError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MAX_BYTES:
        raise PacketError(f"{path}: is larger than {MAX_BYTES:,} bytes")
    return decode_packet(data, str(path))


def decode_packet(data: bytes, where: str) -> Packet:
    """Return the packet of JSON bytes; ``where`` names them in errors.

    Raises
    ------
    PacketError
        If they are no packet, if it has no case, or if two cases have one id.

    Examples
    --------
    >>> decode_packet(b'{"cases": []}', "mine.json")
    Traceback (most recent call last):
    coherence.guard.cases.packet.PacketError: mine.json: has no case
    """
    try:
        packet = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise PacketError(f"{where}: no packet of cases: {error}") from error
    if not packet.cases:
        raise PacketError(f"{where}: has no case")
    seen = set[str]()
    for case in packet.cases:
        _check(case, where)
        if case.id in seen:
            raise PacketError(f"{where}: two cases are called {case.id!r}")
        seen.add(case.id)
    return packet


def _check(case: Case, where: str) -> None:
    if not case.id.strip():
        raise PacketError(f"{where}: a case has an empty id")
    if not 0 < len(case.steps) <= MAX_STEPS:
        raise PacketError(f"{where}: case {case.id!r} has {len(case.steps):,} steps; there may be 1 to {MAX_STEPS:,}")
    if case.healthy and case.expected == "blocked":
        raise PacketError(f"{where}: case {case.id!r} is healthy, so it cannot be expected to be blocked")
