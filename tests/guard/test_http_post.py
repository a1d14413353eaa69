"""A webhook against servers on the loopback device that do what servers do on a bad day."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from coherence.guard import Notice
from coherence.guard import http_post as posting
from coherence.guard import notifiers as notifying
from coherence.guard.http_post import HttpAnswer, Poster, retry_s
from coherence.guard.notifiers import WebhookCounts, WebhookNotifier

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Does something with each connection, the last thing again and again; keeps what it was sent."""

    def __init__(self, *acts: Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> None:
        self.acts, self.got, self.context = list(acts), list[str](), context
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, self._next()), daemon=True).start()

    def _next(self) -> Callable[[socket.socket], None]:
        return self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]

    def _serve(self, connection: socket.socket, act: Callable[[socket.socket], None]) -> None:
        with suppress(OSError), connection:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, body = data.split(b"\r\n\r\n", 1)
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(body) < length:
                body += connection.recv(65536)
            self.got.append((head + b"\r\n\r\n" + body).decode())
            act(connection)

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}/hook"


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(*acts: Any, **options: Any) -> Server:
        servers.append(Server(*acts, **options))
        return servers[-1]

    yield begin
    for server in servers:
        server.ended.set()
        server.listening.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "FIRST_PAUSE_S", 0.001)


def says(data: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(data)


def drips(connection: socket.socket) -> None:
    """Send a byte now and then, so that no single read takes long."""
    for _ in range(600):
        connection.sendall(b"H")
        time.sleep(0.05)


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def post(server: Server, timeout_s: float = 20.0, **headers: str) -> HttpAnswer:
    return Poster(server.url, headers, timeout_s).post(b"{}", "key-1")


@pytest.mark.parametrize(
    ("act", "why", "again"),
    [
        (says(OK), "", False),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "", False),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"), "", False),  # only the status counts
        (says(b"\x00\xff garbage\r\n\r\n" * 100), "BadStatusLine", True),
        (says(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000 + b"\r\n"), "HTTPException", True),
        (says(b"HTTP/1.1 " + b"9" * 100_000), "LineTooLong", True),
        (says(b""), "RemoteDisconnected", True),
        (resets, "ConnectionResetError", True),
        (says(b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), "HTTP status 301", False),
        (says(b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n"), "HTTP status 307", False),
        (says(b"HTTP/1.1 400 Bad\r\nRetry-After: 5\r\n\r\n"), "HTTP status 400", False),
        (says(b"HTTP/1.1 401 No\r\n\r\n"), "HTTP status 401", False),
        (says(b"HTTP/1.1 408 Slow\r\n\r\n"), "HTTP status 408", True),
        (says(b"HTTP/1.1 429 Many\r\nRetry-After: soon\r\n\r\n"), "HTTP status 429", True),
        (says(b"HTTP/1.1 503 Busy\r\n\r\n"), "HTTP status 503", True),
    ],
)
def test_http_answer_what_a_server_does(
    serve: Any, act: Callable[[socket.socket], None], why: str, again: bool
) -> None:
    assert post(serve(act)) == HttpAnswer(why, again, 0.0)


@pytest.mark.parametrize("act", [drips, lambda _: time.sleep(30)], ids=["drips", "dead"])
def test_http_answer_an_attempt_ends_in_time(serve: Any, act: Callable[[socket.socket], None]) -> None:
    assert post(serve(act), 0.3) == HttpAnswer("no answer in time", True)


@pytest.mark.parametrize("status", [429, 503])
def test_http_post_retry_after_is_obeyed(serve: Any, status: int) -> None:
    server = serve(says(f"HTTP/1.1 {status} x\r\nRetry-After: 120\r\n\r\n".encode()), says(OK))
    webhook = WebhookNotifier(server.url, retries=1)
    waited: list[float] = []

    def wait(timeout: float | None = None) -> bool:
        waited.append(timeout or 0.0)
        return False

    webhook._cut_short.wait = wait  # type: ignore[method-assign]
    webhook.notify({})
    assert webhook.flush(30)
    assert waited == [120.0]
    assert webhook.counts() == WebhookCounts(sent=1, failed=0, dropped=0, waiting=0)


def test_retry_s_retry_after_in_seconds_and_as_a_date() -> None:
    now_s = 1_700_000_000.0
    for text, seconds in (
        ("0", 0.0), ("120", 120.0), (" 7 ", 7.0), ("301", 300.0), ("-5", 0.0), ("1.5", 0.0), ("²", 0.0), ("", 0.0),
        (None, 0.0), ("9" * 5000, 300.0), (formatdate(now_s + 90, usegmt=True), 90.0),
        (formatdate(now_s - 90, usegmt=True), 0.0), (formatdate(now_s + 10**6, usegmt=True), 300.0),
        ("Thu, 99 Jan 9999 99:99:99 GMT", 0.0), ("\x00", 0.0),
    ):  # fmt: skip
        assert retry_s(text, now_s) == seconds, text


def test_http_post_close_does_not_wait_for_a_server_that_wants_a_pause(serve: Any) -> None:
    server = serve(says(b"HTTP/1.1 429 x\r\nRetry-After: 200\r\n\r\n"))
    webhook = WebhookNotifier(server.url)
    webhook.notify({})
    assert not webhook.flush(0.2)
    assert not webhook.close(0.2)
    assert webhook.flush(20)
    assert webhook.counts() == WebhookCounts(sent=0, failed=1, dropped=0, waiting=0)


def test_http_post_all_attempts_of_an_event_have_one_key_and_no_two_events_share_one(serve: Any) -> None:
    server = serve(says(b"HTTP/1.1 500 x\r\n\r\n"), says(OK))
    webhook = WebhookNotifier(server.url)
    webhook.notify({"n": 1})
    webhook.notify({"n": 2})
    assert webhook.flush(20)
    keys = [text.split("Idempotency-Key: ")[1].split("\r\n")[0] for text in server.got]
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2]


def test_http_post_headers_are_sent_and_never_shown(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(says(b"HTTP/1.1 403 no\r\n\r\n"))
    secret = "Bearer very-secret"
    webhook = WebhookNotifier(server.url, headers={"Authorization": secret, "User-Agent": "mine"})
    webhook.notify({})
    assert webhook.flush(20)
    assert f"Authorization: {secret}\r\n" in server.got[0]
    assert server.got[0].count("User-Agent") == 1
    assert "HTTP status 403" in caplog.text
    shown = caplog.text + repr(webhook) + repr(webhook._poster)
    assert "very-secret" not in shown
    assert "hook" not in shown.replace("coherence-webhook", "").replace("WebhookNotifier", "")


def test_http_answer_a_redirect_gets_no_header(serve: Any) -> None:
    other = serve(says(OK))
    server = serve(says(f"HTTP/1.1 308 x\r\nLocation: {other.url}\r\n\r\n".encode()))
    assert post(server, Authorization="Bearer x").why == "HTTP status 308"
    assert other.got == []


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"X": "very-secret\r\nY: z"}, ValueError),
        ({"X": "very-secret\u20ac"}, ValueError),
        ({"X": b"very-secret"}, TypeError),
        ({"X y": "very-secret"}, ValueError),
        ({"": "very-secret"}, ValueError),
        ({"Host": "very-secret"}, ValueError),
        ({"content-length": "very-secret"}, ValueError),
        ({1: "very-secret"}, ValueError),
        (["very-secret"], TypeError),
    ],
)
def test_http_post_bad_headers_are_refused_without_their_values(headers: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="headers") as caught:
        WebhookNotifier("https://example.org/", headers=headers)
    assert "very-secret" not in str(caught.value)


