from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from coherence.core import genai_names as names
from coherence.export.otel import OtelSink
from coherence.monitor.monitor import Monitor
from coherence.monitor.steps import record_steps
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript, TranscriptCall
from coherence.report.score import score_transcript
from frameworks.otlp_json import write_otlp

pytestmark = pytest.mark.frameworks

DATA = Path(__file__).parents[2] / "examples" / "data"


class Exported:
    """A sink with providers of its own, and what they export."""

    def __init__(self, *, content: bool) -> None:
        self.memory = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        tracers, meters = TracerProvider(), MeterProvider([self.reader])
        tracers.add_span_processor(SimpleSpanProcessor(self.memory))
        self.sink = OtelSink(tracer_provider=tracers, meter_provider=meters, content=content)

    def spans(self) -> list[ReadableSpan]:
        assert self.sink.close()
        assert self.sink.dropped == 0
        return list(self.memory.get_finished_spans())

    def metric(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return [
            point for scope in scopes for each in scope.metrics if each.name == name for point in each.data.data_points
        ]


@pytest.fixture
def with_content() -> Iterator[Exported]:
    exported = Exported(content=True)
    yield exported
    exported.sink.close()


def monitor(exported: Exported, **options: Any) -> Monitor:
    config = {"tick": "manual"}
    return Monitor(
        agent="fixer", embedder=HashingEmbedder(), config=config, source="replay", sinks=[exported.sink], **options
    )


def looping() -> list[Step]:
    steps = [Step(role="user", content="Make the tests pass.")]
    for at in range(6):
        steps += [
            Step(
                role="assistant",
                content=f"I try once more ({at}).",
                tool_calls=(TranscriptCall("Bash", {"command": "pytest -q"}, f"c{at}"),),
            ),
            Step(role="tool", content="ImportError: no module named x", is_error=True, tool_name="Bash"),
        ]
    return [*steps, Step(role="assistant", content="I give up.")]


@pytest.mark.parametrize("source", ["looping", "agentdojo.jsonl.gz", "tau_airline.jsonl.gz"])
def test_otel_sink_round_trip_gives_the_same_readings(with_content: Exported, tmp_path: Path, source: str) -> None:
    runs = (
        [Transcript(id="loop", system="Be brief.", steps=tuple(looping()), memories=((3, "x is a package."),))]
        if source == "looping"
        else read_transcripts(DATA / source)[:2]
    )
    for number, run in enumerate(runs):
        with monitor(with_content, session=f"s{number}", goal=run.goal or None) as m:
            for _ in record_steps(m, run):
                m.decide()
            told = m.history()[::-1]
        assert len(told) == len(run.steps)
        with_content.sink.flush()
        spans = [
            span
            for span in with_content.memory.get_finished_spans()
            if (span.attributes or {})[names.CONVERSATION[0]] == f"s{number}"
        ]
        [back] = read_transcripts(write_otlp(tmp_path / f"{number}.otlp.json", spans))
        assert [step.role for step in back.steps] == [step.role for step in run.steps]
        assert [step.text() for step in back.steps] == [step.text() for step in run.steps]
        scored = score_transcript(back, embedder=HashingEmbedder())
        for one, other in zip(told, scored.readings, strict=True):
            assert other.band == one.band
            assert other.coherence_index == pytest.approx(one.coherence_index, abs=1e-6)
            assert dict(other.metrics) == pytest.approx(dict(one.metrics), abs=1e-6)


def events(spans: list[ReadableSpan], name: str) -> list[dict[str, Any]]:
    return [dict(event.attributes or {}) for span in spans for event in span.events if event.name == name]


def test_otel_sink_spans_are_those_of_the_conventions(with_content: Exported) -> None:
    with monitor(with_content, session="s") as m:
        m.message("user", "List the files.")
        m.message("assistant", "I look.", model="gpt-x", response_id="r1")
        call = m.tool_call("ls", {"path": "."})
        m.usage(tokens_in=10, tokens_out=3, tokens_cached=4)
        m.tool_result("Permission denied", error=True, error_type="OSError", call=call)
        reading = (m.decide(), m.latest)[1]
        m.outcome(False)
    chat, tool, root = with_content.spans()
    assert [span.name for span in (root, chat, tool)] == ["invoke_agent fixer", "chat gpt-x", "execute_tool ls"]
    assert chat.parent is not None and tool.parent is not None and root.context is not None
    assert chat.parent.span_id == tool.parent.span_id == root.context.span_id
    assert dict(chat.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "_OTHER",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x",
        "gen_ai.response.id": "r1",
        "gen_ai.agent.name": "fixer",
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "List the files."}]}]
        ),
        "gen_ai.output.messages": json.dumps(
            [
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "text", "content": "I look."},
                        {"type": "tool_call", "id": call, "name": "ls", "arguments": {"path": "."}},
                    ],
                }
            ]
        ),
    }
    assert (tool.attributes or {})["gen_ai.tool.call.result"] == "Permission denied"
    assert (tool.attributes or {})["error.type"] == "OSError"
    assert not tool.status.is_ok
    assert (root.attributes or {})["coherence.outcome"] is False
    assert reading is not None
    [told] = events([tool], names.EVALUATION)
    assert told["gen_ai.evaluation.name"] == "coherence.index"
    assert told["gen_ai.evaluation.score.value"] == reading.coherence_index
    assert told["gen_ai.evaluation.score.label"] == reading.band
    assert told["gen_ai.evaluation.explanation"] == reading.explain()


