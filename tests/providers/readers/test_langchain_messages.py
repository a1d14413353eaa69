from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_messages, read_transcripts
from coherence.providers.transcript import TranscriptCall

HI = {"type": "human", "data": {"content": "hi"}}


def ai(**data: Any) -> dict[str, Any]:
    return {"type": "ai", "data": {"content": "", **data}}


def test_langchain_reader_calls_of_old_dumps_and_invalid_ones_are_calls() -> None:
    old = {"tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": '{"path": "."}'}, "type": "function"}]}
    invalid = [{"name": "ls", "args": '{"path": ', "id": "b", "error": "cut"}]
    run = read_messages([HI, ai(additional_kwargs=old), ai(invalid_tool_calls=invalid)])
    assert [step.tool_calls for step in run.steps[1:]] == [
        (TranscriptCall("ls", {"path": "."}, "a"),),
        (TranscriptCall("ls", '{"path": ', "b"),),
    ]


def test_langchain_reader_calls_in_blocks_count_once_and_thoughts_are_left_out() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
        {"type": "file", "file_id": "f"},
    ]
    run = read_messages([HI, ai(content=blocks, tool_calls=[{"name": "ls", "args": {}, "id": "a"}], name="helper")])
    step = run.steps[1]
    assert (step.content, step.agent) == ("I look.\n[file]", "helper")
    assert [call.name for call in step.tool_calls] == ["ls"]


def test_langchain_reader_chunks_chat_messages_removals_and_late_system_messages() -> None:
    messages = [
        {"type": "AIMessageChunk", "content": "So", "additional_kwargs": {}},
        {"type": "chat", "role": "assistant", "content": "far", "response_metadata": {}},
        {"type": "remove", "id": "1", "content": "", "additional_kwargs": {}},
        {"type": "system", "content": "Hurry.", "additional_kwargs": {}},
    ]
    run = read_messages(messages)
    assert [(step.role, step.content) for step in run.steps] == [
        ("assistant", "So"),
        ("assistant", "far"),
        ("system", "Hurry."),
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"type": "robot", "data": {"content": "x"}}, "type 'robot' is not one of human, ai, system"),
        (ai(tool_calls=[5]), "Expected `object`, got `int` - at `$.messages[1].tool_calls[0]`"),
        ("text", "Expected `object`, got `str` - at `$.messages[1]`"),
    ],
)
def test_langchain_reader_what_is_wrong_is_named(tmp_path: Path, message: Any, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([HI, message]))
    with pytest.raises(TranscriptError, match="expected LangChain messages") as caught:
        read_transcripts(path)
    assert reason in caught.value.reason
