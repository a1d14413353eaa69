"""Eval packet: sessions with a known failure, read with errors that name what is wrong."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.errors import CoherenceError
from coherence.core.files import open_input

MAX_BYTES = 50_000_000
"""Largest file of a packet."""

MAX_STEPS = 3_000
"""Steps of a case; a monitor without a store holds the last 10,000 events, and a step makes at most three."""

STEPS = ("call", "compaction", "correction", "fault", "feedback", "memory", "message", "outcome", "result", "usage")
"""Kinds of a step: methods of a monitor; ``call`` and ``result`` are ``tool_call`` and ``tool_result``."""

CaseKind: TypeAlias = Literal[
    "silent_failure",
    "stale_artifact",
    "provider_drift",
    "missing_event_trail",
    "rollback_gap",
    "unsafe_escalation",
]
"""Ways in which a session goes wrong: success is claimed where there is none; old material is taken for new; the model
or its price changes; what was done is not recorded; there is no way back; more is done than was allowed."""

CaseVerdict: TypeAlias = Literal["blocked", "review", "learning", "unseen"]
"""Judgement of a session, from severe to nothing at all, see :func:`~coherence.guard.cases.play.verdict_of`."""


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A session and the verdict that is expected of it."""

    id: str
    kind: CaseKind
    expected: CaseVerdict
    why: str
    """Reason for this verdict, in a sentence; where the sensor cannot see the failure, what it does not see."""
    goal: str
    healthy: bool = False
    """True = it is the near miss of a failure: nothing is wrong with it, and it must not be blocked."""
    seen: bool = True
    """True = the sensor is to see the failure by itself; False = it shows in nothing but what somebody reported."""
    rule: str = ""
    """The rule that is to decide; empty = any."""
    config: dict[str, Any] = {}
    """Settings of the monitor, in place of those of the packet of the same name."""
    budget: dict[str, Any] = {}
    """Budget of the agent."""
    steps: tuple[dict[str, Any], ...]
    """Each with its kind under ``step``, and the arguments of the monitor's method. A ``call`` is made unless ``check``
    refuses it; a ``result`` with a ``tool`` is that of a call that nobody recorded."""


class Packet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Cases that are judged with the same settings."""

    config: dict[str, Any] = {}
    """Settings of every monitor."""
    cases: tuple[Case, ...]


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
        with open_input(path) as file:
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
        if not case.id.strip():
            raise PacketError(f"{where}: a case has an empty id")
        if case.id in seen:
            raise PacketError(f"{where}: two cases are called {case.id!r}")
        seen.add(case.id)
        if not 0 < len(case.steps) <= MAX_STEPS:
            raise PacketError(
                f"{where}: case {case.id!r} has {len(case.steps):,} steps; 1 to {MAX_STEPS:,} are allowed"
            )
        if not all(step.get("step") in STEPS for step in case.steps):
            raise PacketError(f"{where}: case {case.id!r}: each step must be one of {', '.join(STEPS)}")
        if case.healthy and case.expected == "blocked":
            raise PacketError(f"{where}: case {case.id!r} is healthy, so it cannot be expected to be blocked")
    return packet
