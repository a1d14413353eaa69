from __future__ import annotations

from typing import Any

import pytest

from coherence.core.readings import Counters
from coherence.providers.readers.genai_run import RunOfSpans, Span, joins, usage_of
from coherence.providers.transcript import Step, TranscriptCall


def chat(asked: list[str], answer: str, **more: Any) -> Span:
    """A chat whose request is user and assistant in turns."""
    given = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(asked)]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": given, "gen_ai.output.messages": answer}
    return Span(name="chat", attributes=attributes, **more)


def tool(**attributes: Any) -> Span:
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return Span(name="ls", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", **named})


def said(run: RunOfSpans, *spans: Span) -> list[str]:
    return [step.content for span in spans for step in run.add(span)]


def test_run_of_spans_tells_repeated_messages_once_where_the_answer_comes_back_otherwise() -> None:
    # the request quotes the answer without its last words
    first, second = chat(["a"], "One. Truly."), chat(["a", "One.", "b"], "Two.")
    assert said(RunOfSpans(), first, second) == ["a", "One. Truly.", "b", "Two."]


def test_run_of_spans_tells_the_same_request_again_where_only_what_is_new_is_sent() -> None:
    assert said(RunOfSpans(), chat(["a"], "1"), chat(["b"], "2"), chat(["b"], "3")) == ["a", "1", "b", "2", "b", "3"]


def test_run_of_spans_tells_a_retry_once() -> None:
    failed = chat(["a"], "", failed=True)
    assert said(RunOfSpans(), failed, chat(["a"], "1")) == ["a", "1"]


def test_run_of_spans_tells_our_own_spans_as_they_are() -> None:
    ours = [chat(["a"], "1", scope="coherence"), chat(["a"], "1", scope="coherence")]
    assert said(RunOfSpans(), *ours) == ["a", "1", "a", "1"]


def test_run_of_spans_a_tool_without_a_message_is_a_call_of_its_own() -> None:
    call, result = RunOfSpans().add(tool(gen_ai__tool__call__result="x", gen_ai__tool__call__arguments='{"a": 1}'))
    assert call.tool_calls == (TranscriptCall("ls", {"a": 1}, None),)
    assert (result.content, result.tool_name, result.is_error) == ("x", "ls", False)


def test_run_of_spans_a_span_of_a_tool_and_its_message_are_one_result() -> None:
    run = RunOfSpans()
    run.add(tool(gen_ai__tool__call__id="c", gen_ai__tool__call__result="x"))
    message = {"role": "tool", "tool_call_id": "c", "content": "x"}
    again = Span(name="chat", attributes={"gen_ai.operation.name": "chat", "gen_ai.input.messages": [message]})
    assert [step.role for step in run.add(again)] == ["assistant"]


def test_joins_is_for_calls_that_no_words_come_with() -> None:
    message, call = (
        Step(role="assistant", content="I look."),
        Step(role="assistant", tool_calls=(TranscriptCall("ls"),)),
    )
    assert joins(message, call)
    assert not joins(None, call)
    assert not joins(Step(role="tool"), call)
    assert not joins(message, message)


@pytest.mark.parametrize(
    ("name", "attributes", "found"),
    [
        (
            "chat",
            {"gen_ai.usage.prompt_tokens": 3, "gen_ai.usage.completion_tokens": "4"},
            Counters(tokens_in=3, tokens_out=4),
        ),
        ("chat", {"llm.token_count.prompt": 3.0}, Counters(tokens_in=3)),
        ("chat", {"langfuse.observation.usage_details": '{"input": 3}'}, Counters(tokens_in=3)),
        # Claude Code counts what comes from a cache apart
        (
            "claude_code.api_request",
            {"input_tokens": 3, "cache_read_tokens": 4, "cost_usd": 0.5},
            Counters(tokens_in=7, cost_usd=0.5),
        ),
        ("chat", {"gen_ai.usage.input_tokens": -1, "gen_ai.usage.output_tokens": True}, None),
        ("chat", {"gen_ai.usage.input_tokens": float("nan")}, None),
    ],
)
def test_usage_of_reads_the_tokens_of_every_instrumentation(
    name: str, attributes: dict[str, Any], found: Counters | None
) -> None:
    assert usage_of(Span(name=name, attributes=attributes)) == found
