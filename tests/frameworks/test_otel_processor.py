from __future__ import annotations

import json
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode, Tracer

from coherence.core.events import Message, ToolCall, ToolResult, Usage
from coherence.export.otel import OtelSink
from coherence.integrations.otel import MonitorSpanProcessor
from coherence.integrations.otlp_receiver import OtlpReceiver
from coherence.monitor.monitor import Monitor
from coherence.providers.readers.otlp import read_requests

pytestmark = pytest.mark.frameworks


def turn(tracer: Tracer, agent: str = "fixer") -> None:
    """An agent that asks a model, runs a tool that fails, and asks again."""
    ask = [{"role": "user", "parts": [{"type": "text", "content": "List."}]}]
    call = {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"path": "."}}
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "I look."}, call]}]
    chat: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.agent.name": agent}):
        with tracer.start_as_current_span("chat", attributes=chat) as span:
            span.set_attribute("gen_ai.input.messages", json.dumps(ask))
            span.set_attribute("gen_ai.output.messages", json.dumps(answer))
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ls", "gen_ai.tool.call.id": "c1"}
        with tracer.start_as_current_span("execute_tool ls", attributes=tool) as span:
            span.set_status(Status(StatusCode.ERROR, "denied"))
        with tracer.start_as_current_span("chat", attributes=chat) as span:
            result = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "denied"}]}]
            span.set_attribute("gen_ai.input.messages", json.dumps([*ask, *answer, *result]))
            span.set_attribute("gen_ai.output.messages", json.dumps([{"role": "assistant", "content": "I cannot."}]))


def told(m: Monitor) -> list[Any]:
    return [
        record.event for record in m.events()[::-1] if isinstance(record.event, Message | ToolCall | ToolResult | Usage)
    ]


def test_monitor_span_processor_tells_a_monitor_what_ended_spans_say() -> None:
    provider = TracerProvider()
    with Monitor(embedder=False) as m:
        processor: Any = MonitorSpanProcessor(m)
        provider.add_span_processor(processor)
        turn(provider.get_tracer("app"))
        assert provider.force_flush()
        events = told(m)
        provider.shutdown()
    assert processor.dropped == 0
    assert [type(event) for event in events] == [Message, Message, ToolCall, Usage, ToolResult, Message, Usage]
    assert [event.content for event in events if isinstance(event, Message)] == ["List.", "I look.", "I cannot."]
    [result] = [event for event in events if isinstance(event, ToolResult)]
    assert (result.result, result.error, result.call_id) == ("denied", True, "c1")


def test_monitor_span_processor_gives_each_agent_its_monitor_and_passes_over_our_own_spans() -> None:
    provider = TracerProvider()
    monitors: dict[str, Monitor] = {}
    sink = OtelSink(tracer_provider=provider, content=True)

    def monitor_of(agent: str, conversation: str) -> Monitor:
        return monitors.setdefault(agent, Monitor(agent=agent, embedder=False, sinks=[sink]))

    processor: Any = MonitorSpanProcessor(monitor_of)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("app")
    turn(tracer, "one")
    turn(tracer, "two")
    provider.force_flush()
    for monitor in monitors.values():
        monitor.close()
    sink.close()
    provider.force_flush()
    assert sorted(monitors) == ["one", "two"]
    assert [len(told(monitor)) for monitor in monitors.values()] == [7, 7]
    provider.shutdown()


def test_monitor_span_processor_never_raises_into_the_host() -> None:
    def monitor_of(agent: str, conversation: str) -> Monitor:
        raise RuntimeError("none")

    provider = TracerProvider()
    processor: Any = MonitorSpanProcessor(monitor_of)
    provider.add_span_processor(processor)
    turn(provider.get_tracer("app"))
    provider.force_flush()
    processor.on_start(object())
    processor.on_end(object())
    assert processor.dropped == 3  # the chats and the tool


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_otlp_receiver_takes_what_the_real_exporter_sends(compression: Compression) -> None:
    taken: list[dict[str, Any]] = []
    with OtlpReceiver(taken.append, 0) as receiver:
        thread = Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{receiver.server_port}/v1/traces", compression=compression)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        turn(provider.get_tracer("app"))
        provider.shutdown()
        receiver.shutdown()
        thread.join()
    spans = read_requests(taken).spans
    assert sorted(span.name for span in spans) == ["chat", "chat", "execute_tool ls", "invoke_agent"]
    [agent] = [span for span in spans if span.name == "invoke_agent"]
    assert {span.parent for span in spans if span is not agent} == {agent.id}
    assert [span.message for span in spans if span.failed] == ["denied"]
