"""What a session's transcript adds to what its hooks say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.integrations.claude_code import transcript_tail
from coherence.integrations.claude_code.transcript_tail import Entry, TranscriptTail, entries_of

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 300, "output_tokens": 7}


def said(*blocks: dict[str, Any], message: str = "m1", **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": message, "model": "c", "content": list(blocks), **fields}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "a"}]}}


def append(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def values(entries: list[Entry]) -> list[str]:
    return [entry.value for entry in entries]


def test_read_gives_what_came_before_a_call_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    tail = TranscriptTail(path)
    assert tail.read() == []  # the file is not there yet
    append(path, said(text("I look."), call("a")), said(call("b")), result("a"), said(text("Then."), message="m2"))
    assert values(tail.read({"unknown"})) == []
    assert values(tail.read({"a", "b"})) == ["I look.", "a", "b", "a"]
    assert tail.read({"a"}) == []
    assert values(tail.read()) == ["Then."]
    assert tail.read() == []


def test_read_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    line = json.dumps(said(text("whole"))) + "\n"
    path.write_text(line[:20])
    tail = TranscriptTail(path)
    assert tail.read() == []
    path.write_text(line)
    assert values(tail.read()) == ["whole"]


def test_read_at_the_end_begins_with_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, said(text("before")))
    tail = TranscriptTail(path, at_end=True)
    append(path, said(text("after")))
    assert values(tail.read()) == ["after"]


def test_read_more_than_is_read_at_once_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_tail, "MAX_READ", 500)
    path = tmp_path / "s.jsonl"
    append(path, said(text("first")), said(text("x" * 1_000)))
    tail = TranscriptTail(path)
    assert values(tail.read()) == ["first"]
    append(path, said(text("next")))
    assert values(tail.read()) == ["next"]


def test_read_what_is_no_file_has_nothing_to_say(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path, tmp_path / "pipe.jsonl"):
        assert TranscriptTail(path).read() == []


def test_entries_of_an_answer_are_its_tokens_words_and_calls() -> None:
    line = json.dumps(said({"type": "thinking", "thinking": "hm"}, text("I look."), call("a"), usage=USAGE)).encode()
    usage, words, called = entries_of(line)
    assert usage.usage is not None
    counters = usage.usage.to_counters()
    assert (counters.tokens_in, counters.tokens_out) == (312, 7)  # 10 + 2 + 300
    assert words == Entry("text", "I look.", "m1", "c")
    assert called == Entry("call", "a", "m1", "c")


def test_entries_of_what_a_hook_added_and_of_the_clients_own_messages() -> None:
    attached = {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["a fact", 7]}}
    assert list(entries_of(json.dumps(attached).encode())) == [Entry("context", "a fact")]
    assert not list(entries_of(json.dumps(said(text("API Error"), model="<synthetic>")).encode()))


NAMES = st.sampled_from(["type", "message", "attachment", "content", "text", "id", "usage", "model", "tool_use_id"])
WORDS = st.sampled_from(["assistant", "user", "text", "tool_use", "attachment"])
LINES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | WORDS,
    lambda inside: st.lists(inside) | st.dictionaries(NAMES, inside),
)


@given(LINES)
def test_entries_of_any_line_raises_nothing(value: Any) -> None:
    list(entries_of(json.dumps(value).encode()))


@given(st.binary())
def test_entries_of_any_bytes_raises_nothing(line: bytes) -> None:
    list(entries_of(line))
