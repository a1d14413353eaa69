from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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


def test_anthropic_messages_a_list_and_one_message_a_line_are_one_run(tmp_path: Path) -> None:
    [run] = read_transcripts(write(tmp_path, CHAT))
    assert (run.id, run.steps) == ("chat", STEPS)
    assert read_transcripts(write(tmp_path, *CHAT)) == [run]


def test_anthropic_messages_one_conversation_a_line_is_one_run_each(tmp_path: Path) -> None:
    runs = read_transcripts(write(tmp_path, {"messages": CHAT, "id": 7}, {"messages": CHAT[:1], "goal": "build"}))
    assert [(run.id, run.goal, len(run.steps)) for run in runs] == [("7", "", 6), ("chat", "build", 1)]


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t9"}]}, Step(role="tool")),
        (
            {
                "role": "assistant",
                "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "rain"}}],
            },
            Step(role="assistant", tool_calls=(TranscriptCall("web_search", {"query": "rain"}, "s"),)),
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "ok"}],
            },
            Step(role="assistant", content="ok"),
        ),
        (
            {"role": "assistant", "content": "ok", "usage": {"input_tokens": None}},
            Step(role="assistant", content="ok", usage=Counters()),
        ),
    ],
)
def test_anthropic_messages_a_message_is_a_step_and_one_of_the_system_before_it_is_none(
    tmp_path: Path, message: Any, step: Step
) -> None:
    path = write(tmp_path, [{"role": "system", "content": "Be short."}, message])
    [run] = read_transcripts(path, format="anthropic")
    assert (run.steps, run.system) == ((step,), "Be short.")
