"""What a session's transcript adds to what its hooks say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integrations.claude_code.payloads import interrupted_line, refused_line

from coherence.core.files import open_input
from coherence.integrations import added_lines
from coherence.integrations.claude_code.transcript_tail import (
    MAX_BEHIND,
    MAX_READ,
    Entry,
    TranscriptTail,
    entries_of,
)

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 300, "output_tokens": 7}


def said(*blocks: dict[str, Any], message: str = "m1", **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": message, "model": "c", "content": list(blocks), **fields}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "a"}]}}


def prompt(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": words}, **fields}


def append(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def values(entries: list[Entry]) -> list[str]:
    return [entry.value for entry in entries]


def everything(tail: TranscriptTail) -> list[str]:
    """Read on once, and return what waits."""
    tail.read()
    return values(tail.take(len(tail.waiting)))


def test_take_gives_what_came_before_a_call_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    tail = TranscriptTail(path)
    assert everything(tail) == []  # the file is not there yet
    append(path, said(text("I look."), call("a")), said(call("b")), result("a"), said(text("Then."), message="m2"))
    tail.read()
    assert tail.up_to_call("unknown") == tail.up_to_results({"unknown"}) == 0
    assert values(tail.take(tail.up_to_call("a"))) == ["I look.", "a"]
    assert values(tail.take(tail.up_to_results({"a", "b"}))) == ["b", "a"]
    assert tail.up_to_results({"a"}) == 0
    assert everything(tail) == ["Then."]
    assert everything(tail) == []


def test_read_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    line = json.dumps(said(text("whole"))) + "\n"
    path.write_text(line[:20])
    tail = TranscriptTail(path)
    assert everything(tail) == []
    path.write_text(line)
    assert everything(tail) == ["whole"]


def test_up_to_prompt_finds_a_prompt_by_its_id_or_else_by_its_words(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, said(text("Before.")), prompt("Go on.", promptId="p1"), said(text("Between.")), prompt("Go on."))
    tail = TranscriptTail(path)
    tail.read()
    assert tail.up_to_prompt("p1", "/go on") == 1  # the client has it in other words than the hook
    assert tail.up_to_prompt("p2", "Go on.") == 3
    assert tail.up_to_prompt("", "Go on.") == 1
    assert tail.up_to_prompt("p2", "Stop.") is None


def test_up_to_words_ends_with_the_message_that_has_them_or_before_a_prompt(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, said(text("Done."), call("a")), result("a"), said(text("Done."), message="m2"))
    append(path, prompt("And now?"), said(text("Nothing."), message="m3"))
    tail = TranscriptTail(path)
    tail.read()
    assert values(tail.waiting[: tail.up_to_words(" Done. ")]) == ["Done.", "a", "a", "Done."]
    assert tail.up_to_words("unknown") == tail.up_to_words("") == 4  # the prompt is the fifth
    assert tail.up_to_words("Nothing.") == 6


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count what is read of transcripts, one number a reading."""
    counts: list[int] = []

    class Counting:
        def __init__(self, file: IO[bytes]) -> None:
            self.file = file

        def __enter__(self) -> Counting:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def seek(self, place: int) -> int:
            return self.file.seek(place)

        def read(self, size: int) -> bytes:
            found = self.file.read(size)
            counts.append(len(found))
            return found

    monkeypatch.setattr(added_lines, "open_input", lambda path: Counting(open_input(path)))
    return counts


def test_read_a_transcript_of_100_mb_reads_a_bounded_part_at_each_event(tmp_path: Path, bytes_read: list[int]) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        file.truncate(100_000_000)  # one line of nothing
    append(path, *(said(text(f"{number}"), message=f"m{number}") for number in range(3)))
    tail, found = TranscriptTail(path), []
    while not tail.at_end:
        found += everything(tail)
    assert found == ["1", "2"]  # the line of nothing takes its line break, and the end of what is passed over, with it
    assert max(bytes_read) <= MAX_READ
    assert sum(bytes_read) <= MAX_BEHIND
    assert tail.left_out == path.stat().st_size - MAX_BEHIND
    append(path, said(text("next")))
    bytes_read.clear()
    assert everything(tail) == ["next"]
    assert sum(bytes_read) < 1_000  # what was read is not read again


