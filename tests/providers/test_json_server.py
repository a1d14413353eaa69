"""A model on a server that speaks JSON: what every client of it promises, the embedder and the judge."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from json_stub import Answer, Stub, of_json

from coherence.core.errors import CoherenceError, JudgeError, VectorError
from coherence.providers import ChatJudge, OpenAICompatibleEmbedder

Client = Callable[..., object]


def ask_embedder(url: str, **options: Any) -> object:
    return OpenAICompatibleEmbedder(url, "m", **options).embed("a \ud800 b").tolist()


def ask_judge(url: str, **options: Any) -> object:
    return ChatJudge(url, "m", **options).judge("claim", ["a \ud800 b"])


CLIENTS = {"embedder": (ask_embedder, VectorError), "judge": (ask_judge, JudgeError)}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> tuple[Client, type[CoherenceError]]:
    return CLIENTS[request.param]


def answer(body: dict[str, Any]) -> Answer:
    """Answer as a server of embeddings, and as one of chats."""
    rows = [{"index": at, "embedding": [1.0, 0.5]} for at in range(len(body.get("input", ())))]
    return of_json({"data": rows, "choices": [{"message": {"content": "83"}}]})


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "*")
    made = Stub(answer)
    yield made
    made.close()


def test_json_server_a_request_holds_the_model_and_the_key_and_lone_surrogates_are_replaced(
    stub: Stub, client: tuple[Client, type[CoherenceError]]
) -> None:
    ask, _ = client
    assert ask(f"{stub.url}/", api_key="s3cret") in ([1.0, 0.5], 0.83)
    ask(stub.url)
    asked, plain = stub.asked
    assert asked.path == plain.path in ("/v1/embeddings", "/v1/chat/completions")
    assert asked.body["model"] == "m" and "a ? b" in str(asked.body)
    assert (asked.headers["Content-Type"], asked.headers["Authorization"]) == ("application/json", "Bearer s3cret")
    assert "Authorization" not in plain.headers


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Answer(b'{"error": "not loaded"}' + b" " * 1000 + b"far end", 500), r" answered 500: \{\"error\": \"not"),
        (Answer(b"no", 401), " answered 401: no"),
        (Answer(b"<html>welcome</html>"), ": JSONDecodeError: "),
        (Answer(b""), ": JSONDecodeError: "),
        (Answer(b"\xff\xfe\x00"), ": UnicodeDecodeError: "),
        (Answer(b'{"data"', headers=(("Content-Length", "1000"),)), "IncompleteRead"),
        *((of_json(value), " answered without ") for value in ({"error": "nope"}, [1, 2], None)),
    ],
)
def test_json_server_an_answer_that_is_none_is_an_error_without_the_key(
    stub: Stub, client: tuple[Client, type[CoherenceError]], wrong: Answer, says: str
) -> None:
    ask, error = client
    stub.answer = lambda _: wrong
    with pytest.raises(error, match=says) as caught:
        ask(stub.url, api_key="s3cret")
    assert "127.0.0.1" in str(caught.value)
    assert "far end" not in str(caught.value) and "s3cret" not in str(caught.value)


def test_json_server_one_that_is_not_there_or_too_slow_is_an_error(
    stub: Stub, client: tuple[Client, type[CoherenceError]]
) -> None:
    ask, error = client
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(error, match=r"URLError: .*refused"):
        ask(f"http://127.0.0.1:{port}/v1")
    over = Event()
    stub.answer = lambda body: answer(body) if over.wait(30) else Answer(b"")
    began = time.monotonic()
    try:
        with pytest.raises(error, match="timed out"):
            ask(stub.url, timeout_s=0.1)
    finally:
        over.set()
    assert time.monotonic() - began < 4.0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_json_server_a_redirect_is_an_error_and_texts_and_key_go_nowhere_else(
    stub: Stub, client: tuple[Client, type[CoherenceError]], status: int
) -> None:
    ask, error = client
    elsewhere = Stub(answer)
    try:
        stub.answer = lambda _: Answer(b"", status, (("Location", f"{elsewhere.url}/embeddings"),))
        with pytest.raises(error, match=f"answered {status}"):
            ask(stub.url, api_key="s3cret")
    finally:
        elsewhere.close()
    assert elsewhere.asked == []


@pytest.mark.parametrize("kind", [OpenAICompatibleEmbedder, ChatJudge])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": "127.0.0.1:8080/v1"}, "base_url must start with http:// or https://"),
        ({"base_url": "file:///etc/passwd"}, "base_url must start with http:// or https://"),
        ({"model": ""}, "model must be a non-empty str"),
        ({"max_chars": 1}, "max_chars 2 or more"),
        ({"timeout_s": 0}, "timeout_s must be above 0"),
        ({"timeout_s": float("nan")}, "timeout_s must be above 0"),
    ],
)
def test_json_server_bad_arguments_are_refused(kind: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{"base_url": "http://127.0.0.1:1/v1", "model": "m", **arguments})
