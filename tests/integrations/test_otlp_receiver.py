from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from coherence.core.config import MonitorConfig
from coherence.core.readings import Reading
from coherence.integrations import http_requests
from coherence.integrations.live_monitors import LiveMonitors
from coherence.integrations.otlp_collector import OtlpCollector
from coherence.integrations.otlp_receiver import OtlpReceiver
from coherence.store.store import Store

SAMPLES = Path(__file__).parents[1] / "data" / "otlp"
JSON = {"Content-Type": "application/json"}


@contextmanager
def listening(take: Any) -> Iterator[int]:
    with OtlpReceiver(take, 0) as receiver:
        thread = Thread(target=receiver.serve_forever, daemon=True)
        thread.start()
        yield receiver.server_port
        receiver.shutdown()
        thread.join()


def post(port: int, body: bytes, path: str = "/v1/traces", **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    given = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path, body, given)
    answer = connection.getresponse()
    told = answer.read()
    connection.close()
    return answer.status, json.loads(told) if told else None


@pytest.fixture
def taken() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def port(taken: list[dict[str, Any]]) -> Iterator[int]:
    with listening(taken.append) as port:
        yield port


def test_otlp_receiver_takes_json_plain_and_gzipped(port: int, taken: list[dict[str, Any]]) -> None:
    request: dict[str, Any] = {"resourceSpans": [{"scopeSpans": []}]}
    body = json.dumps(request).encode()
    assert post(port, body) == (200, {})
    assert post(port, gzip.compress(body), Content_Encoding="gzip") == (200, {})
    assert post(port, b'{"resourceLogs": []}', "/v1/logs") == (200, {})
    assert taken == [request, request, {"resourceLogs": []}]
    assert post(port, b'{"resourceMetrics": []}', "/v1/metrics") == (200, {})
    assert len(taken) == 3


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"{", {}, 400, "not JSON: "),
        (b"\xff", {}, 400, "not JSON: "),
        (b'{"spans": []}', {}, 400, "expected an object with resourceSpans"),
        (b"[" * 10_000, {}, 400, "not JSON: "),
        (b"{}", {"Content_Type": "text/plain"}, 415, "expected application/json or application/x-protobuf"),
        (b"{}", {"Content_Encoding": "br"}, 415, "expected gzip or no Content-Encoding, not br"),
        (b"no gzip", {"Content_Encoding": "gzip"}, 400, "damaged gzip: "),
        (gzip.compress(b"{}", mtime=0)[:-9], {"Content_Encoding": "gzip"}, 400, "truncated gzip"),
        (gzip.compress(b" " * 2_000_000, mtime=0), {"Content_Encoding": "gzip"}, 413, "bytes decompressed"),
        (b" " * 1_100_000, {}, 413, "send smaller batches"),
        (b"{}", {"Origin": "https://example.org"}, 403, "requests of web pages are not taken"),
    ],
)
def test_otlp_receiver_says_why_it_refuses(
    port: int,
    taken: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    body: bytes,
    headers: dict[str, str],
    status: int,
    why: str,
) -> None:
    monkeypatch.setattr(http_requests, "MAX_BODY", 1_000_000)
    found, answer = post(port, body, **headers)
    assert found == status
    assert why in answer["message"]
    assert taken == []


def test_otlp_receiver_knows_no_other_path_and_needs_a_length(port: int) -> None:
    assert post(port, b"{}", "/")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/v1/traces", iter([b"{}"]), JSON)  # chunked
    assert connection.getresponse().status == 411
    connection.close()


def test_otlp_receiver_goes_on_after_a_request_that_could_not_be_recorded() -> None:
    def take(request: dict[str, Any]) -> None:
        raise OSError("disk full")

    with listening(take) as port:
        assert post(port, b"{}") == (500, {"message": "it could not be recorded"})
        assert post(port, b"{}")[0] == 500


@pytest.mark.parametrize(
    ("name", "agent", "conversation", "calls", "errors"),
    [
        ("semconv.otlp.json", "fixer", "conv-1", 2, 1),
        ("openllmetry.otlp.json", "agent", "sess-7", 2, 1),
        ("without_content.otlp.json", "fixer", "0" * 31 + "1", 2, 1),
        ("claude_code.otlp.jsonl", "agent", "f8c0c895-2fae-49e7-9cae-339baf8217f7", 2, 1),
    ],
)
def test_otlp_collector_records_and_measures_what_is_posted(
    tmp_path: Path, name: str, agent: str, conversation: str, calls: int, errors: int
) -> None:
    text = (SAMPLES / name).read_text()
    requests = text.splitlines() if name.endswith("jsonl") else [text]
    readings: list[tuple[str, str, Reading]] = []
    with Store(tmp_path / "runs.db") as store:
        monitors = LiveMonitors(
            store, config=MonitorConfig(), embedder=False, on_reading=lambda *told: readings.append(told)
        )
        with listening(OtlpCollector(monitors).take) as port:
            for request in requests:
                assert post(port, request.encode(), "/v1/logs" if "resourceLogs" in request else "/v1/traces")[0] == 200
        monitors.close()
        [session] = store.sessions()
        assert (session.agent, session.session) == (agent, conversation)
        events = list(store.events(session.id))
    kinds = [row.kind for row in events]
    assert kinds.count("tool_call") == kinds.count("tool_result") == calls
    assert kinds.count("usage") == 3
    assert readings[-1][:2] == (agent, conversation)
    assert sum('"error":true' in row.data for row in events if row.kind == "tool_result") == errors


def test_otlp_collector_goes_on_with_a_conversation_in_the_next_request(tmp_path: Path) -> None:
    request = json.loads((SAMPLES / "semconv.otlp.json").read_text())
    spans = request["resourceSpans"][0]["scopeSpans"][0].pop("spans")
    with Store(tmp_path / "runs.db") as store:
        monitors = LiveMonitors(store, embedder=False)
        collector = OtlpCollector(monitors)
        for span in spans:  # as a processor that does not batch sends them
            request["resourceSpans"][0]["scopeSpans"][0]["spans"] = [span]
            collector.take(request)
        monitors.close()
        counts = {
            (row.agent, row.session): sum(event.kind == "message" for event in store.events(row.id))
            for row in store.sessions()
        }
    # without the span around them, spans do not know their agent and conversation: the trace holds them together
    assert counts == {("agent", "0" * 31 + "1"): 5}  # system, user, and three of the assistant
