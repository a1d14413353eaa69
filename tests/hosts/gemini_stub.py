"""A scripted stand-in for Gemini's generateContent API on the loopback device.

As in :mod:`hosts.messages_stub`, the answer depends on the request alone: the newest marker ``[[script:NAME]]`` of the
user picks a script, and the number of the model's turns since then its step.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from hosts.messages_stub import OK, Body, Scripts, Step, Text, Tool

THOUGHTS, READ, WRITTEN = 5, 100, 10
"""Tokens that each answer reports: thought, read and written."""

SNAPSHOT: Step = (Text("<state_snapshot>\nWhat was asked for is under way.\n</state_snapshot>"),)

_COMPACTION = "<state_snapshot>"
"""What the client's instruction names where it asks for a summary."""

_MARKER = re.compile(r"\[\[script:([\w-]+)\]\]")
_ADDED = re.compile(r"<(session|hook)_context>.*?</\1_context>", re.DOTALL)
_CHOICE = {"reasoning": "stub", "next_speaker": "user", "model_choice": "flash", "complexity_score": 1}
"""Answer to the client's small questions about how to go on: it asks for JSON."""


class GeminiStub:
    """Answers the API by ``scripts``, from entering the context to leaving it.

    Attributes
    ----------
    url
        What a client takes as its base URL.
    requests
        The bodies of all requests for content, oldest first.
    others
        Method and path of everything else that was asked for.
    """

    def __init__(self, scripts: Scripts) -> None:
        self.scripts = scripts
        self.requests: list[Body] = []
        self.others: list[str] = []
        self._server = _Server(self)
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
        """Requests that offer tools: an agent's turns, without the client's small questions."""
        return [body for body in self.requests if body.get("tools")]


def texts_of(body: Body) -> list[str]:
    """Return the texts of a request's messages, results of tools included."""
    return [text for content in body["contents"] for part in content["parts"] for text in _texts(part)]


def results_of(body: Body) -> list[Body]:
    """Return what the functions of a request have returned, oldest first."""
    return [
        part["functionResponse"]["response"]
        for content in body["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]


def step_for(body: Body, scripts: Scripts) -> Step:
    """Choose the step that answers a request.

    Raises
    ------
    KeyError
        The request's marker names no script.
    """
    name, done = "", 0
    for content in body["contents"]:
        if content["role"] == "model":
            done += 1
            continue
        said = "\n".join(part["text"] for part in content["parts"] if "text" in part)
        if found := _MARKER.findall(_ADDED.sub("", said)):
            name, done = found[-1], 0
    if _COMPACTION in json.dumps(body.get("systemInstruction")) and not body.get("tools"):
        return SNAPSHOT
    steps = scripts[name] if name and body.get("tools") else ()
    return steps[done] if done < len(steps) else OK


def _texts(part: Mapping[str, Any]) -> Iterator[str]:
    if "text" in part:
        yield part["text"]
    if "functionResponse" in part:
        yield from (value for value in part["functionResponse"]["response"].values() if isinstance(value, str))


class _Server(ThreadingHTTPServer):
    def __init__(self, stub: GeminiStub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that is stopped hangs up
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        path, stub = self.path.partition("?")[0], self.server.stub
        if not path.endswith("GenerateContent") and not path.endswith(":generateContent"):
            stub.others.append(f"POST {path}")
            return self._send_json({"totalTokens": READ})
        body = json.loads(raw)
        stub.requests.append(body)
        try:
            answer = _answer(body, step_for(body, stub.scripts))
        except KeyError as error:
            return self._send_json({"error": {"code": 400, "message": f"no script {error}"}}, 400)
        if not path.endswith(":streamGenerateContent"):
            return self._send_json(answer)
        return self._send(f"data: {json.dumps(answer)}\r\n\r\n".encode(), "text/event-stream")

    def do_GET(self) -> None:
        self.server.stub.others.append(f"GET {self.path}")
        self._send_json({"error": {"code": 404, "message": self.path}}, 404)

    def log_message(self, *_: object) -> None:
        pass

    def _send_json(self, value: Body, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _send(self, raw: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _answer(body: Body, step: Step) -> Body:
    asks_json = body.get("generationConfig", {}).get("responseMimeType") == "application/json"
    said = [block for block in step if isinstance(block, Text | Tool)]
    parts = [{"text": json.dumps(_CHOICE)}] if asks_json else [_part(block) for block in said]
    tokens = {"promptTokenCount": READ, "candidatesTokenCount": WRITTEN, "thoughtsTokenCount": THOUGHTS}
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {**tokens, "totalTokenCount": sum(tokens.values())},
        "modelVersion": "stub",
    }


def _part(block: Text | Tool) -> Body:
    if isinstance(block, Tool):
        return {"functionCall": {"name": block.name, "args": dict(block.input)}}
    return {"text": block.text}
