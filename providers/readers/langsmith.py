"""LangSmith: runs as its client and its bulk exports have them, of LangChain or of wrapped clients."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from coherence.core import genai_names as names
from coherence.providers.readers.genai_messages import parsed
from coherence.providers.readers.genai_run import Span
from coherence.providers.readers.otlp import runs_of_spans
from coherence.providers.readers.source import Source
from coherence.providers.readers.span_records import mapping_of, moment_of, records_of, text_of, tool_message
from coherence.providers.transcript import Transcript

EXPECTED = "runs {id, run_type: llm, tool, chain, …, inputs, outputs, trace_id, parent_run_id}, a list or one a line"

LISTS = ("runs",)
"""Key under which an answer of the API holds runs."""

THREAD = ("session_id", "thread_id", "conversation_id")
"""Metadata by which LangSmith holds the traces of a conversation together."""

MAX_LEVELS = 8
"""Levels of runs that hold their children."""

MAX_REPR = 100_000
"""Characters of arguments written by Python's ``repr`` that are read."""

_TRACEBACK = "Traceback (most recent call last)"
_QUESTIONS = ("input", "question", "query", "prompt", "text")


def is_langsmith(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is a run of LangSmith, or an answer that holds some."""
    if isinstance(value.get("runs"), list):
        return any(isinstance(each, dict) and is_langsmith(each) for each in value["runs"][:50])
    return isinstance(value.get("run_type"), str) and ("inputs" in value or "trace_id" in value)


def read_langsmith(source: Source) -> Iterator[Transcript]:
    """Yield each run of an agent: of a thread or, where none is named, of a trace.

    Raises
    ------
    TranscriptError
        If the file holds no runs, or none of a model or a tool.
    """
    spans: dict[str, Span] = {}
    unnamed: list[Span] = []
    passed_over = 0
    for record in records_of(source, LISTS, EXPECTED):
        for each in _family(record):
            span = _span(each)
            if span is None:
                passed_over += 1
            elif span.id:
                spans[span.id] = span  # a child may be in the file and inside its parent
            else:
                unnamed.append(span)
    return runs_of_spans(source, [*spans.values(), *unnamed], passed_over, "the runs", EXPECTED)


def _family(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a run and those that it holds."""
    found, level = [record], [record]
    for _ in range(MAX_LEVELS):
        held = [run.get("child_runs") for run in level]
        level = [child for each in held if isinstance(each, list) for child in each if isinstance(child, dict)]
        if not level:
            break
        found += level
    return found


def _span(record: Mapping[str, Any]) -> Span | None:
    kind, name = record.get("run_type"), text_of(record, "name")
    if not isinstance(kind, str):
        return None
    extra = mapping_of(parsed(record.get("extra")))
    metadata = mapping_of(extra, "metadata")
    attributes: dict[str, Any] = {"session.id": next((metadata[key] for key in THREAD if metadata.get(key)), None)}
    given, answered = parsed(record.get("inputs")), parsed(record.get("outputs"))
    error, failed = text_of(record, "error"), False
    error = error.partition(_TRACEBACK)[0].strip() or error
    if kind == "llm":
        attributes |= {"openinference.span.kind": "llm", "input.value": _asked(given), "output.value": _said(answered)}
        attributes |= _amounts(record, answered, mapping_of(metadata, "usage_metadata"))
    elif kind == "tool":
        result, call, failed = tool_message(_message(_only(answered or None)))
        attributes |= {
            "openinference.span.kind": "tool",
            names.TOOL_NAME[0]: name,
            names.TOOL_ARGUMENTS[0]: _arguments(given),
            names.TOOL_RESULT[0]: result,
        }
        attributes[names.TOOL_CALL_ID[0]] = call or text_of(extra, "tool_call_id")
    elif kind == "chain" and not record.get("parent_run_id"):
        question = _question(given)
        attributes |= {"openinference.span.kind": "agent", "input.value": question, "output.value": _said(answered)}
    start, end = moment_of(record.get("start_time")), moment_of(record.get("end_time"))
    return Span(
        trace=text_of(record, "trace_id") or text_of(record, "id"),
        id=text_of(record, "id"),
        parent=text_of(record, "parent_run_id"),
        name=name,
        start=start,
        end=start if end is None else end,
        attributes=attributes,
        failed=failed or bool(error) or record.get("status") == "error",
        message=error,
    )


def _asked(given: Any) -> Any:
    """Return the messages that a model was given, as a list."""
    if not isinstance(given, dict):
        return given
    messages = next((given[key] for key in ("messages", "input", "prompts", "contents") if given.get(key)), None)
    if messages is None:
        return given
    if isinstance(messages, list) and messages and isinstance(messages[0], list):  # of the first of a batch
        messages = messages[0]
    told = [
        {"role": "user", "content": each} if isinstance(each, str) else _message(each)
        for each in (messages if isinstance(messages, list) else [messages])
    ]
    system = next((given[key] for key in ("system", "instructions") if given.get(key)), None)
    return told if system is None else [{"role": "system", "content": system}, *told]


def _said(answered: Any) -> Any:
    """Return the messages that a model or an agent has answered."""
    if not isinstance(answered, dict):
        return answered
    generations = answered.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        message = generations.get("message")
        return [_message(message) if message else {"role": "assistant", "content": generations.get("text")}]
    if isinstance(output := answered.get("output"), list) and answered.get("object") == "response":
        return [_message(each) for each in output]
    messages = answered.get("messages")
    if isinstance(messages, list) and messages:
        return [_message(messages[-1])]
    only = _only(answered)
    return only if isinstance(only, str) else _message(only)


def _message(value: Any) -> Any:
    """Return a message of LangChain without what its serialisation puts around it."""
    if not isinstance(value, dict):
        return value
    inner = value.get("kwargs") if value.get("lc") == 1 else value.get("data")
    if not isinstance(inner, dict):
        return value
    path = value.get("id")
    # a class that was given no type: HumanMessage, AIMessageChunk
    named = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else ""
    kind = inner.get("type") or value.get("type")
    if kind in (None, "constructor"):
        kind = named.removesuffix("Chunk").removesuffix("Message").lower()
    return {**inner, "type": kind}


def _amounts(record: Mapping[str, Any], answered: Any, told_beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens and the cost of a call."""
    told = mapping_of(answered)
    message = _said(told)
    first = message[0] if isinstance(message, list) and message else message
    usage = mapping_of(told, "usage_metadata") or mapping_of(first, "usage_metadata") or mapping_of(told, "usage")
    usage = usage or mapping_of(told, "llm_output", "token_usage") or told_beside
    tokens = {
        names.INPUT_TOKENS[0]: (record.get("prompt_tokens"), usage.get("input_tokens"), usage.get("prompt_tokens")),
        names.OUTPUT_TOKENS[0]: (
            record.get("completion_tokens"),
            usage.get("output_tokens"),
            usage.get("completion_tokens"),
        ),
        names.COST[0]: (record.get("total_cost"), usage.get("total_cost")),
    }
    # a run without a count has 0
    return {name: next((value for value in values if value), None) for name, values in tokens.items()}


def _arguments(given: Any) -> Any:
    """Return the arguments of a tool; LangChain keeps them as Python writes them."""
    value = _only(given, "input", "inputs", "tool_input")
    if isinstance(value, str) and value[:1] == "{" and len(value) <= MAX_REPR and isinstance(parsed(value), str):
        try:
            return parsed(json.dumps(ast.literal_eval(value)))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return value
    return value


def _question(given: Any) -> Any:
    """Return what the first run of a trace was asked, where its inputs tell."""
    if isinstance(given, dict) and isinstance(given.get("messages"), list):
        return [_message(each) for each in given["messages"]]
    found = [given[key] for key in _QUESTIONS if isinstance(given, dict) and isinstance(given.get(key), str)]
    return found[0] if found else None


def _only(value: Any, *keys: str) -> Any:
    """Return what an object holds that has nothing but one of some keys, by default ``output`` or ``content``."""
    if isinstance(value, dict) and len(value) == 1:
        [(key, inner)] = value.items()
        return inner if key in (keys or ("output", "content", "result", "answer")) else value
    return value
