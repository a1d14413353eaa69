"""Arize Phoenix: spans as its API, its pages and its data frames have them, with OpenInference's attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coherence.core import genai_names as names
from coherence.providers.readers.genai_messages import SpanEvent, parsed
from coherence.providers.readers.genai_run import Span
from coherence.providers.readers.otlp import runs_of_spans
from coherence.providers.readers.source import Source
from coherence.providers.readers.span_records import mapping_of, moment_of, records_of, text_of
from coherence.providers.transcript import Transcript

EXPECTED = "spans {name, context: {trace_id, span_id}, attributes} or rows {name, context.trace_id, attributes.…}"

LISTS = ("data", "spans")
"""Keys under which an answer of the API, and a trace, hold spans."""

MAX_LEVELS = 12
"""Levels of attributes whose names are joined by dots."""

_KIND = "openinference.span.kind"
_PREFIX = "attributes."


def is_phoenix(value: Mapping[str, Any]) -> bool:
    """Tell whether an object is a span of Phoenix, or a trace that holds some."""
    if isinstance(value.get("spans"), list):
        return any(isinstance(each, dict) and is_phoenix(each) for each in value["spans"][:50])
    context = mapping_of(value, "context")
    return ("trace_id" in context and "attributes" in value) or (
        "context.trace_id" in value and any(key.startswith(_PREFIX) for key in value)
    )


def read_phoenix(source: Source) -> Iterator[Transcript]:
    """Yield each agent's run of each session, or of each trace where no session is named.

    Raises
    ------
    TranscriptError
        If the file holds no spans, or none of a model or a tool.
    """
    found = [_span(record) for record in records_of(source, LISTS, EXPECTED)]
    spans = [span for span in found if span is not None]
    return runs_of_spans(source, spans, len(found) - len(spans), "the spans", EXPECTED)


def _span(record: Mapping[str, Any]) -> Span | None:
    name, context = record.get("name"), mapping_of(record, "context")
    if not isinstance(name, str):
        return None
    attributes: dict[str, Any] = {}
    for key, value in {**mapping_of(parsed(record.get("attributes")))}.items():
        _flatten(key, value, attributes)
    for key, value in record.items():
        if key.startswith(_PREFIX):
            _flatten(key.removeprefix(_PREFIX), value, attributes)
    if kind := text_of(record, "span_kind"):
        attributes.setdefault(_KIND, kind)
    start, end = moment_of(record.get("start_time")), moment_of(record.get("end_time"))
    events = parsed(record.get("events"))
    return Span(
        trace=text_of(context, "trace_id") or text_of(record, "context.trace_id"),
        id=text_of(context, "span_id") or text_of(record, "context.span_id", "span_id"),
        parent=text_of(record, "parent_id"),
        name=name,
        start=start,
        end=start if end is None else end,
        attributes=attributes,
        events=tuple(_event(each) for each in events if isinstance(each, dict)) if isinstance(events, list) else (),
        failed=record.get("status_code") == "ERROR",
        message=text_of(record, "status_message"),
    )


def _event(record: Mapping[str, Any]) -> SpanEvent:
    return SpanEvent(text_of(record, "name"), mapping_of(record, "attributes"), moment_of(record.get("timestamp")))


def _flatten(name: str, value: Any, into: dict[str, Any], level: int = 0) -> None:
    """Add an attribute under the names that OpenTelemetry has for it, ``llm.input_messages.0.message.role``."""
    if value is None:  # a column of another span
        return
    is_list = isinstance(value, list) and name.startswith((*names.INDEXED_INPUT, *names.INDEXED_OUTPUT))
    if level < MAX_LEVELS and isinstance(value, dict) | is_list:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            _flatten(f"{name}.{key}", inner, into, level + 1)
    if not is_list:
        into[name] = value
