"""The webhook against servers on the loopback device that do what servers do on a bad day."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import hostile
import pytest
from hostile import HANGS, RAISES, speaking

from coherence.core.errors import MissingExtraError
from coherence.core.strangers import Asking, asking
from coherence.export import webhook as module
from coherence.export.webhook import MAX_BYTES, Webhook, WebhookCounts, retry_after_s
from coherence.guard import Notice
from coherence.monitor.monitor import Monitor

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9

Act: TypeAlias = Callable[[socket.socket], object]


def answers(status: str, *headers: str) -> Act:
    lines = [f"HTTP/1.1 {status}", *headers, "Connection: close", "", ""]
    return lambda connection: connection.sendall("\r\n".join(lines).encode())


OK = answers("204 No Content")


class Server:
    """Does something with each connection, the last thing again and again; keeps what it was sent."""

    def __init__(self, acts: tuple[Act, ...], context: ssl.SSLContext | None = None) -> None:
        self.acts, self.got, self.context = list(acts), list[str](), context
        self.go, self.asked = threading.Event(), threading.Semaphore(0)
        self.go.set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}/SECRETPATH?key=1"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
                threading.Thread(target=self._serve, args=(connection, act), daemon=True).start()

    def _serve(self, connection: socket.socket, act: Act) -> None:
        with suppress(OSError), connection:
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            length = int(data.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            while len(data.split(b"\r\n\r\n", 1)[1]) < length:
                data += connection.recv(65536)
            self.got.append(data.decode())
            self.asked.release()
            self.go.wait(30)
            act(connection)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(text.split("\r\n\r\n", 1)[1]) for text in self.got]


Serve: TypeAlias = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[Server] = []

    def begin(*acts: Act, context: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(acts or (OK,), context))
        return servers[-1]

    yield begin
    for server in servers:
        server.go.set()
        server.listening.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAUSE_S", 0.001)


def sent(url: str, *records: object, **options: Any) -> WebhookCounts:
    """Emit some records, and return what became of them."""
    webhook = Webhook(url, **options)
    for record in records:
        webhook.emit(record)
    assert webhook.flush(20)
    return webhook.counts()


def test_webhook_sends_records_of_all_rooms_as_json_in_order(serve: Serve) -> None:
    server = serve()
    with Monitor(goal="make the tests pass", embedder=False, source="test") as m:
        decision = m.decide()
        reading = m.latest
    notice = Notice("a", "confirmed", "no worse", {"retries": 2})
    assert sent(server.url, reading, decision, notice) == WebhookCounts(sent=3, failed=0, dropped=0, waiting=0)
    assert server.got[0].startswith("POST /SECRETPATH?key=1 HTTP/1.1\r\n")
    assert server.bodies[0]["band"] == "unknown"
    assert server.bodies[1]["kind"] == "continue"
    assert server.bodies[2] == {"agent": "a", "kind": "confirmed", "why": "no worse", "patch": {"retries": 2}}


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    ("act", "attempts", "why"),
    [
        (answers("500 x"), 3, "HTTP status 500"),
        (answers("503 x"), 3, "HTTP status 503"),
        (answers("408 x"), 3, "HTTP status 408"),
        (answers("429 x", "Retry-After: soon"), 3, "HTTP status 429"),
        (answers("404 x", "Retry-After: 5"), 1, "HTTP status 404"),
        (answers("307 x", "Location: http://127.0.0.1:1/"), 1, "HTTP status 307"),
        (lambda connection: connection.sendall(b"\x00\xff garbage\r\n\r\n" * 100), 3, "RemoteProtocolError"),
        (lambda connection: None, 3, "RemoteProtocolError"),
        (resets, 3, "ReadError"),
    ],
)
def test_webhook_tries_again_what_may_pass_and_counts_what_does_not(
    serve: Serve, caplog: pytest.LogCaptureFixture, act: Act, attempts: int, why: str
) -> None:
    server = serve(act)
    assert sent(server.url, {}, retries=2) == WebhookCounts(sent=0, failed=1, dropped=0, waiting=0)
    assert len(server.got) == attempts
    assert why in caplog.text
    assert "SECRETPATH" not in caplog.text


def test_webhook_attempts_of_a_record_have_one_key_and_no_two_records_share_one(serve: Serve) -> None:
    server = serve(answers("500 x"), answers("429 x"), OK)
    assert sent(server.url, {"n": 1}, {"n": 2}).sent == 2
    keys = [text.lower().split("idempotency-key: ")[1].split("\r\n")[0] for text in server.got]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_webhook_reads_only_the_status_of_an_answer(serve: Serve) -> None:
    nonsense = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"
    assert sent(serve(lambda connection: connection.sendall(nonsense)).url, {}).sent == 1


def drips(connection: socket.socket) -> None:
    """Send a byte now and then, so that no single read takes long."""
    for _ in range(600):
        connection.sendall(b"H")
        time.sleep(0.05)


@pytest.mark.parametrize("act", [drips, lambda _: time.sleep(30)], ids=["drips", "dead"])
def test_webhook_timeout_s_is_for_an_attempt_as_a_whole(
    serve: Serve, caplog: pytest.LogCaptureFixture, act: Act
) -> None:
    server = serve(act)
    assert sent(server.url, {}, timeout_s=0.3, retries=1).failed == 1
    assert len(server.got) == 2
    assert "no answer in time" in caplog.text


def test_webhook_obeys_retry_after(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook, waited = Webhook(serve(answers("503 x", "Retry-After: 120"), OK).url), list[float]()
    monkeypatch.setattr(webhook._cut_short, "wait", waited.append)
    webhook.emit({})
    assert webhook.flush(20)
    assert waited == [120.0]
    assert webhook.counts().sent == 1


def test_retry_after_s_reads_seconds_and_dates_and_is_bounded() -> None:
    for text, seconds in (
        ("0", 0.0), ("301", 300.0), ("-5", 0.0), ("", 0.0), ("²", 0.0), ("9" * 5000, 300.0), ("\x00", 0.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0), ("Thu, 99 Jan 9999 99:99:99 GMT", 0.0),
    ):  # fmt: skip
        assert retry_after_s(text, 60.0) == seconds, text


def test_webhook_emit_does_not_wait_for_a_slow_server_and_a_full_queue_drops(serve: Serve) -> None:
    server = serve()
    server.go.clear()  # it answers nothing until all calls below have come back
    webhook = Webhook(server.url, most_waiting=2)
    webhook.emit(0)
    assert server.asked.acquire(timeout=20)
    for n in range(1, 10):
        webhook.emit(n)
    assert webhook.counts() == WebhookCounts(sent=0, failed=0, dropped=7, waiting=3)  # one of them under way
    server.go.set()
    assert webhook.close(20)
    assert server.bodies == [0, 1, 2]
    webhook.emit(10)
    assert webhook.counts() == WebhookCounts(sent=3, failed=0, dropped=8, waiting=0)


def test_webhook_close_ends_in_time_and_drops_what_waits(serve: Serve) -> None:
    server = serve(answers("429 x", "Retry-After: 200"))
    webhook = Webhook(server.url, timeout_s=20, retries=20)
    for n in range(3):
        webhook.emit(n)
    assert server.asked.acquire(timeout=20)
    assert not webhook.close(0.0)
    assert webhook.flush(20)
    assert webhook.counts() == WebhookCounts(sent=0, failed=1, dropped=2, waiting=0)
    assert len(server.got) == 1


class Odd:
    def __str__(self) -> str:
        raise RuntimeError


def test_webhook_replaces_secrets_and_takes_anything(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server, loop = serve(), list[Any]()
    loop.append(loop)
    records = {"note": f"key {KEY}", "password": "hunter22", "odd": Odd(), "nan": float("nan"), "text": "\ud800"}
    assert sent(server.url, records, loop, "x" * MAX_BYTES) == WebhookCounts(sent=1, failed=2, dropped=0, waiting=0)
    (body,) = server.bodies
    assert KEY not in str(body)
    assert (body["password"], body["nan"], body["text"]) == ("[redacted:password]", None, "\ufffd")
    assert "a record could not be read: ValueError" in caplog.text


def test_webhook_sends_a_record_as_it_was_when_given(serve: Serve) -> None:
    server, record = serve(), {"n": 1}
    server.go.clear()
    webhook = Webhook(server.url)
    webhook.emit({"n": 0})
    webhook.emit(record)
    record["n"] = 2
    server.go.set()
    assert webhook.close(20)
    assert server.bodies == [{"n": 0}, {"n": 1}]


@pytest.mark.parametrize("act", [HANGS["hangs"], *RAISES.values()], ids=["hangs", *RAISES])
def test_webhook_emit_of_what_cannot_be_read_goes_on(
    act: Callable[[], Any], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coherence.export.webhook.WAIT_S", 0.2)
    server = serve()
    with asking(Asking(0.1)):
        assert sent(server.url, {"odd": speaking(act)}, 1) == WebhookCounts(sent=2, failed=0, dropped=0, waiting=0)
        counts = sent(server.url, 2, 3, body=lambda record: record if record == 3 or act() == 5 else 1)
    assert server.bodies[:2] == [{"odd": "<Speaking>"}, 1]
    hostile.let_go()
    if act is RAISES["returns no str"]:
        assert (counts.sent, counts.failed) == (2, 0)
    elif act is HANGS["hangs"]:  # and is left out while it hangs
        assert (counts.sent, counts.failed) == (0, 2)
    else:
        assert (counts.sent, counts.failed) == (1, 1)


def test_webhook_body_chooses_what_is_sent(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    server = serve()
    counts = sent(server.url, {"why": "slow"}, {}, body=lambda record: {"text": record["why"], "token": "hunter22222"})
    assert (counts.sent, counts.failed) == (1, 1)
    assert server.bodies == [{"text": "slow", "token": "[redacted:token]"}]
    assert "KeyError" in caplog.text


def test_webhook_headers_are_sent_and_never_shown(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="coherence")
    server = serve(answers("403 x"))
    webhook = Webhook(server.url, headers={"Authorization": "Bearer very-secret", "User-Agent": "mine"})
    webhook.emit({})
    assert webhook.flush(20)
    assert "Authorization: Bearer very-secret\r\n" in server.got[0]
    assert "User-Agent: mine\r\n" in server.got[0]
    assert "very-secret" not in caplog.text + repr(webhook)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("url", url) for url in ("ftp://host/", "file:///etc/passwd", "host/path", "http://", "http://h/\r\n", "")),
        *(("url", url) for url in ("http://u:very-secret@host/", "http://h:x/")),
        *(("headers", {"X": value}) for value in ("very-secret\r\n", "very-secret€", b"very-secret")),
        *(("headers", headers) for headers in ({1: "very-secret"}, ["x"])),
        *(("timeout_s", 0), ("retries", -1), ("most_waiting", 0), ("body", {})),
    ],
)
def test_webhook_refuses_bad_parameters_by_name_and_shows_no_secret(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=name) as caught:
        Webhook(**{"url": "http://localhost/", name: value})
    assert "very-secret" not in str(caught.value)


def test_webhook_uses_no_proxy_of_the_environment(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, server = serve(), serve()
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert sent(server.url, {}).sent == 1
    assert proxy.got == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="nothing here makes a certificate")
def test_webhook_sends_nothing_to_a_server_whose_certificate_is_not_trusted(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*made, "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server = serve(context=context)
    assert sent(server.url, {}).failed == 1
    assert server.got == []
    assert "certificate is not trusted" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_webhook_in_a_forked_child_sends_its_own_records_and_not_the_parents(serve: Serve) -> None:
    server = serve()
    server.go.clear()
    webhook = Webhook(server.url)
    webhook.emit("parent 1")
    webhook.emit("parent 2")
    assert server.asked.acquire(timeout=20)
    with webhook._lock:  # held by a thread that the child does not have
        child = os.fork()
        if not child:
            webhook.emit("child")
            os._exit(0 if webhook.close(20) and webhook.counts() == WebhookCounts(1, 0, 0, 0) else 1)
    assert server.asked.acquire(timeout=20)
    server.go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert webhook.close(20)
    assert sorted(server.bodies) == ["child", "parent 1", "parent 2"]


@pytest.mark.parametrize("answering", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_webhook_the_end_of_the_interpreter_sends_what_waits_and_is_not_held_up(serve: Serve, answering: bool) -> None:
    server = serve()
    if not answering:
        server.go.clear()
    exit_s = 20 if answering else 0.2
    lines = (
        f"from coherence.export import webhook\nwebhook.EXIT_S = {exit_s}\n"
        f"webhook.Webhook({server.url.replace('127.0.0.1', 'localhost')!r}, timeout_s=600).emit('last words')"
    )
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", lines], check=True, timeout=60)
    assert server.bodies == ["last words"] or not answering
    assert time.monotonic() - began < 30


def test_webhook_leaves_no_thread_behind(serve: Serve) -> None:
    sent(serve().url, {})
    deadline = time.monotonic() + 20
    while any(thread.name == "coherence-webhook" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_webhook_without_its_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tenacity", None)
    with pytest.raises(MissingExtraError, match=r'pip install "coherence-sensor\[webhook\]"'):
        Webhook("http://localhost/")
