"""What the transcript of a session of Gemini CLI adds to what its hooks say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coherence.integrations.gemini.transcript import Entry, Transcript, texts_in

RECORDED = Path(__file__).parents[2] / "data" / "gemini" / "transcript.jsonl"


def message(id: str = "m1", at: str = "2026-11-27T10:00:00.000Z", **fields: Any) -> dict[str, Any]:
    return {"type": "gemini", "id": id, "timestamp": at, "model": "g", "content": "", **fields}


def append(path: Path, *lines: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def kinds(entries: list[Entry]) -> list[str]:
    return [entry.kind for entry in entries]


def test_read_a_recorded_session_tells_each_thing_once() -> None:
    entries = Transcript(RECORDED).read()
    assert [entry.value for entry in entries if entry.kind == "text"] == ["I look.", "I fail.", "Done."]
    # Eight messages, of which two have two calls and the last one has none.
    assert kinds(entries).count("usage") == 8
    assert kinds(entries).count("call") == 9
    ended = [entry.call["name"] for entry in entries if entry.call and entry.call["status"] == "error"]
    assert ended == ["read_file", "run_shell_command", "nonsense"]
    # Of the nine calls, three failed; the client drops what a hook adds to those.
    assert [entry.value for entry in entries if entry.kind == "context"] == ["CTX-AfterTool"] * 6


def test_read_gives_what_came_up_to_a_time_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    transcript = Transcript(path)
    assert transcript.read() == []  # the file is not there yet
    append(path, message(content="I look.", at="2026-11-27T10:00:01.000Z"))
    call = {"id": "c1", "name": "read_file", "status": "success", "timestamp": "2026-11-27T10:00:03.000Z"}
    append(path, message(content="I look.", at="2026-11-27T10:00:01.000Z", toolCalls=[call]))
    append(path, message("m2", content="Then.", at="2026-11-27T10:00:04.000Z", tokens={"input": 7}))
    assert transcript.read("2026-11-27T10:00:00.999Z") == []
    assert kinds(transcript.read("2026-11-27T10:00:02.000Z")) == ["text"]
    assert kinds(transcript.read()) == ["call", "text", "usage"]
    assert transcript.read() == []


def test_read_what_was_written_before_a_session_goes_on_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, message(content="Before.", at="2026-11-27T10:00:01.000Z", toolCalls=[{"id": "c1"}]))
    append(path, message("m2", content=[{"text": "After."}], at="2026-11-27T10:00:02.000Z"))
    entries = Transcript(path, since="2026-11-27T10:00:01.500Z").read()
    assert [entry.value for entry in entries] == ["After."]


def test_read_a_compaction_is_told_once_with_its_summary(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    summary = "<state_snapshot>\nUnder way.\n</state_snapshot>"
    messages = [{"type": "user", "content": [{"text": text}]} for text in ("<session_context>", summary)]
    at = "2026-11-27T10:00:00.000Z"
    append(path, {"$set": {"messages": messages[:1]}}, *({"$set": {"messages": messages, "lastUpdated": at}},) * 2)
    assert Transcript(path).read() == [Entry("compaction", at, summary)]


FIELDS = (
    "$set",
    "messages",
    "type",
    "id",
    "content",
    "toolCalls",
    "tokens",
    "timestamp",
    "text",
    "functionResponse",
    "response",
)
JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(["gemini", "user"]),
    lambda of: st.lists(of) | st.dictionaries(st.sampled_from(FIELDS), of),
)


@given(st.binary(max_size=60) | JSON.map(lambda said: json.dumps(said).encode()))
def test_read_lines_of_any_kind_raise_nothing(line: bytes) -> None:
    transcript = Transcript(Path("/missing"))
    assert all(isinstance(entry, Entry) for entry in transcript._entries(line))


def test_texts_in_parts_of_any_form() -> None:
    assert texts_in("a") == ["a"]
    assert texts_in([{"text": "a"}, {"inlineData": {"data": "eA=="}}, "b", 7]) == ["a", "b"]
    assert texts_in(None) == texts_in({"functionResponse": {"response": []}}) == []
