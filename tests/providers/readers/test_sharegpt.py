from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript, TranscriptCall


def read(folder: Path, *turns: Any) -> Transcript:
    path = folder / "set.json"
    path.write_text(json.dumps([{"conversations": list(turns)}]))
    [run] = read_transcripts(path)
    assert run.format == "sharegpt"
    return run


HUMAN = {"from": "human", "value": "hi"}


def test_sharegpt_reader_a_list_of_calls_is_made_at_once_and_other_texts_are_kept(tmp_path: Path) -> None:
    both = json.dumps([{"name": "a", "arguments": {"x": 1}}, {"name": "b", "parameters": {}}])
    run = read(tmp_path, HUMAN, {"from": "function_call", "value": both}, {"from": "function_call", "value": "ls -l"})
    assert run.steps[1].tool_calls == (TranscriptCall("a", {"x": 1}), TranscriptCall("b", {}))
    assert run.steps[2].tool_calls == (TranscriptCall("unknown", "ls -l"),)


def test_sharegpt_reader_a_tag_that_is_never_closed_is_text(tmp_path: Path) -> None:
    text = "Wait. <tool_call>{" * 3
    assert read(tmp_path, HUMAN, {"from": "gpt", "value": text}).steps[1].content == text


def test_sharegpt_reader_what_stands_around_calls_is_said(tmp_path: Path) -> None:
    call = '<tool_call>{"name": "ls"}</tool_call>'
    step = read(tmp_path, HUMAN, {"from": "gpt", "value": f"First.\n{call}\nThen {call}<tool_call>"}).steps[1]
    assert step.content == "First.\n\nThen <tool_call>"
    assert step.tool_calls == (TranscriptCall("ls"),) * 2


@pytest.mark.slow
def test_sharegpt_reader_many_calls_take_time_in_proportion(tmp_path: Path) -> None:
    many = "<tool_call>x</tool_call>" * 200_000  # in the square of it, these 5 MB would take minutes
    started = time.process_time()
    assert len(read(tmp_path, HUMAN, {"from": "gpt", "value": many}).steps[1].tool_calls) == 200_000
    assert time.process_time() - started < 20


def test_sharegpt_reader_roles_and_contents_of_other_sets(tmp_path: Path) -> None:
    run = read(tmp_path, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"})
    assert [(step.role, step.content) for step in run.steps] == [("user", "hi"), ("assistant", "ho")]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"from": "robot", "value": "x"}, "from 'robot' is not one of human, user, gpt"),
        ({"from": "gpt", "value": 5}, "Expected `str | null`, got `int` - at `$[0].conversations[1].value`"),
    ],
)
def test_sharegpt_reader_what_is_wrong_is_named(tmp_path: Path, turn: Any, reason: str) -> None:
    with pytest.raises(TranscriptError, match="expected ShareGPT") as caught:
        read(tmp_path, HUMAN, turn)
    assert reason in caught.value.reason
