"""Requests and answers of Gemini as the conversation reads them; no SDK takes part."""

from __future__ import annotations

from typing import Any

import pytest

from coherence.integrations.conversation import Result, Said
from coherence.integrations.gemini_wire import GeminiWire

WIRE = GeminiWire()
CALL = {"function_call": {"name": "bash", "args": {"command": "ls"}}}


@pytest.mark.parametrize(
    "contents",
    [
        "Hello",
        ["Hello"],
        {"text": "Hello"},
        {"parts": [{"text": "Hello"}]},
        [{"role": "user", "parts": [{"text": "Hel"}, {"text": "lo"}]}],
        ["Hel", {"text": "lo"}],
        [["Hel", "lo"]],
        ({"role": "user", "parts": "Hello"},),
    ],
)
def test_gemini_wire_reads_contents_in_each_form_that_the_sdk_takes(contents: Any) -> None:
    items = WIRE.items({"contents": contents})
    assert [told for item in items for told in WIRE.read(item)] == [Said("user", "Hello")]


def test_gemini_wire_takes_neighbours_of_the_model_as_one_answer() -> None:
    parts = [{"text": "I l"}, {"text": "ook."}, CALL]
    whole = WIRE.answer({"candidates": [{"content": {"parts": parts}, "finish_reason": "STOP"}]})
    one_by_one = [{"role": "model", "parts": [part]} for part in parts]
    (item,) = WIRE.items({"contents": one_by_one})
    assert WIRE.keys(item) == whole.keys
    other = {"role": "model", "parts": [*parts[:2], {"function_call": {"name": "bash", "args": {"command": "pwd"}}}]}
    assert WIRE.keys(other) != whole.keys


def test_gemini_wire_leaves_thoughts_out_and_marks_what_is_no_text() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"text": "Look: "},
        {"inlineData": {"mimeType": "image/png", "data": b"x"}},
        {"file_data": {"file_uri": "gs://a"}},
    ]
    (item,) = WIRE.items({"contents": [{"role": "user", "parts": parts}]})
    assert list(WIRE.read(item)) == [Said("user", "Look: [image][file]")]


@pytest.mark.parametrize(
    ("response", "text", "error"),
    [
        ({"error": "gone"}, "gone", True),
        ({"output": "ran"}, "ran", None),
        ({"result": [1, 2]}, "[1,2]", None),
        ({"output": "ran", "error": ""}, '{"output":"ran","error":""}', None),
        ({}, "{}", None),
    ],
)
def test_gemini_wire_reads_a_response_by_the_names_of_the_api(
    response: dict[str, Any], text: str, error: bool | None
) -> None:
    part = {"functionResponse": {"name": "bash", "response": response}}
    (item,) = WIRE.items({"contents": [part]})
    assert list(WIRE.read(item)) == [Result(None, text, error, "bash")]


def test_gemini_wire_counts_thoughts_as_output_and_the_cache_as_a_part_of_the_input() -> None:
    usage = {
        "prompt_token_count": 100,
        "cached_content_token_count": 60,
        "tool_use_prompt_token_count": 5,
        "candidates_token_count": 7,
        "thoughts_token_count": 3,
    }
    answer = WIRE.answer({"usage_metadata": usage})
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (100 + 5, 60, 7 + 3)


def test_gemini_wire_reads_code_that_the_provider_has_run() -> None:
    parts = [
        {"executable_code": {"code": "1/0", "language": "PYTHON"}},
        {"code_execution_result": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
    ]
    answer = WIRE.answer({"candidates": [{"content": {"parts": parts}}]})
    assert answer.calls == ()
    said, result = answer.served
    assert isinstance(said, Said)
    assert [(call.name, call.arguments) for call in said.calls] == [("code_execution", {"code": "1/0"})]
    assert result == Result(None, "ZeroDivisionError", True, "code_execution")


def test_gemini_wire_reads_the_instruction_of_each_form_of_settings() -> None:
    assert WIRE.system({"config": {"systemInstruction": {"parts": [{"text": "Be kind."}]}}}) == "Be kind."
    assert WIRE.system({"config": {"system_instruction": ["Be ", "kind."]}}) == "Be kind."
    assert WIRE.system({}) == ""
