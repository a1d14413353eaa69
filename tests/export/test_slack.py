"""Messages for Slack, before a server on the loopback device."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from coherence.core.errors import MissingExtraError
from coherence.export import slack as module
from coherence.export import webhook
from coherence.export.slack import MAX_SECTION, SlackWebhook, escaped, slack_message
from coherence.guard import Notice
from coherence.monitor.monitor import Monitor

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9


class Server(ThreadingHTTPServer):
    """Keeps what it is sent, as Slack would; answers the first requests with the statuses given."""

    def __init__(self, *statuses: int) -> None:
        self.got: list[dict[str, Any]] = []
        self.statuses = list(statuses)
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/services/T0/B0/secret"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 200:
            self.server.got.append(json.loads(body))
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(webhook, "MAX_PAUSE_S", 0.001)
    with Server(503) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def texts(message: dict[str, Any]) -> tuple[str, str]:
    """Return the texts of the two blocks, in the form that Slack documents."""
    assert message.keys() == {"text", "blocks"} and len(message["text"]) <= MAX_SECTION
    section, context = message["blocks"]
    assert section.keys() == {"type", "text"} and context.keys() == {"type", "elements"}
    assert (section["type"], context["type"], len(context["elements"])) == ("section", "context", 1)
    found = section["text"], context["elements"][0]
    assert all(each.keys() == {"type", "text"} and each["type"] == "mrkdwn" for each in found)
    assert all(0 < len(each["text"]) <= MAX_SECTION for each in found)
    return found[0]["text"], found[1]["text"]


def test_slack_webhook_tells_of_a_loop_once_and_of_a_refused_call(server: Server) -> None:
    slack = SlackWebhook(server.url, retries=2)
    decisions = []
    with Monitor(agent="fixer & co", session="s<1>", goal="Fix it", embedder=False, sinks=[slack]) as m:
        for _ in range(8):
            m.message("assistant", "I run the tests.")
            call = m.tool_call("Bash", {"command": "pytest -q"})
            m.tool_result("ImportError: no module <x>", error=True, call=call)
            decisions.append(m.decide())
        for _ in range(3):
            assert not m.check("Bash", {"command": "rm -rf /"})
    assert slack.flush(20)
    found = [texts(message) for message in server.got]
    told = [section.splitlines()[0] for section, _ in found]
    assert told[-1] == "*fixer &amp; co*: refused call" and told.count(told[-1]) == 1
    assert set(told[:-1]) == {f"*fixer &amp; co*: {kind}" for kind in {"warn", "block"} & {d.kind for d in decisions}}
    severe = sum(decision.kind in ("warn", "block") for decision in decisions)
    assert severe > 3 and 0 < len(told[:-1]) < severe  # a tick that changes nothing is not told
    assert found[0][1].startswith("index 0.") and "session s&lt;1&gt;, event " in found[0][1]
    assert slack.counts().failed == slack.counts().dropped == 0


def test_slack_webhook_least_chooses_what_is_told(server: Server) -> None:
    slack = SlackWebhook(server.url, least="block")
    with Monitor(agent="fixer", goal="Fix it", embedder=False, sinks=[slack]) as m:
        for _ in range(4):
            call = m.tool_call("Bash", {"command": "pytest -q"})
            m.tool_result("ImportError", error=True, call=call)
            assert m.decide() != "block"
        m.check("Bash", {"command": "rm -rf /"})
    assert slack.flush(20)
    assert [message["text"].partition(": ")[2].partition(":")[0] for message in server.got] == ["refused call"]
    with pytest.raises(ValueError, match='least must be "guide", "warn" or "block"'):
        SlackWebhook(server.url, least="continue")


def test_slack_webhook_takes_notices_of_a_guard_and_counts_what_is_none(server: Server) -> None:
    slack = SlackWebhook(server.url)
    slack.emit(Notice("bot", "restored", f"error rate 5 > 3, key {KEY}", {"retries": 2}))
    slack.emit(object())
    assert slack.flush(20)
    [message] = server.got
    section, context = texts(message)
    assert section.startswith("*bot*: restored\nerror rate 5 &gt; 3, key [redacted:") and KEY not in str(message)
    assert context == "patch of a guard"
    assert (slack.counts().sent, slack.counts().failed) == (1, 1)
    assert repr(slack) == "SlackWebhook(http://127.0.0.1)"


@pytest.mark.parametrize(
    "text", ["<" * 10_000, "a" * 10_000, "&" * 599 + "b" * 10_000, "x" * 2_950 + " " + KEY, "", "\ud800"]
)
def test_slack_message_stays_within_the_limits_of_slack(text: str) -> None:
    message = slack_message(text or "a", text or "b", text, text or "c")
    section, _ = texts(message)
    for part in (message["text"], section):
        assert not {"<", ">"} & set(part)
        # no entity is cut
        assert part.count("&") == sum(part.count(entity) for entity in ("&lt;", "&gt;", "&amp;"))
    assert KEY[:20] not in str(message)


def test_escaped_cuts_before_an_entity_that_does_not_fit() -> None:
    assert [escaped("ab<", most) for most in (6, 5, 2)] == ["ab&lt;", "ab…", "a…"]


def test_slack_webhook_knows_a_bounded_number_of_sessions(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOLD", 2)
    slack = SlackWebhook(server.url)
    for session in "123":
        with Monitor(agent="a", session=session, embedder=False, sinks=[slack]) as m:
            m.check("Bash", {"command": "rm -rf /"})
    assert len(slack._told) == 2 and slack.close()


def test_slack_webhook_without_its_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"coherence-sensor\[webhook\]"):
        SlackWebhook("https://hooks.slack.com/services/x")
