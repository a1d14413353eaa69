"""Claude Code's own telemetry: spans and log records of the same session, each told once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from coherence.core import genai_names as names
from coherence.providers.readers.genai_run import Span


def claude_code_once(spans: Sequence[Span]) -> list[Span]:
    """Return spans, log records among them, without those that tell the same again; others are left as they are.

    The log records of a session tell all but the results of tools, which only its spans have. What a model answered and
    what it took are two log records, which become one.
    """
    if not any(span.name in names.CLAUDE_CODE for span in spans):
        return list(spans)
    logged = {span.text(names.CONVERSATION) for span in spans if span.name in names.CLAUDE_CODE_EVENTS}
    answers = {
        request: span.attributes.get("response")
        for span in spans
        if span.name == "claude_code.assistant_response" and (request := _request(span))
    }
    told: dict[str, Span] = {}
    failed: dict[str, Span] = {}
    for span in spans:
        if id := span.text(names.TOOL_CALL_ID):
            if span.name == "claude_code.tool":
                told[id] = span
            elif span.name == names.CLAUDE_CODE_EXECUTION and span.is_error:
                failed[id] = span
    asked = {_request(span) for span in spans if span.name == "claude_code.api_request"}
    found = []
    for span in spans:
        if span.name not in names.CLAUDE_CODE:
            found.append(span)
        elif span.name == "claude_code.tool_result":
            beside = told.get(span.text(names.TOOL_CALL_ID))
            found.append(span if beside is None else msgspec.structs.replace(span, events=beside.events))
        elif span.name == "claude_code.api_request":
            response = answers.get(_request(span))
            found.append(span if response is None else _with(span, {"response": response}))
        elif span.name == "claude_code.assistant_response":
            found += [] if _request(span) in asked else [span]
        elif span.name in names.CLAUDE_CODE_EVENTS or span.text(names.CONVERSATION) not in logged:
            found.append(_traced(span, failed))
    return found


def _traced(span: Span, failed: dict[str, Span]) -> Span:
    """Return a span of a tool with the arguments that its attributes tell, and the error of its work."""
    if span.name != "claude_code.tool":
        return span
    arguments = {
        argument: span.attributes[name]
        for name, argument in names.CLAUDE_CODE_ARGUMENTS.items()
        if name in span.attributes
    }
    if arguments and span.first(names.TOOL_ARGUMENTS) is None:
        span = _with(span, {names.TOOL_ARGUMENTS[0]: arguments})
    work = failed.get(span.text(names.TOOL_CALL_ID))
    return span if work is None else msgspec.structs.replace(span, failed=True, message=work.message)


def _request(span: Span) -> str:
    return span.text((names.CLAUDE_CODE_REQUEST,))


def _with(span: Span, more: dict[str, Any]) -> Span:
    return msgspec.structs.replace(span, attributes={**span.attributes, **more})
