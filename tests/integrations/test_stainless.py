"""An answer is read behind the host's back only if its bytes say that it has no call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.integrations.stainless import WIRES

TEXT = st.text(max_size=20)
SPACES = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])
CHAT_CALL = st.builds(
    lambda id, name: {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}, TEXT, TEXT
)
CHAT = st.builds(
    lambda text, calls, old: {
        "choices": [{"message": {"content": text, **({"tool_calls": calls} if calls else {}), **old}}]
    },
    TEXT,
    st.lists(CHAT_CALL, max_size=2),
    st.sampled_from([{}, {"function_call": {"name": "ls", "arguments": "{}"}}]),
)
ITEM = st.one_of(
    st.builds(
        lambda kind, id, name: {"type": kind, "call_id": id, "name": name, "arguments": "{}", "input": ""},
        st.sampled_from(["function_call", "custom_tool_call"]),
        TEXT,
        TEXT,
    ),
    st.builds(
        lambda text: {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}, TEXT
    ),
)
RESPONSE = st.builds(lambda items: {"id": "r", "status": "completed", "output": items}, st.lists(ITEM, max_size=3))
BLOCK = st.one_of(
    st.builds(
        lambda kind, id, name: {"type": kind, "id": id, "name": name, "input": {}},
        st.sampled_from(["tool_use", "server_tool_use", "mcp_tool_use"]),
        TEXT,
        TEXT,
    ),
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
)
MESSAGE = st.builds(lambda blocks: {"content": blocks, "stop_reason": "end_turn"}, st.lists(BLOCK, max_size=3))


@pytest.mark.parametrize(
    ("path", "answers"), [("/chat/completions", CHAT), ("/responses", RESPONSE), ("/v1/messages", MESSAGE)]
)
def test_calls_of_an_answer_are_never_without_their_bytes(path: str, answers: st.SearchStrategy[Any]) -> None:
    wire = WIRES[path]
    seen = set()

    @given(answers, SPACES, st.booleans())
    def check(value: Any, separators: tuple[str, str], ascii_only: bool) -> None:
        raw = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        has_calls, found = bool(wire.answer(value).calls), wire.CALLS.search(raw) is not None
        assert found or not has_calls
        seen.add((has_calls, found))

    check()
    assert {(True, True), (False, False)} <= seen, "else the test shows nothing"
