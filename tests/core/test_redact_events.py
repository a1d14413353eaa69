"""Redaction of an event before it is folded and recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import msgspec
import pytest

from coherence.core.events import (
    TEXT_FIELDS,
    Event,
    Fault,
    Feedback,
    Goal,
    Memory,
    Message,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
    encode_event,
    make_fault,
)
from coherence.core.redact import MAX_MESSAGE, NAMES_OF, prepare, redacted_end, redacted_start
from coherence.core.validation import shown

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


def call(arguments: object) -> ToolCall:
    return ToolCall("Bash", msgspec.Raw(msgspec.json.encode(arguments)), "c")


@pytest.mark.parametrize("hide", [True, False])
def test_prepare_an_honest_event_is_left_as_it_is(hide: bool) -> None:
    given: list[Event] = [Goal("fix it"), call({"command": "ls"}), ToolResult("ok", call_id="c"), Usage(1), Ticked()]
    for event in given:
        assert prepare(event, hide_secrets=hide) is event


def test_ticked_every_text_field_of_every_kind_is_looked_at() -> None:
    for kind in get_args(Event):
        texts = {field.name for field in msgspec.structs.fields(kind) if field.type in (str, str | None)}
        looked_at = {*NAMES_OF.get(kind, ()), *([TEXT_FIELDS[kind]] if kind in TEXT_FIELDS else [])}
        if kind is Ticked:  # made by the engine, from a call that was looked at
            looked_at = {"reason", "tool_name"}
        assert texts == looked_at, kind


def test_prepare_secrets_go_only_where_they_are_to_be_hidden() -> None:
    for event in (Message("user", SECRET), call({"command": SECRET}), Feedback(text=SECRET)):
        assert SECRET in encode_event(prepare(event, hide_secrets=False))
        assert SECRET not in encode_event(prepare(event, hide_secrets=True))
        assert "[redacted:github-token]" in encode_event(prepare(event, hide_secrets=True))


@pytest.mark.parametrize("before", range(99_960, 100_004, 4))
def test_prepare_a_secret_at_the_cut_of_a_long_text_is_hidden_whole(before: int) -> None:
    text = "x" * before + " " + SECRET + " " + "y" * 200_000
    for event in (ToolResult(text), call({"content": text}), call([{"content": text}] * 2)):
        shown = encode_event(prepare(event, hide_secrets=True))
        assert SECRET[:8] not in shown and SECRET[-8:] not in shown
        assert "characters left out" in shown


def test_prepare_a_message_of_a_longer_text_tells_its_length() -> None:
    event = prepare(ToolResult("x" * 300_000), hide_secrets=True)
    assert isinstance(event, ToolResult)
    assert "100,000 of 300,000 characters left out" in event.result


def test_prepare_names_and_ids_hold_no_secrets_either() -> None:
    secret = "ghp_" + "a1B2" * 9
    events: list[Event] = [
        ToolCall(f"Bash {secret}", msgspec.Raw(b"{}"), secret),
        ToolResult("ok", call_id=secret, tool_name=secret, error_type=f"no access: {secret}"),
        Message("assistant", "hello", model=secret, response_id=secret),
        Usage(model=secret),
        Memory("note", id=secret),
        Fault(f"in {secret}", secret, "text"),
    ]
    for event in events:
        assert secret not in encode_event(prepare(event, hide_secrets=True))
        assert secret in encode_event(prepare(event, hide_secrets=False))


@pytest.mark.parametrize("before", range(440, 505, 4))
def test_make_fault_a_secret_at_the_cut_of_a_long_message_is_hidden_whole(before: int) -> None:
    fault = make_fault("there", ValueError("x" * before + " " + SECRET + " " + "y" * 20_000))
    assert SECRET[:8] not in fault.message and len(fault.message) == MAX_MESSAGE


@pytest.mark.parametrize("before", range(0, 90, 3))
def test_shown_a_secret_at_the_cut_of_a_message_is_hidden_whole(before: int) -> None:
    text = shown("x" * before + " " + SECRET + " " + "y" * 20_000)
    assert SECRET[:8] not in text and len(text) == 81  # and an ellipsis


@pytest.mark.parametrize("cut", [redacted_start, lambda text, most: redacted_end(text[::-1], most)[::-1]])
def test_redacted_start_and_end_leave_no_part_of_a_secret(cut: Callable[[str, int], str]) -> None:
    key = "\n".join(
        ["-----BEGIN " + "PRIVATE KEY-----", *["MIIEowIBAAKCAQEA" * 4] * 50, "-----END " + "PRIVATE KEY-----"]
    )
    if cut is not redacted_start:
        key = key[::-1]
    text = "a " * 20 + key + " b" * 20_000
    for most in (10, 60, 100, 3_000, 4_200, 8_000):
        found = cut(text, most)
        assert len(found) <= most
        assert "MIIEowIBAAKCAQEA" not in found and "MIIEowIBAAKCAQEA"[::-1] not in found
    assert cut("short", 100) == "short"
