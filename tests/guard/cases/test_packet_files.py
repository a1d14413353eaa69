"""Packets that are none are refused in words; hostile texts in good ones do no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.guard.cases.packet import MAX_STEPS, PacketError, decode_packet, read_packet
from coherence.guard.cases.play import play_packet

SAID = {"step": "message", "role": "assistant", "text": "hello"}


def case(**fields: Any) -> dict[str, Any]:
    made = {"id": "a", "kind": "silent_failure", "expected": "unseen", "why": "", "goal": "greet", "steps": [SAID]}
    return made | fields


def decode(*cases: dict[str, Any], **fields: Any) -> Any:
    return decode_packet(json.dumps({"cases": cases} | fields).encode(), "mine.json")


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ((), "has no case"),
        ((case(), case()), "two cases are called 'a'"),
        ((case(id=" "),), "empty id"),
        ((case(steps=[]),), "has 0 steps"),
        ((case(steps=[SAID] * (MAX_STEPS + 1)),), "has 3,001 steps"),
        ((case(kind="other"),), "Invalid enum value 'other'"),
        ((case(expected="maybe"),), "Invalid enum value 'maybe'"),
        ((case(healthy=True, expected="blocked"),), "cannot be expected to be blocked"),
        ((case(steps=[{"step": "sing"}]),), "each step must be one of call, compaction"),
        ((case(steps=[{"step": []}]),), "each step must be one of"),
        ((case(surprise=1),), "unknown field `surprise`"),
    ],
)
def test_decode_packet_what_is_wrong_with_a_packet_is_named(cases: tuple[dict[str, Any], ...], words: str) -> None:
    with pytest.raises(PacketError, match=r"mine\.json") as error:
        decode(*cases)
    assert words in str(error.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"cases": 3}', b"nul\x00"])
def test_decode_packet_bytes_that_are_no_packet_are_refused(data: bytes) -> None:
    with pytest.raises(PacketError, match="no packet of cases"):
        decode_packet(data, "mine.json")


def test_read_packet_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.json", Path("a\0b")):
        with pytest.raises(PacketError, match="cannot be read"):
            read_packet(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"config": {"colour": 1}}, "unknown field `colour`"),
        ({"config": {"grounding": {"gate": 7}}}, "gate"),
        ({"budget": {"calls": -1}}, "calls"),
        ({"goal": ""}, "goal"),
        ({"steps": [SAID | {"role": "nobody"}]}, "role"),
        ({"steps": [SAID | {"colour": 1}]}, "colour"),
        ({"steps": [{"step": "result", "text": "a", "call": "b"}]}, "call"),
        ({"steps": [{"step": "call"}]}, "tool"),
        ({"steps": [{"step": "feedback", "score": 3}]}, "score"),
        ({"steps": [{"step": "call", "tool": ""}]}, "tool"),
        ({"steps": [{"step": "usage", "tokens_in": -1}]}, "tokens_in"),
    ],
)
def test_decode_packet_what_a_monitor_does_not_take_names_the_case(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(PacketError, match="case 'a'") as error:
        play_packet(decode(case(**fields)))
    assert words in str(error.value)


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\0\u202eevil", "a\n" * 100_000, "[" * 50_000])
def test_decode_packet_hostile_texts_are_played(text: str) -> None:
    steps = [
        {"step": "call", "tool": text[:50], "arguments": {"q": text}},
        {"step": "result", "text": text, "error": True},
        {"step": "memory", "text": text},
        {"step": "fault", "where": "host", "error": text},
        {"step": "compaction", "summary": text},
        SAID | {"text": text},
        {"step": "outcome", "success": True, "text": text},
    ]
    (played,) = play_packet(decode(case(steps=steps, goal=text)))
    assert played.verdict in ("learning", "review")
