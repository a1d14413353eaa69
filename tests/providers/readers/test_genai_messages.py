from __future__ import annotations

from typing import Any

import pytest

from coherence.providers.readers.genai_messages import Said, SpanEvent, indexed, inputs_of, messages_of, outputs_of
from coherence.providers.transcript import TranscriptCall

CALL = TranscriptCall("ls", {"path": "."}, "c1")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "parts": [{"type": "text", "content": "Hm."}, {"type": "reasoning", "content": "no"},
         {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}]},
        {"role": "assistant", "content": "Hm.",
         "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}]},
        {"role": "ai", "content": "Hm.", "tool_calls": [{"id": "c1", "name": "ls", "args": {"path": "."}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "no"}, {"type": "text", "text": "Hm."},
         {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}}]},
        {"message": {"role": "assistant", "content": "Hm.", "tool_calls": [
         {"tool_call": {"id": "c1", "function": {"name": "ls", "arguments": '{"path": "."}'}}}]}},
    ],
)  # fmt: skip
def test_messages_of_reads_every_form_of_an_answer_with_a_call(message: dict[str, Any]) -> None:
    assert messages_of([message], "user") == [Said("assistant", "Hm.", (CALL,))]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Hi.", [Said("user", "Hi.")]),
        ("[]", []),
        ("", []),
        (None, []),
        ('{"messages": [{"role": "user", "content": "Hi."}]}', [Said("user", "Hi.")]),
        ('{"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}', [Said("assistant", "Yes.")]),
        ('{"city": "Oslo"}', [Said("user", '{"city": "Oslo"}')]),
        ([{"role": "user", "parts": [{"type": "blob", "modality": "image"}]}], [Said("user", "[image]")]),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "3"}]}],
            [Said("tool", "3", call_id="c")],
        ),
        ([{"role": "tool", "tool_call_id": "c", "content": "3"}], [Said("tool", "3", call_id="c")]),
    ],
)
def test_messages_of_reads_values_of_any_form(value: Any, found: list[Said]) -> None:
    assert messages_of(value, "user") == found


def test_indexed_keeps_the_order_of_numbers() -> None:
    given = {f"p.{at}.role": str(at) for at in (10, 9, 0)} | {"p.x": 1, "other.0.role": "no"}
    assert indexed(given, "p") == []  # a name among the numbers
    del given["p.x"]
    assert indexed(given, "p") == [{"role": "0"}, {"role": "9"}, {"role": "10"}]


def test_inputs_of_and_outputs_of_prefer_messages_to_free_values() -> None:
    given = {"input.value": "raw", "llm.input_messages.0.message.content": "Hi.", "output.value": "raw"}
    assert inputs_of(given, ()) == [Said("user", "Hi.")]
    assert outputs_of(given, ()) == [Said("assistant", "raw")]
    events = (SpanEvent("gen_ai.user.message", {"content": "Hi."}), SpanEvent("gen_ai.choice", {"message": "Yes."}))
    assert inputs_of({}, events) == [Said("user", "Hi.")]
    assert outputs_of({}, events) == [Said("assistant", "Yes.")]