def test_read_a_line_that_is_too_long_is_passed_over(tmp_path: Path, bytes_read: list[int]) -> None:
    path = tmp_path / "s.jsonl"
    append(path, said(text("first")), said(text("x" * 2 * MAX_READ)), said(text("last")))
    tail, found = TranscriptTail(path), []
    for _ in range(4):
        found += everything(tail)
    assert found == ["first", "last"]
    assert max(bytes_read) <= MAX_READ


def test_read_what_is_no_file_has_nothing_to_say(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path, tmp_path / "pipe.jsonl"):
        assert everything(TranscriptTail(path)) == []


def test_entries_of_an_answer_are_its_tokens_words_and_calls() -> None:
    line = json.dumps(said({"type": "thinking", "thinking": "hm"}, text("I look."), call("a"), usage=USAGE)).encode()
    usage, words, called = entries_of(line)
    assert usage.usage is not None
    counters = usage.usage.to_counters()
    assert (counters.tokens_in, counters.tokens_out) == (312, 7)  # 10 + 2 + 300
    assert words == Entry("text", "I look.", "m1", "c")
    assert called == Entry("call", "a", "m1", "c", tool="Bash", data={})


def test_entries_of_a_result_have_its_text_as_the_agent_was_shown_it() -> None:
    blocks = [{"type": "text", "text": "7 passed"}, {"type": "image", "source": {}}]
    shown = {"type": "tool_result", "tool_use_id": "a", "content": blocks, "is_error": True}
    line = {"type": "user", "message": {"role": "user", "content": [shown]}}
    assert list(entries_of(json.dumps(line).encode())) == [Entry("result", "a", data="7 passed\n[image]", error=True)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (prompt("Go on."), ["Go on."]),
        (prompt("<command-name>/review</command-name><command-args>it</command-args>"), ["/review it"]),
        (prompt("<task-notification>7</task-notification>"), [""]),
        (prompt("It ended.", origin={"kind": "task-notification"}), [""]),
        (prompt("It ended.", promptSource="system"), [""]),
        (prompt("A caveat.", isMeta=True), []),
        (prompt("For a subagent.", isSidechain=True), []),
    ],
)
def test_entries_of_a_prompt_have_words_if_a_person_typed_them(line: dict[str, Any], words: list[str]) -> None:
    found = list(entries_of(json.dumps(line).encode()))
    assert [(each.kind, each.value) for each in found] == [("prompt", each) for each in words]
    if line.get("isSidechain"):
        (of_it,) = entries_of(json.dumps(line).encode(), of_subagent=True)
        assert of_it.value == "For a subagent."


@pytest.mark.parametrize(
    ("line", "entries"),
    [
        (prompt("A summary.", isCompactSummary=True), [Entry("compaction", "")]),
        (prompt("[Request interrupted by user for tool use]"), [Entry("interruption", "")]),
        (interrupted_line(), [Entry("interruption", "")]),
        (refused_line("t1"), [Entry("refusal", "t1", ran=True)]),
        (refused_line("t1", toolDenialBeforeRun=True), [Entry("refusal", "t1", ran=False)]),
    ],
)
def test_entries_of_what_the_user_stopped_and_of_a_compaction_are_no_prompts_and_no_results(
    line: dict[str, Any], entries: list[Entry]
) -> None:
    assert list(entries_of(json.dumps(line).encode())) == entries


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


def test_entries_of_a_refusal_where_nobody_is_there_to_ask_is_no_answer_of_the_user() -> None:
    said = "coherence refused this call: find . -delete wipes the project. Ask the user before it runs."
    block = {"type": "tool_result", "tool_use_id": "t1", "content": said, "is_error": True}
    line = {"type": "user", "message": {"content": [block]}, "toolDenialKind": "user-rejected"}
    assert [(each.kind, each.value) for each in entries_of(json.dumps(line).encode())] == [("result", "t1")]
    block["content"] = "The user doesn't want to proceed with this tool use."
    assert [(each.kind, each.ran) for each in entries_of(json.dumps(line).encode())] == [("refusal", True)]