def test_http_post_a_body_of_ones_own(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = serve(says(OK))

    def body(notice: Notice) -> object:
        if notice.kind == "odd":
            raise KeyError("secret")
        return {"text": f"{notice.agent}: {notice.kind}", "token": "hunter22222"}

    webhook = WebhookNotifier(server.url, body=body)
    webhook.notify(Notice("a", "odd", ""))
    webhook.notify(Notice("a", "restored", ""))
    assert webhook.flush(20)
    assert server.got[0].endswith('{"text":"a: restored","token":"[redacted:token]"}')
    assert webhook.counts() == WebhookCounts(sent=1, failed=1, dropped=0, waiting=0)
    assert "body failed: KeyError" in caplog.text
    with pytest.raises(TypeError, match="body"):
        WebhookNotifier(server.url, body={"text": 1})  # type: ignore[arg-type]


def test_a_notice_as_it_is_documented(serve: Any) -> None:
    server = serve(says(OK))
    webhook = WebhookNotifier(server.url)
    webhook.notify(Notice("a", "confirmed", "no worse", {"retries": 2}))
    assert webhook.flush(20)
    assert server.got[0].endswith('{"agent":"a","kind":"confirmed","why":"no worse","patch":{"retries":2}}')


def test_http_answer_proxies_of_the_environment_are_not_used(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = serve(says(b"HTTP/1.1 502 proxy\r\n\r\n")), serve(says(OK))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert post(server) == HttpAnswer("", False)
    assert proxy.got == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="nothing here makes a certificate")
def test_http_answer_a_certificate_that_nobody_vouches_for_is_refused(serve: Any, tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*made, "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = serve(says(OK), context=context)
    answer = post(server, Authorization="Bearer x")
    assert answer.why.startswith("the server's certificate is not trusted: self")
    assert not answer.again
    assert server.got == []


def test_retry_s_the_pause_a_server_asks_for_is_bounded() -> None:
    assert retry_s("1000000", 0.0) == posting.MAX_RETRY_S