def test_otel_sink_exports_no_text_unless_asked() -> None:
    exported = Exported(content=False)
    with monitor(exported, goal="The word is xylophone.") as m:
        m.memory("xylophone")
        for at in range(4):
            m.message("user", f"xylophone {at}")
            m.message("assistant", "xylophone")
            m.tool_call("Bash", {"command": "xylophone"}, call=f"c{at}")
            m.tool_result("xylophone", error=True, call=f"c{at}")
            m.correction("no xylophone")
            m.decide()
        m.check("Bash", {"command": "rm -rf / xylophone"})
        m.fault("host", "xylophone")
    spans = exported.spans()
    assert len(spans) > 8
    assert "xylophone" not in "".join(span.to_json() for span in spans)
    kinds = [event["coherence.decision.kind"] for event in events(spans, names.OWN_DECISION)]
    assert "block" in kinds


def test_otel_sink_metrics_have_the_agent_as_label() -> None:
    exported = Exported(content=False)
    with monitor(exported) as m:
        m.message("user", "List the files.")
        m.message("assistant", "a b")
        m.usage(tokens_in=10, tokens_out=3, model="gpt-x", duration_s=1.5)
        decision = m.decide()
        index, pressure = m.latest, m.pressure
    exported.spans()
    [point] = exported.metric("coherence.index")
    assert index is not None and point.value == index.coherence_index
    assert dict(point.attributes) == {"gen_ai.agent.name": "fixer"}
    [point] = exported.metric("coherence.pressure")
    assert point.value == pytest.approx(pressure, abs=0.01)
    [point] = exported.metric("coherence.decisions")
    assert (point.value, point.attributes["coherence.decision"]) == (1, decision.kind)
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in exported.metric("gen_ai.client.token.usage")}
    assert sums == {"input": 10, "output": 3}
    [point] = exported.metric("gen_ai.client.operation.duration")
    assert (point.count, point.sum) == (1, 1.5)


def test_otel_sink_emit_costs_microseconds_and_never_raises(with_content: Exported) -> None:
    from coherence.core.events import Message
    from coherence.monitor.sinks import AgentRecord

    record = AgentRecord(1, time.time(), Message("assistant", "x" * 10_000), agent="a", session="s")
    costs = []
    for _ in range(500):
        start = time.perf_counter()
        with_content.sink.emit(record)
        costs.append(time.perf_counter() - start)
    # the median: the thread that makes the spans has the interpreter at times
    assert sorted(costs)[250] < 200e-6
    with_content.sink.emit(None)  # type: ignore[arg-type]
    assert with_content.sink.flush(30.0)
    assert with_content.sink.dropped == 1
    with_content.sink.close()
    with_content.sink.emit(record)
    assert with_content.sink.dropped == 2


def test_otel_sink_drops_what_is_too_much() -> None:
    sink = OtelSink(most_waiting=1)
    with sink._lock:  # the thread that empties the queue takes one, and stands still
        for _ in range(5):
            sink.ended("a", "s")
    assert sink.dropped >= 3
    assert sink.close()
