from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, TranscriptCall

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}

CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Why does the build fail?"}, IMAGE]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "x"},
            {"type": "text", "text": "I look at both files."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}},
            {"type": "tool_use", "id": "t2", "name": "list", "input": {}},
        ],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t2", "content": "denied", "is_error": True},
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "import b"}, IMAGE]},
            {"type": "text", "text": "Hurry up."},
        ],
    },
    {"role": "assistant", "content": "The module b is missing."},
]

STEPS = (
    Step(role="user", content="Why does the build fail?\n[image]"),
    Step(
        role="assistant",
        content="I look at both files.",
        tool_calls=(TranscriptCall("read", {"path": "a.py"}, "t1"), TranscriptCall("list", {}, "t2")),
        usage=Counters(tokens_in=100, tokens_out=7),
    ),
    Step(role="tool", content="denied", tool_name="list", is_error=True),
    Step(role="tool", content="import b\n[image]", tool_name="read"),
    Step(role="user", content="Hurry up."),
    Step(role="assistant", content="The module b is missing."),
)


def write(folder: Path, *values: Any, indent: int | None = None) -> Path:
    path = folder / "chat.json"
    path.write_text("\n".join(json.dumps(value, indent=indent) for value in values), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_anthropic_messages_a_request_is_one_run(tmp_path: Path, indent: int | None) -> None:
    request = {"id": "r1", "model": "claude", "system": "Be short.", "messages": CHAT}
    [run] = read_transcripts(write(tmp_path, request, indent=indent))
    assert run.steps == STEPS
    assert (run.id, run.format, run.system) == ("r1", "anthropic", "Be short.")


@pytest.mark.parametrize(
    ("system", "told"),
    [([{"type": "text", "text": "Be short."}, {"type": "text", "text": "Be kind."}], "Be short.\nBe kind."), (7, "")],
)
def test_told_blocks_are_read_and_what_is_no_text_is_not(tmp_path: Path, system: Any, told: str) -> None:
    [run] = read_transcripts(write(tmp_path, {"system": system, "messages": CHAT}))
    assert run.system == told


def test_anthropic_messages_one_conversation_a_line_is_one_run_each(tmp_path: Path) -> None:
    runs = read_transcripts(write(tmp_path, {"messages": CHAT, "id": 7}, {"messages": CHAT[:1], "goal": "build"}))
    assert [(run.id, run.goal, len(run.steps)) for run in runs] == [("7", "", 6), ("chat", "build", 1)]


def test_a_message_of_results_alone_has_no_user_step(tmp_path: Path) -> None:
    message = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9"}]}
    [run] = read_transcripts(write(tmp_path, [message]))
    assert run.steps == (Step(role="tool"),)


def test_anthropic_messages_system_messages_and_hidden_thinking_are_no_steps(tmp_path: Path) -> None:
    chat = [
        {"role": "system", "content": "Be short."},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "ok"}]},
    ]
    [run] = read_transcripts(write(tmp_path, chat))
    assert run.steps == (Step(role="assistant", content="ok"),)
    assert run.system == "Be short."


def test_anthropic_messages_a_tool_of_the_server_is_a_tool_call_too(tmp_path: Path) -> None:
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "rain"}}
    path = write(tmp_path, [{"role": "assistant", "content": [block]}])
    [run] = read_transcripts(path, format="anthropic")
    assert run.steps[0].tool_calls == (TranscriptCall("web_search", {"query": "rain"}, "s"),)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "tool", "content": "x"}, "role 'tool' is not one of user, assistant, system - at `$.messages[1]`"),
        ({"role": "user", "content": [4]}, "Expected `object`, got `int` - at `$.messages[1].content[0]`"),
        ({"role": "user", "content": [{"type": "text", "text": 4}]}, "Expected `str | null`, got `int`"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]}, "a tool_use block without name"),
        (
            {"role": "user", "content": [{"type": "tool_result", "content": {"a": 1}}]},
            "content of a tool_result block: Expected `str | array | null`, got `object` - at `$.messages[1]",
        ),
        ({"role": "user", "content": [{"type": "tool_result", "is_error": "no"}]}, "Expected `bool | null`, got `str`"),
        ({"role": "user", "usage": {"output_tokens": -1}}, "Expected `int` >= 0"),
        ({"role": "user", "usage": {"output_tokens": 10**400}}, "Expected `int` <= 9007199254740992"),
    ],
)
def test_anthropic_messages_a_wrong_message_is_named_with_what_was_expected(
    tmp_path: Path, message: Any, reason: str
) -> None:
    path = write(tmp_path, {"messages": CHAT}, {"messages": [CHAT[3], message]})
    with pytest.raises(TranscriptError) as caught:
        read_transcripts(path, format="anthropic")
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert reason in caught.value.reason
    assert "expected Anthropic messages" in caught.value.reason
