"""Items of the Responses API, as its reference shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.readings import Counters
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, TranscriptCall

ASKED = {"role": "user", "content": "Cancel my booking H9ZU1C."}
CALL = {"type": "function_call", "call_id": "c1", "name": "get_booking", "arguments": '{"id": "H9ZU1C"}', "id": "fc_1"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": '{"error": "no such booking"}'}
SAID = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "content": [{"type": "output_text", "text": "There is none.", "annotations": []}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
STEPS = (
    Step(role="user", content="Cancel my booking H9ZU1C."),
    Step(role="assistant", tool_calls=(TranscriptCall("get_booking", {"id": "H9ZU1C"}, "c1"),)),
    Step(role="tool", content='{"error": "no such booking"}', tool_name="get_booking"),
    Step(role="assistant", content="There is none."),
)


def read(path: Path, *values: Any) -> tuple[Step, ...]:
    path.write_text("\n".join(map(json.dumps, values)), "utf-8")
    (transcript,) = read_transcripts(path)
    assert transcript.format == "openai-responses"
    return transcript.steps


def test_read_responses_a_list_of_items_and_one_a_line_are_one_run(tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", [ASKED, THOUGHT, CALL, RESULT, SAID]) == STEPS
    assert read(tmp_path / "a.jsonl", ASKED, CALL, RESULT, SAID) == STEPS


def test_read_responses_requests_that_repeat_the_conversation_count_once(tmp_path: Path) -> None:
    first = {"input": [ASKED], "output": [THOUGHT, CALL], "usage": {"input_tokens": 20, "output_tokens": 5}}
    second = {"object": "response", "input": [ASKED, THOUGHT, CALL, RESULT], "output": [SAID]}
    found = read(tmp_path / "a.jsonl", first, second)
    assert found[1].usage == Counters(tokens_in=20, tokens_out=5)
    assert [(step.role, step.content) for step in found] == [(step.role, step.content) for step in STEPS]


def test_read_responses_a_response_alone(tmp_path: Path) -> None:
    assert read(tmp_path / "a.json", {"id": "resp_1", "object": "response", "output": [SAID]}) == STEPS[3:]


PARTS = [{"type": "input_text", "text": "two"}, {"type": "input_image", "image_url": "data:"}]


@pytest.mark.parametrize(("output", "text"), [(PARTS, "two\n[image]"), (None, "")])
def test_read_responses_outputs_that_are_no_text(tmp_path: Path, output: Any, text: str) -> None:
    found = read(tmp_path / "a.json", [ASKED, CALL, {**RESULT, "output": output}])
    assert found[2].content == text


def test_read_responses_instructions_are_the_system_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"instructions": "Be short.", "input": [ASKED], "output": [SAID]}), "utf-8")
    (run,) = read_transcripts(path)
    assert run.system == "Be short."
