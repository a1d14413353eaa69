from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, TranscriptCall


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "You are an airline agent."},
    {"role": "user", "content": "Cancel my booking H9ZU1C."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [call("c1", "get_booking", '{"id": "H9ZU1C"}'), call("c2", "get_user", '{"id": "mia"}')],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "Error: no such user"},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "H9ZU1C, one way"}]},
    {"role": "assistant", "content": "Which user are you?"},
]

STEPS = (
    Step(role="user", content="Cancel my booking H9ZU1C."),
    Step(
        role="assistant",
        tool_calls=(
            TranscriptCall("get_booking", {"id": "H9ZU1C"}, "c1"),
            TranscriptCall("get_user", {"id": "mia"}, "c2"),
        ),
    ),
    Step(role="tool", content="Error: no such user", tool_name="get_user"),
    Step(role="tool", content="H9ZU1C, one way", tool_name="get_booking"),
    Step(role="assistant", content="Which user are you?"),
)


def write(folder: Path, *values: Any, indent: int | None = None) -> Path:
    path = folder / "chat.json"
    path.write_text("\n".join(json.dumps(value, indent=indent) for value in values), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_openai_chat_a_list_of_messages_is_one_run(tmp_path: Path, indent: int | None) -> None:
    [run] = read_transcripts(write(tmp_path, CHAT, indent=indent))
    assert run.steps == STEPS
    assert (run.id, run.goal, run.format) == ("chat", "", "openai")
    assert run.system == "You are an airline agent."


@pytest.mark.parametrize("role", ["system", "developer"])
def test_openai_chat_a_system_message_in_mid_run_is_a_step(tmp_path: Path, role: str) -> None:
    [run] = read_transcripts(write(tmp_path, [*CHAT[:3], {"role": role, "content": "Be brief."}, *CHAT[3:]]))
    assert run.steps == (*STEPS[:2], Step(role="system", content="Be brief."), *STEPS[2:])


def test_openai_chat_an_object_with_messages_gives_its_id_and_goal(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, {"id": "r1", "goal": "cancel", "messages": CHAT, "tools": []}, indent=1))
    assert (run.id, run.goal, run.steps) == ("r1", "cancel", STEPS)


@pytest.mark.parametrize("wrap", [lambda messages: {"messages": messages}, list])
def test_openai_chat_one_conversation_a_line_is_one_run_each(tmp_path: Path, wrap: Any) -> None:
    runs = read_transcripts(write(tmp_path, wrap(CHAT), wrap(CHAT[:2])))
    assert [run.id for run in runs] == ["chat", "chat#2"]
    assert [len(run.steps) for run in runs] == [5, 1]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ('{"a": "cut o', '{"a": "cut o'),
        ("", ""),
        ("ls -l", "ls -l"),
        ("5", 5),
        ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
        ({"already": "parsed"}, {"already": "parsed"}),
        (None, None),
    ],
)
def test_arguments_are_parsed_where_they_parse(tmp_path: Path, written: Any, read: Any) -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call("c", "f", written)]}
    [run] = read_transcripts(write(tmp_path, [message]))
    assert run.steps[0].tool_calls[0].arguments == read


def test_openai_chat_the_legacy_function_call_is_a_tool_call(tmp_path: Path) -> None:
    chat = [
        {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "add", "content": "2"},
    ]
    [run] = read_transcripts(write(tmp_path, chat))
    assert run.steps == (
        Step(role="assistant", tool_calls=(TranscriptCall("add", {"a": 1}),)),
        Step(role="tool", content="2", tool_name="add"),
    )


def test_openai_chat_a_custom_tool_call_keeps_its_text(tmp_path: Path) -> None:
    chat = [
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "py", "input": "1+1"}}]}
    ]
    [run] = read_transcripts(write(tmp_path, chat))
    assert run.steps[0].tool_calls == (TranscriptCall("py", "1+1", "c"),)


def test_openai_chat_parts_that_are_not_text_become_markers(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA"}},
    ]
    [run] = read_transcripts(write(tmp_path, [{"role": "user", "content": parts}]))
    assert run.steps[0].content == "What is this?\n[image]\n[audio]"


def test_openai_chat_a_refusal_is_what_the_agent_said(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, [{"role": "assistant", "content": None, "refusal": "I can't."}]))
    assert run.steps[0].content == "I can't."


def test_openai_chat_the_name_of_a_speaker_is_its_agent(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, [{"role": "assistant", "name": "Planner", "content": "First, look."}]))
    assert run.steps[0].agent == "Planner"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "robot"}, "role 'robot' is not one of system, developer, user, assistant, tool, function"),
        ({"role": 3}, "Expected `str`, got `int` - at `$.messages[1].role`"),
        ({"content": "hi"}, "missing required field `role` - at `$.messages[1]`"),
        ({"role": "user", "content": 3}, "Expected `str | array | null`, got `int` - at `$.messages[1].content`"),
        ({"role": "assistant", "tool_calls": {}}, "Expected `array | null`, got `object`"),
        ({"role": "assistant", "tool_calls": [{}]}, "a tool call without function - at `$.messages[1].tool_calls[0]`"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "missing required field `name`"),
        ("hi", "Expected `object`, got `str` - at `$.messages[1]`"),
    ],
)
def test_openai_chat_a_wrong_message_is_named_with_what_was_expected(tmp_path: Path, message: Any, reason: str) -> None:
    path = write(tmp_path, {"messages": CHAT}, {"messages": [CHAT[1], message]})
    with pytest.raises(TranscriptError) as caught:
        read_transcripts(path)
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert reason in caught.value.reason
    assert "expected OpenAI messages" in caught.value.reason


def test_openai_chat_arguments_that_are_nested_too_deep_are_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": deep}}]}
    with pytest.raises(TranscriptError, match="nested deeper than 100 levels"):
        read_transcripts(write(tmp_path, [message]))
