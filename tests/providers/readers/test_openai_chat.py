from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_openai_chat_an_object_with_messages_and_one_message_a_line_are_one_run(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, {"id": "r1", "goal": "cancel", "messages": CHAT, "tools": []}, indent=1))
    assert (run.id, run.goal, run.steps) == ("r1", "cancel", STEPS)
    [run] = read_transcripts(write(tmp_path, *CHAT))
    assert run.steps == STEPS


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


PARTS = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA"}},
]


@pytest.mark.parametrize(
    ("message", "step"),
    [
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "py", "input": "1+1"}}],
            },
            Step(role="assistant", tool_calls=(TranscriptCall("py", "1+1", "c"),)),
        ),
        ({"role": "user", "content": PARTS}, Step(role="user", content="What is this?\n[image]\n[audio]")),
        ({"role": "assistant", "content": None, "refusal": "No."}, Step(role="assistant", content="No.")),
        ({"role": "assistant", "name": "Ann", "content": "Hm."}, Step(role="assistant", agent="Ann", content="Hm.")),
        ({"role": "tool", "tool_call_id": "unknown", "content": "ok"}, Step(role="tool", content="ok")),
    ],
)
def test_openai_chat_a_message_is_a_step(tmp_path: Path, message: Any, step: Step) -> None:
    [run] = read_transcripts(write(tmp_path, [message]), format="openai")
    assert run.steps == (step,)
