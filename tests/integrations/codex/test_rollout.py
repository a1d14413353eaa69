"""Lines of a rollout of Codex CLI, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coherence.integrations.codex.rollout import Entry, entries_of

LINES: list[dict[str, Any]] = [
    read["line"]
    for line in (Path(__file__).parents[2] / "data" / "codex" / "sessions.jsonl").read_text().splitlines()
    if "line" in (read := json.loads(line))
]


def said(kind: str, **payload: Any) -> list[Entry]:
    return list(entries_of(json.dumps({"type": kind, "payload": payload}).encode()))


def test_entries_of_each_kind_of_line() -> None:
    part = {"type": "output_text", "text": "I look."}
    assert said("event_msg", type="task_started", turn_id="t1") == [Entry("turn", id="t1")]
    message = {"type": "message", "id": "m1", "content": [part, {"type": "image"}, part]}
    assert said("response_item", role="assistant", **message) == [Entry("text", "I look.\nI look.", "m1")]
    assert said("response_item", role="developer", **message) == [Entry("context", "I look.")] * 2
    assert said("response_item", role="user", **message) == []
    call = {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"cmd": "ls"}'}
    assert said("response_item", **call) == [Entry("call", "shell", "c1", {"cmd": "ls"})]
    patch = {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch"}
    assert said("response_item", **patch) == [Entry("call", "apply_patch", "c2", "*** Begin Patch")]
    output = {"type": "function_call_output", "call_id": "c1"}
    assert said("response_item", **output, output="a.py") == [Entry("output", "a.py", "c1")]
    assert said("response_item", **output, output=[part]) == [Entry("output", "I look.", "c1")]
    item = {"type": "CommandExecution", "id": "c1", "status": "failed", "exit_code": 3}
    assert said("event_msg", type="item_completed", item=item) == [Entry("outcome", "failed", "c1")]
    assert said("event_msg", type="task_complete", error={"message": "busy"}) == [Entry("fault", "busy")]
    assert said("event_msg", type="task_complete") == []
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": True}
    assert said("token_usage_record", usage=usage) == [Entry("usage", tokens_in=10)]  # the cached ones are among them
    assert said("compacted", message="Another language model started.\nA\nB") == [Entry("compaction", "A\nB")]
    assert said("compacted", message="A\nB") == [Entry("compaction", "A\nB")]
    assert said("world_state", state={}) == []


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LINES), st.data())
def test_entries_of_fields_of_any_type_raise_nothing(line: dict[str, Any], data: st.DataObject) -> None:
    names = sorted(line["payload"])
    changed = {name: data.draw(_ANY) for name in data.draw(st.lists(st.sampled_from(names), max_size=3))}
    list(entries_of(json.dumps({**line, "payload": {**line["payload"], **changed}}).encode()))
    list(entries_of(json.dumps({**line, "payload": data.draw(_ANY)}).encode()))


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"\xff", b'{"type": "compacted"}', b"[" * 100_000])
def test_entries_of_other_lines_say_nothing(line: bytes) -> None:
    assert list(entries_of(line)) == []
