"""Redaction of an event before it is folded and recorded."""

from __future__ import annotations

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
)
from coherence.core.redact import NAMES_OF, prepare

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
