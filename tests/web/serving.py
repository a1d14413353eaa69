"""A server on the loopback device with real clients, for the tests."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from coherence.monitor.monitor import Monitor
from coherence.web.server import WebServer

WAIT_S = 20.0
"""Longest wait for something that comes at once on a machine that is not busy."""


class Served(NamedTuple):
    """A server that runs, and a client that has logged in as a page does."""

    server: WebServer
    client: httpx.Client
    base: str
    token: str

    def raw(self, method: str, target: str, headers: dict[str, str], body: bytes | None = None) -> tuple[int, bytes]:
        """Send a request as it stands: no client sends such a path or such a host by itself."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=WAIT_S)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in {**headers, **({"Content-Length": str(len(body))} if body is not None else {})}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @property
    def host(self) -> str:
        """Name of the server as a browser sends it."""
        return f"127.0.0.1:{self.server.port}"

    @property
    def cookie(self) -> str:
        """Cookie of the client."""
        return "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())

    def post(self, name: str, body: Any) -> httpx.Response:
        """Send a change as a page does."""
        return self.client.post(f"/api/{name}", json=body)


@contextmanager
def serving(path: Path, **options: Any) -> Iterator[Served]:
    """Serve a store in a thread, and log in."""
    with WebServer(path, **{"port": 0, **options}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        base, _, token = server.url.partition("/#token=")
        try:
            with httpx.Client(base_url=base, headers={"Origin": base}, timeout=WAIT_S) as client:
                assert client.post("/login", json={"token": token}).status_code == 204
                yield Served(server, client, base, token)
        finally:
            server.shutdown()
            thread.join(WAIT_S)
            assert not thread.is_alive(), "the server did not end"


def record(path: Path, agent: str = "coder", session: str = "1", steps: int = 4) -> None:
    """Record an agent that runs into the same error again and again, and a call that is refused."""
    with Monitor(agent=agent, session=session, store=path, embedder=False, goal="fix the login test") as monitor:
        for _ in range(steps):
            monitor.message("assistant", "I run the test.")
            call = monitor.tool_call("Bash", {"command": "pytest -q"})
            monitor.tool_result("ImportError: no module named yaml", error=True, call=call)
            monitor.decide()
        monitor.check("Bash", {"command": "rm -rf /"})


def answered(response: httpx.Response) -> Any:
    """Return the JSON of an answer that is a success."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return json.loads(response.content)
