"""Notifiers against a real log and a real server on the loopback device."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from coherence.guard import notifiers as notifying
from coherence.guard.notifiers import LogNotifier, WebhookCounts, WebhookNotifier, pause_s

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9


class Server:
    """Answers with the statuses in turn, the last one for ever, each when ``go`` is set."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.bodies, self.headers = list(statuses), list[Any](), list[dict[str, str]]()
        self.go, self.asked = threading.Event(), threading.Semaphore(0)
        self.go.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.bodies.append((self.path, json.loads(body)))
                server.headers.append(dict(self.headers))
                status = server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0]
                server.asked.release()
                server.go.wait(30)
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/hook?key=1"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.go.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(*getattr(request, "param", (204,)))
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "FIRST_PAUSE_S", 0.001)


def event(**details: object) -> dict[str, object]:
    return {"kind": "ending", "agent": "support", "when": 12.0, "text": "too slow", "details": details}


def test_webhook_counts_an_event_arrives_as_json(server: Server) -> None:
    webhook = WebhookNotifier(server.url)
    webhook.notify(event(metric="latency"))
    webhook.notify(event(metric="success"))
    assert webhook.close()
    assert server.bodies == [("/hook?key=1", event(metric=name)) for name in ("latency", "success")]
    assert server.headers[0]["Content-Type"] == "application/json"
    assert webhook.counts() == WebhookCounts(sent=2, failed=0, dropped=0, waiting=0)


@pytest.mark.parametrize("server", [(500, 503, 429, 200)], indirect=True)
def test_webhook_counts_what_may_pass_is_tried_again(server: Server) -> None:
    webhook = WebhookNotifier(server.url, retries=3)
    webhook.notify(event())
    assert webhook.close()
    assert [body for _, body in server.bodies] == [event()] * 4
    assert webhook.counts() == WebhookCounts(sent=1, failed=0, dropped=0, waiting=0)


@pytest.mark.parametrize(("server", "attempts"), [((500,), 3), ((404,), 1), ((302,), 1)], indirect=["server"])
def test_webhook_counts_failures_are_counted_and_do_not_stop_the_next(server: Server, attempts: int) -> None:
    webhook = WebhookNotifier(server.url, retries=2)
    webhook.notify(event())
    webhook.notify(event())
    assert webhook.close()
    assert [path for path, _ in server.bodies] == ["/hook?key=1"] * 2 * attempts  # no redirect is followed
    assert webhook.counts() == WebhookCounts(sent=0, failed=2, dropped=0, waiting=0)


def test_webhook_counts_a_timeout_is_tried_again(server: Server) -> None:
    server.go.clear()
    webhook = WebhookNotifier(server.url, timeout_s=0.2, retries=1)
    webhook.notify(event())
    assert server.asked.acquire(timeout=20)
    assert server.asked.acquire(timeout=20)
    assert webhook.close(20)
    assert webhook.counts() == WebhookCounts(sent=0, failed=1, dropped=0, waiting=0)


def test_notify_a_refused_connection_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # not listening
        webhook = WebhookNotifier(f"http://127.0.0.1:{unused.getsockname()[1]}/SECRETPATH", retries=1)
        webhook.notify(event())
        webhook.notify(event())
        assert webhook.close()
    assert webhook.counts().failed == 2
    assert [record.name for record in caplog.records] == ["coherence.guard"]
    assert "ConnectionRefusedError" in caplog.text
    assert "SECRETPATH" not in caplog.text


def test_webhook_counts_a_slow_server_does_not_slow_the_caller_and_a_full_queue_drops(server: Server) -> None:
    server.go.clear()  # it answers nothing until all calls below have come back
    webhook = WebhookNotifier(server.url, most_waiting=3)
    webhook.notify(event(n=0))
    assert server.asked.acquire(timeout=20)
    for n in range(1, 10):
        webhook.notify(event(n=n))
    assert webhook.counts() == WebhookCounts(sent=0, failed=0, dropped=7, waiting=3)
    server.go.set()
    assert webhook.close(20)
    assert [body["details"]["n"] for _, body in server.bodies] == [0, 1, 2]
    webhook.notify(event(n=10))
    assert webhook.counts() == WebhookCounts(sent=3, failed=0, dropped=8, waiting=0)


@pytest.mark.parametrize("server", [(500,)], indirect=True)
def test_webhook_counts_close_gives_up_in_time(server: Server) -> None:
    server.go.clear()
    webhook = WebhookNotifier(server.url, timeout_s=20, retries=20)
    for n in range(3):
        webhook.notify(event(n=n))
    assert server.asked.acquire(timeout=20)
    assert not webhook.close(0.0)
    assert webhook.counts() == WebhookCounts(sent=0, failed=0, dropped=2, waiting=1)
    server.go.set()
    assert webhook.close(20)
    assert webhook.counts() == WebhookCounts(sent=0, failed=1, dropped=2, waiting=0)
    assert len(server.bodies) == 1  # no retry any more


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


def test_notify_what_is_no_json_is_tagged_and_secrets_are_replaced(server: Server) -> None:
    webhook = WebhookNotifier(server.url)
    webhook.notify(event(odd=Odd(), number=float("nan"), note=f"key {KEY}", password="hunter22", text="\ud800\0"))
    webhook.notify(Odd())
    assert webhook.close()
    details = server.bodies[0][1]["details"]
    assert details["odd"]["unserialisable"].endswith("Odd")
    assert details["number"] == {"unserialisable": "float", "repr": "nan"}
    assert details["password"] == "[redacted:password]"
    assert details["text"] == "\ufffd\0"
    assert KEY not in json.dumps(server.bodies)
    assert webhook.counts().sent == 2


