"""Requests and answers of Converse as the conversation reads them; no SDK takes part."""

from __future__ import annotations

from typing import Any

from coherence.integrations.conversation import Result, Said
from coherence.integrations.converse_wire import ConverseWire

WIRE = ConverseWire()


def test_converse_wire_reads_results_before_the_text_and_marks_what_is_no_text() -> None:
    content = [
        {"text": "Look."},
        {"image": {"format": "png", "source": {"bytes": b"x"}}},
        {"cachePoint": {"type": "default"}},
        {"toolResult": {"toolUseId": "1", "content": [{"json": {"n": 1}}, {"text": "two"}]}},
        {"toolResult": {"toolUseId": "2", "content": [], "status": "error"}},
    ]
    assert list(WIRE.read({"role": "user", "content": content})) == [
        Result("1", '{"n":1}\ntwo'),
        Result("2", "", True),
        Said("user", "Look.\n[image]"),
    ]


def test_converse_wire_counts_tokens_of_a_cache_as_tokens_that_were_read() -> None:
    usage = {"inputTokens": 5, "cacheReadInputTokens": 200, "cacheWriteInputTokens": 30, "outputTokens": 7}
    answer = WIRE.answer({"usage": usage, "stopReason": "end_turn"})
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (5 + 200 + 30, 200, 7)


def test_converse_wire_tells_the_calls_that_the_provider_has_run_from_those_for_the_client() -> None:
    search = {"toolUseId": "s", "name": "search", "input": {"q": "x"}, "type": "server_tool_use"}
    found = {"toolUseId": "s", "content": [{"text": "found"}], "status": "success"}
    content = [{"toolUse": search}, {"toolResult": found}, {"toolUse": {"toolUseId": "1", "name": "bash", "input": {}}}]
    answer = WIRE.answer({"output": {"message": {"role": "assistant", "content": content}}})
    assert [call.name for call in answer.calls] == ["bash"]
    said, result = answer.served
    assert isinstance(said, Said)
    assert [call.name for call in said.calls] == ["search"]
    assert result == Result("s", "found", False)


def test_converse_wire_puts_an_answer_together_behind_the_beginning_that_the_request_gave() -> None:
    events: list[dict[str, Any]] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "4"}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "2."}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    begun = {"role": "assistant", "content": [{"text": "It is "}]}
    assert WIRE.begins(begun)
    answer = WIRE.answer(WIRE.assemble(events), "It is ")
    assert (answer.text, answer.finished) == ("It is 42.", True)
    whole = {"role": "assistant", "content": [{"text": "It is 42."}]}
    assert WIRE.keys(whole) == answer.keys
    cut = WIRE.answer(WIRE.assemble(events[:3]))
    assert (cut.text, cut.finished) == ("4", False)


def test_converse_wire_guides_a_request_without_a_message_of_the_user_by_one_more() -> None:
    assert WIRE.guided({"modelId": "m"}, "Stop.") == {
        "modelId": "m",
        "messages": [{"role": "user", "content": [{"text": "Stop."}]}],
    }
