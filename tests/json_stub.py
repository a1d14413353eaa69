"""A server on the loopback device that answers what a test wants, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Answer(NamedTuple):
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def of_json(value: object) -> Answer:
    return Answer(json.dumps(value).encode())


class Stub:
    """Answers each POST by ``answer``, which takes the request's body."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.asked: list[Asked] = []
        self.answer = answer
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.asked.append(Asked(self.path, dict(self.headers.items()), body))
                answer = stub.answer(body)
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
