"""Langfuse: observations as its pages, its public API and its exports to blob storage have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coherence.core import genai_names as names
from coherence.providers.readers.genai_messages import parsed
from coherence.providers.readers.genai_run import Span
from coherence.providers.readers.otlp import runs_of_spans
from coherence.providers.readers.source import Source
from coherence.providers.readers.span_records import mapping_of, moment_of, records_of, text_of, tool_message
from coherence.providers.transcript import Transcript

EXPECTED = (
    "observations {id, traceId, type: GENERATION, TOOL, …, input, output}, a trace with observations, or a session"
)

TYPES = (
    "SPAN",
    "GENERATION",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
)

LISTS = ("data", "traces")
"""Keys under which an answer of the API, and a session, hold records."""


def is_langfuse(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is an observation, or holds some."""
    if isinstance(value.get("traces"), list):
        return any(isinstance(each, dict) and is_langfuse(each) for each in value["traces"][:50])
    if "observations" in value:
        held = value["observations"]
        return isinstance(held, list) and ("timestamp" in value or isinstance(value.get("trace"), dict))
    return value.get("type") in TYPES and ("traceId" in value or "trace_id" in value)


def read_langfuse(source: Source) -> Iterator[Transcript]:
    """Yield each agent's run of each session, or of each trace where no session is named.

    Raises
    ------
    TranscriptError
        If the file holds no observations, or none of a model or a tool.
    """
    spans: list[Span] = []
    passed_over = 0
    for record in records_of(source, LISTS, EXPECTED):
        held = record.get("observations")
        trace = record["trace"] if isinstance(record.get("trace"), dict) else record
        found = [_span(each, trace) for each in held] if isinstance(held, list) else [_span(record, {})]
        passed_over += found.count(None)
        spans += [span for span in found if span is not None]
    return runs_of_spans(source, spans, passed_over, "the observations", EXPECTED)


def _span(record: Any, trace: Mapping[str, Any]) -> Span | None:
    """Return an observation as the span that it was; ``None`` if it is none."""
    if not isinstance(record, dict) or record.get("type") not in TYPES:
        return None
    kind, name = record["type"], text_of(record, "name")
    start = moment_of(record.get("startTime", record.get("start_time")))
    end = moment_of(record.get("endTime", record.get("end_time")))
    result, call, failed = tool_message(parsed(record.get("output"))) if kind == "TOOL" else (None, "", False)
    # of spans that came by OpenTelemetry, all that their instrumentation has written
    given = parsed(mapping_of(record, "metadata").get("attributes"))
    attributes = {
        **(given if isinstance(given, dict) else {}),
        "langfuse.observation.type": kind,
        "langfuse.observation.input": record.get("input"),
        "langfuse.observation.output": result if kind == "TOOL" else record.get("output"),
        "langfuse.session.id": text_of(record, "sessionId", "session_id") or text_of(trace, "sessionId", "session_id"),
        names.LANGFUSE_LEVEL: record.get("level"),
        names.LANGFUSE_USAGE: record.get("usageDetails", record.get("usage_details", record.get("usage"))),
        names.LANGFUSE_COST: record.get("costDetails", record.get("cost_details")),
    }
    total = record.get("totalCost", record.get("total_cost", record.get("calculatedTotalCost")))
    if isinstance(total, int | float) and total and names.COST[0] not in attributes:
        attributes[names.COST[0]] = total
    if kind == "TOOL":
        attributes.setdefault(names.TOOL_NAME[0], name)
        if call:
            attributes.setdefault(names.TOOL_CALL_ID[0], call)
    return Span(
        trace=text_of(record, "traceId", "trace_id") or text_of(trace, "id"),
        id=text_of(record, "id"),
        parent=text_of(record, "parentObservationId", "parent_observation_id"),
        name=name,
        start=start,
        end=start if end is None else end,
        attributes=attributes,
        failed=failed,
        message=text_of(record, "statusMessage", "status_message"),
    )
