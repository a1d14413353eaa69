from __future__ import annotations

from typing import Any

from coherence.core.readings import Counters
from coherence.providers.readers import read_messages
from coherence.providers.transcript import Step, TranscriptCall


def request(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), **more}


def response(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts), **more}


ASKED = request({"part_kind": "user-prompt", "content": "hi"}, instructions="Be short.")


def test_pydantic_ai_reader_retries_are_errors_of_a_tool_or_words_of_the_host() -> None:
    called = response({"part_kind": "tool-call", "tool_name": "add", "args": '{"a": 1}', "tool_call_id": "c"})
    of_tool = {"part_kind": "retry-prompt", "tool_name": "add", "tool_call_id": "c", "content": [{"loc": ["b"]}]}
    run = read_messages([ASKED, called, request(of_tool), response(), request({**of_tool, "tool_name": None})])
    assert run.steps[1].tool_calls == (TranscriptCall("add", {"a": 1}, "c"),)
    assert run.steps[2] == Step(role="tool", content='[{"loc":["b"]}]', tool_name="add", is_error=True)
    assert run.steps[4] == Step(role="system", content='[{"loc":["b"]}]')
    assert run.system == "Be short."  # of the first request


def test_pydantic_ai_reader_what_the_provider_ran_is_a_result_and_media_are_marks() -> None:
    answer = response(
        {"part_kind": "thinking", "content": "hm"},
        {"part_kind": "builtin-tool-call", "tool_name": "web", "args": {"q": "x"}, "tool_call_id": "w"},
        {"part_kind": "builtin-tool-return", "tool_name": "web", "content": {"hits": 2}, "tool_call_id": "w"},
        {"part_kind": "text", "content": "Two."},
        {"part_kind": "file", "content": {"kind": "binary", "media_type": "image/png", "data": "AAAA"}},
        usage={"request_tokens": 7, "response_tokens": 3},
    )
    media = ["See", {"kind": "image-url", "url": "http://x/y.png"}, {"kind": "cache-point"}]
    media.append({"kind": "binary", "media_type": "application/pdf", "data": "AAAA"})
    run = read_messages([request({"part_kind": "user-prompt", "content": media}), answer])
    assert run.steps == (
        Step(role="user", content="See\n[image]\n[file]"),
        Step(
            role="assistant",
            content="Two.\n[image]",
            tool_calls=(TranscriptCall("web", {"q": "x"}, "w"),),
            usage=Counters(tokens_in=7, tokens_out=3),  # the names before version 1
        ),
        Step(role="tool", content='{"hits":2}', tool_name="web"),
    )
