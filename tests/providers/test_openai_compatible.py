from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple

import numpy as np
import pytest

from coherence import CoherenceSensor
from coherence.core.errors import VectorError
from coherence.providers import OpenAICompatibleEmbedder, StaticState


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Answer(NamedTuple):
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 0.5]


def rows(texts: list[str]) -> list[dict[str, Any]]:
    return [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]


def data(rows: object) -> Answer:
    return Answer(json.dumps({"object": "list", "data": rows}).encode())


class Stub:
    """A server that speaks the embeddings API, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[list[str]], Answer] = lambda texts: data(rows(texts))
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.asked.append(Asked(self.path, dict(self.headers.items()), body))
                answer = stub.answer(body["input"])
                self.send_response(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def do_GET(self) -> None:
                stub.asked.append(Asked(self.path, dict(self.headers.items()), {}))
                self.send_error(404)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "*")
    made = Stub()
    yield made
    made.close()


def test_open_ai_compatible_embedder_a_request_holds_model_and_texts(stub: Stub) -> None:
    vectors = OpenAICompatibleEmbedder(stub.url, "some-model").embed_batch(["one", "three", "日本"])
    [asked] = stub.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "some-model", "input": ["one", "three", "日本"]}
    assert asked.headers["Content-Type"] == "application/json"
    assert "Authorization" not in asked.headers
    assert vectors.tolist() == [[3.0, 1.0, 0.5], [5.0, 1.0, 0.5], [2.0, 1.0, 0.5]]  # by the length of the text
    assert vectors.dtype == np.float32


def test_open_ai_compatible_embedder_an_api_key_is_sent_and_shows_neither_in_the_fingerprint_nor_in_errors(
    stub: Stub,
) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m", api_key="s3cret")
    assert embedder.fingerprint == f"openai:{stub.url}:m"
    stub.answer = lambda texts: Answer(b"no", 401)
    with pytest.raises(VectorError) as caught:
        embedder.embed("x")
    assert "s3cret" not in str(caught.value)
    assert stub.asked[0].headers["Authorization"] == "Bearer s3cret"


def test_open_ai_compatible_embedder_rows_that_come_in_another_order_are_put_back_by_index(stub: Stub) -> None:
    stub.answer = lambda texts: data(rows(texts)[::-1])
    vectors = OpenAICompatibleEmbedder(stub.url, "m").embed_batch(["a", "bb", "ccc"])
    assert vectors[:, 0].tolist() == [1.0, 2.0, 3.0]


# Nothing before the first text


def test_open_ai_compatible_embedder_nothing_is_sent_before_the_first_text(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m")
    CoherenceSensor(StaticState(goals=["goal"]), embedder=embedder)
    assert embedder.embed_batch([]).shape[0] == 0
    assert stub.asked == []


def test_dimensions_are_asked_for_once_or_taken_from_an_answer(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m")
    assert (embedder.dimensions, embedder.dimensions) == (3, 3)
    assert len(stub.asked) == 1
    used = OpenAICompatibleEmbedder(stub.url, "m")
    used.embed("x")
    assert used.dimensions == 3
    assert len(stub.asked) == 2


# What the server may do wrong


CUT = (("Content-Length", "1000"),)
"""Header of an answer that breaks off."""

UNUSABLE = "answered without usable data: "


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (data([]), "returned 0 vectors for 2 texts"),
        (data(rows(["a"])), "returned 1 vectors for 2 texts"),
        (data(rows(["a", "b", "c"])), "returned 3 vectors for 2 texts"),
        (
            Answer(b'{"error": "model not loaded"}', 500),
            r"/v1/embeddings answered 500: \{\"error\": \"model not loaded\"\}",
        ),
        (Answer(b"over", 500, CUT), "answered 500: over|IncompleteRead"),
        (Answer(b'{"data"', headers=CUT), "IncompleteRead"),
        (Answer(b"<html>welcome</html>"), "/v1/embeddings: JSONDecodeError: "),
        (Answer(b""), "/v1/embeddings: JSONDecodeError: "),
        (Answer(b"\xff\xfe\x00"), "/v1/embeddings: (JSONDecodeError|UnicodeDecodeError): "),
        (Answer(b'{"data": ['), "/v1/embeddings: JSONDecodeError: "),
        (Answer(b'{"error": "nope"}'), UNUSABLE),
        (Answer(b"[1, 2]"), UNUSABLE),
        (Answer(b"null"), UNUSABLE),
        (data(None), UNUSABLE),
        (data([{"index": 0}]), UNUSABLE),
        (data([{"embedding": [1.0]}]), UNUSABLE),
        (data([{"index": 0, "embedding": "AAAA"}]), UNUSABLE),
        (data([{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]), UNUSABLE),
        (data([{"index": 0, "embedding": [1.0]}, {"index": None, "embedding": [1.0]}]), UNUSABLE),
    ],
)
def test_open_ai_compatible_embedder_a_wrong_answer_is_an_error_that_names_it(
    stub: Stub, answer: Answer, message: str
) -> None:
    stub.answer = lambda texts: answer
    with pytest.raises(VectorError, match=message):
        OpenAICompatibleEmbedder(stub.url, "m").embed_batch(["a", "b"])


def test_open_ai_compatible_embedder_an_error_quotes_only_the_beginning_of_a_long_answer(stub: Stub) -> None:
    stub.answer = lambda texts: Answer(b" " * 1000 + b"far end", 500)
    with pytest.raises(VectorError, match="answered 500") as caught:
        OpenAICompatibleEmbedder(stub.url, "m").embed("x")
    assert "far end" not in str(caught.value)


def test_open_ai_compatible_embedder_a_refused_connection_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(VectorError, match=rf"http://127\.0\.0\.1:{port}/v1/embeddings: URLError: .*refused"):
        OpenAICompatibleEmbedder(f"http://127.0.0.1:{port}/v1", "m").embed("x")


def test_a_server_that_does_not_answer_in_time_is_an_error(stub: Stub) -> None:
    over = Event()

    def wait(texts: list[str]) -> Answer:
        over.wait(30)
        return data(rows(texts))

    stub.answer = wait
    began = time.monotonic()
    try:
        with pytest.raises(VectorError, match="timed out"):
            OpenAICompatibleEmbedder(stub.url, "m", timeout_s=0.1).embed("x")
    finally:
        over.set()
    assert time.monotonic() - began < 4.0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_open_ai_compatible_embedder_a_redirect_is_an_error_and_texts_and_key_go_nowhere_else(
    stub: Stub, status: int
) -> None:
    elsewhere = Stub()
    try:
        stub.answer = lambda texts: Answer(b"", status, (("Location", f"{elsewhere.url}/embeddings"),))
        with pytest.raises(VectorError, match=f"answered {status}"):
            OpenAICompatibleEmbedder(stub.url, "m", api_key="s3cret").embed("x")
    finally:
        elsewhere.close()
    assert elsewhere.asked == []


# Within a sensor


def test_open_ai_compatible_embedder_a_sensor_asks_in_batches_and_for_each_text_once(stub: Stub) -> None:
    state = StaticState(goals=["goal"], context=["a", "bb", "ccc", "dddd", "bb", "eeeee", "ffffff"])
    embedder = OpenAICompatibleEmbedder(stub.url, "m", batch_size=3)
    sensor = CoherenceSensor(state, embedder=embedder, timeout_s=60)
    reading = sensor.measure_sync()
    assert reading.errors == ()
    assert [len(asked.body["input"]) for asked in stub.asked] == [3, 3, 1]  # 7 different texts in batches of 3
    state.context.append("one more")
    sensor.measure_sync()
    assert [asked.body["input"] for asked in stub.asked[3:]] == [["one more"]]


def test_a_failing_server_is_an_error_in_the_reading_and_is_asked_again_at_the_next_tick(stub: Stub) -> None:
    sensor = CoherenceSensor(
        StaticState(goals=["goal"], context=["a"]),
        embedder=OpenAICompatibleEmbedder(stub.url, "m"),
        timeout_s=60,
    )
    stub.answer = lambda texts: Answer(b"overloaded", 503)
    failed = sensor.measure_sync()
    assert failed.metrics["goal_drift"] is None
    # the batch, then its two texts one by one
    assert [failure.source for failure in failed.errors] == ["embedder"] * 3
    assert "answered 503: overloaded" in failed.errors[0].message
    stub.answer = lambda texts: data(rows(texts))
    recovered = sensor.measure_sync()
    assert recovered.errors == ()
    assert recovered.metrics["goal_drift"] is not None


# Long and hostile texts


def test_open_ai_compatible_embedder_of_a_long_text_head_and_tail_are_sent(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m", max_chars=10)
    embedder.embed_batch(["0123456789", "0123456789A", "x" * 1_000_000])
    assert stub.asked[0].body["input"] == ["0123456789", "01234 6789A", "xxxxx xxxxx"]


def test_open_ai_compatible_embedder_a_lone_surrogate_is_sent_as_a_question_mark(stub: Stub) -> None:
    OpenAICompatibleEmbedder(stub.url, "m").embed("a \ud800 b")
    assert stub.asked[0].body["input"] == ["a ? b"]


@pytest.mark.parametrize("url", ["127.0.0.1:8080/v1", "file:///etc/passwd", "ftp://host/v1", ""])
def test_open_ai_compatible_embedder_a_base_url_that_is_not_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url must start with http:// or https://"):
        OpenAICompatibleEmbedder(url, "m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": ""}, "model must be a non-empty str"),
        ({"batch_size": 0}, "batch_size must be 1 or more"),
        ({"max_chars": 1}, "max_chars 2 or more"),
        ({"timeout_s": 0}, "timeout_s above 0"),
        ({"timeout_s": float("nan")}, "timeout_s above 0"),
    ],
)
def test_open_ai_compatible_embedder_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenAICompatibleEmbedder("http://127.0.0.1:1/v1", **{"model": "m", **arguments})