def test_notify_events_are_as_they_were_when_given(server: Server) -> None:
    server.go.clear()
    webhook, told = WebhookNotifier(server.url), event(n=1)
    webhook.notify(event(n=0))
    webhook.notify(told)
    told["details"] = "changed"
    server.go.set()
    assert webhook.close(20)
    assert server.bodies[1][1] == event(n=1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_webhook_counts_a_forked_child_sends_its_own_and_not_the_parents(server: Server) -> None:
    server.go.clear()
    webhook = WebhookNotifier(server.url, most_waiting=2)
    for n in range(3):
        webhook.notify(event(parent=n))
    assert server.asked.acquire(timeout=20)
    with webhook._changed:  # held by a thread that the child does not have
        child = os.fork()
        if not child:
            webhook.notify(event(child=1))
            os._exit(0 if webhook.close(20) and webhook.counts() == WebhookCounts(1, 0, 0, 0) else 1)
    assert server.asked.acquire(timeout=20)
    server.go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert webhook.close(20)
    told = [next(iter(body["details"].items())) for _, body in server.bodies]
    assert sorted(told) == [("child", 1), ("parent", 0), ("parent", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("server", [(500, 200)], indirect=True)
def test_notifiers_the_end_of_the_interpreter_waits_for_what_is_queued(server: Server) -> None:
    lines = (
        f"from coherence.guard.notifiers import WebhookNotifier\nWebhookNotifier({server.url!r}).notify('last words')"
    )
    subprocess.run([sys.executable, "-c", lines], check=True, timeout=60)
    assert [body for _, body in server.bodies] == ["last words"] * 2


def test_notifiers_a_dead_server_does_not_hold_up_the_end_of_the_interpreter(server: Server) -> None:
    server.go.clear()
    lines = (
        "from coherence.guard import notifiers\nnotifiers.EXIT_S = 0.2\n"
        f"notifiers.WebhookNotifier({server.url!r}, timeout_s=600).notify('x')"
    )
    assert not subprocess.run([sys.executable, "-c", lines], check=True, timeout=60, capture_output=True).stdout
    assert len(server.bodies) <= 1


def test_notify_no_thread_stays_behind(server: Server) -> None:
    webhook = WebhookNotifier(server.url)
    webhook.notify(event())
    deadline = time.monotonic() + 20
    while any(thread.name == "coherence-webhook" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not any(thread.name == "coherence-webhook" for thread in threading.enumerate())
    webhook.notify(event())
    assert webhook.close()
    assert webhook.counts().sent == 2


def test_pause_s_pauses_double_up_to_the_most_and_differ_by_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "FIRST_PAUSE_S", 0.5)
    for retry, most in enumerate((0.5, 1, 2, 4, 8, 16, 30, 30)):  # 0.5 * 2**6 = 32 > 30
        assert most / 2 <= pause_s(retry, "a") < most
    assert pause_s(10**9, "a") < 30
    assert pause_s(3, "a") != pause_s(3, "b")


@pytest.mark.parametrize(
    "url",
    ["ftp://host/", "file:///etc/passwd", "host/path", "http://", "http://user:pw@host/", "http://h:x/", "http://h:0/",
     "http://h/a b", "http://h/\r\nX: y", "http://h/ä", ""],
)  # fmt: skip
def test_webhook_notifier_bad_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url must"):
        WebhookNotifier(url)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("timeout_s", 0, ValueError), ("timeout_s", float("nan"), ValueError), ("timeout_s", float("inf"), ValueError),
     ("timeout_s", "5", TypeError), ("retries", -1, ValueError), ("retries", 1.5, TypeError),
     ("most_waiting", 0, ValueError), ("most_waiting", True, TypeError)],
)  # fmt: skip
def test_webhook_notifier_bad_parameters_are_refused(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        WebhookNotifier("http://localhost/", **{name: value})
    with pytest.raises(TypeError, match="url"):
        WebhookNotifier(b"http://localhost/")  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "level"), [("ending", "WARNING"), ("restore_failed", "WARNING"), ("serving", "INFO")])
def test_log_notifier_the_log_has_one_line_an_event(caplog: pytest.LogCaptureFixture, kind: str, level: str) -> None:
    caplog.set_level(logging.INFO, logger="coherence.guard")
    LogNotifier().notify({**event(metric="latency", note=KEY), "kind": kind, "text": "too\nslow \x1b[31m %s"})
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("coherence.guard", level)
    start = f"support: {kind}: too slow [31m %s: " + '{"when":12.0,"details":{"metric":"latency","note":"[redacted'
    assert record.getMessage().startswith(start)
    assert KEY not in record.getMessage()


def test_log_notifier_the_log_takes_anything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="coherence.guard")
    for odd in (None, Odd(), "x" * 1_000_000, {"kind": ["a"]}, {"kind": {"b": 1}, "text": 3, "agent": None}, 7):
        LogNotifier().notify(odd)
    assert len(caplog.records) == 6
    assert all(len(record.getMessage()) < 10_000 for record in caplog.records)
    assert not logging.getLogger("coherence.guard").handlers
