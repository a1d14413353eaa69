"""A server on the loopback device in place of the API of a model: what the stubs of all APIs have in common."""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self, TypeAlias

Body: TypeAlias = dict[str, Any]

MARKER = re.compile(r"\[\[script:([\w-]+)\]\]")
"""Words in a prompt that pick a script."""


class StubServer:
    """Answers an API from entering the context to leaving it.

    Parameters
    ----------
    handler
        Answers the requests; it finds this object as ``self.stub``.

    Attributes
    ----------
    url
        What a client takes as its base URL.
    requests
        The bodies of all requests to the model, oldest first.
    others
        Method and path of everything else that was asked for.
    """

    def __init__(self, handler: type[StubHandler]) -> None:
        self.requests: list[Body] = []
        self.others: list[str] = []
        self._server = _Server(self, handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def turns(self) -> list[Body]:
        """Requests that offer tools: an agent's turns, without the client's small questions, titles for instance."""
        return [body for body in self.requests if body.get("tools")]


class _Server(ThreadingHTTPServer):
    def __init__(self, stub: StubServer, handler: type[StubHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.stub = stub

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that is stopped hangs up in the middle of an answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StubHandler(BaseHTTPRequestHandler):
    """Answers a request; a subclass has ``do_POST``, and ``stub`` with the type of its own stub."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are separate writes: without this, 40 ms pass between them
    server: _Server
    stub: Any

    def setup(self) -> None:
        self.stub = self.server.stub
        super().setup()

    def do_GET(self) -> None:
        self.refuse_path()

    def log_message(self, *_: object) -> None:
        pass

    def read_raw(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def refuse_path(self) -> None:
        self.stub.others.append(f"{self.command} {self.path}")
        error = {"type": "not_found_error", "code": 404, "message": self.path}
        self.send_json({"type": "error", "error": error}, 404)

    def send_json(self, value: Body, status: int = 200) -> None:
        raw = json.dumps(value).encode()
        self.send_head(status, ("Content-Type", "application/json"), ("Content-Length", str(len(raw))))
        self.wfile.write(raw)

    def send_events(self, events: Iterable[Body]) -> None:
        """Send each event as soon as it is there."""
        self.send_head(200, ("Content-Type", "text/event-stream; charset=utf-8"), ("Transfer-Encoding", "chunked"))
        for event in events:
            chunk = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def send_head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()


def new_id(kind: str) -> str:
    """Return an id by chance, in the form that the APIs give theirs."""
    return f"{kind}_{uuid.uuid4().hex[:24]}"
