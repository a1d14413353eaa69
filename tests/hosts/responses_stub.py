"""A scripted stand-in for the OpenAI Responses API on the loopback device, with scripts as the Messages stub has them.

What it answers depends on the request alone: the marker ``[[script:NAME]]`` in the newest text of the user that has one
picks a script, and the number of the model's turns since then picks its step.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from hosts.messages_stub import OK, Body, Fail, Scripts, Step, Text, Tool, Usage, Wait

_MARKER = re.compile(r"\[\[script:([\w-]+)\]\]")
_OF_MODEL = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")


class ResponsesStub:
    """Answers the Responses API by ``scripts``, from entering the context to leaving it.

    After a script's last step and to a prompt without a marker it answers "ok". A marker of no script is answered with
    status 400, so that a slip in a test ends the run.

    Attributes
    ----------
    url
        What a client takes as its base URL.
    requests
        The bodies of all requests for responses, oldest first.
    others
        Method and path of everything else that was asked for.
    """

    def __init__(self, scripts: Scripts) -> None:
        self.scripts = scripts
        self.requests: list[Body] = []
        self.others: list[str] = []
        self._server = _Server(self)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def texts_of(body: Body, *roles: str) -> list[str]:
    """Return the texts of a request's messages, of some roles or of all; results of tools are no messages."""
    return [
        text
        for item in body["input"]
        if item.get("type", "message") == "message" and (not roles or item["role"] in roles)
        for text in _texts(item["content"])
    ]


def outputs_of(body: Body) -> list[str]:
    """Return the results of tools that a request holds, oldest first."""
    found = (item["output"] for item in body["input"] if item.get("type", "").endswith("_call_output"))
    return [output if isinstance(output, str) else "\n".join(_texts(output)) for output in found]


def step_for(body: Body, scripts: Scripts) -> Step:
    """Choose the step that answers a request.

    Raises
    ------
    KeyError
        The request's marker names no script.
    """
    name, done, in_turn = "", 0, False
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind in _OF_MODEL or item.get("role") == "assistant":
            done, in_turn = done + (not in_turn), True
            continue
        in_turn = False
        if item.get("role") == "user" and (found := _MARKER.findall("\n".join(_texts(item["content"])))):
            name, done = found[-1], 0
    steps = scripts[name] if name else ()
    return steps[done] if done < len(steps) else OK


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content if isinstance(part.get("text"), str))


class _Server(ThreadingHTTPServer):
    def __init__(self, stub: ResponsesStub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/responses"):
            return self._refuse_path()
        body = json.loads(raw)
        stub = self.server.stub
        stub.requests.append(body)
        try:
            step = step_for(body, stub.scripts)
        except KeyError as error:
            step = (Fail(400, "invalid_request_error", f"no script {error}"),)
        if failure := next((block for block in step if isinstance(block, Fail)), None):
            told = {"type": failure.kind, "code": failure.kind, "message": failure.message}
            return self._send_json({"error": told}, failure.status)
        return self._stream(_events(step, str(body.get("model")), len(raw) // 4))

    def do_GET(self) -> None:
        self._refuse_path()

    def log_message(self, *_: object) -> None:
        pass

    def _stream(self, events: Iterator[Body]) -> None:
        self._send_head(200, ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
        for number, event in enumerate(events):
            data = json.dumps({**event, "sequence_number": number})
            chunk = f"event: {event['type']}\ndata: {data}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _refuse_path(self) -> None:
        self.server.stub.others.append(f"{self.command} {self.path}")
        self._send_json({"error": {"type": "not_found_error", "message": self.path}}, 404)

    def _send_json(self, value: Body, status: int) -> None:
        raw = json.dumps(value).encode()
        self._send_head(status, ("Content-Type", "application/json"), ("Content-Length", str(len(raw))))
        self.wfile.write(raw)

    def _send_head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()


def _events(step: Step, model: str, read: int) -> Iterator[Body]:
    """Yield the events of a step's stream, waiting where it says so."""
    usage: dict[str, Any] = {"input_tokens": read, "output_tokens": 1}
    response = {"id": _id("resp"), "object": "response", "created_at": int(time.time()), "model": model}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    output: list[Body] = []
    for block in step:
        match block:
            case Wait():
                time.sleep(block.seconds)
            case Usage():
                usage |= block.tokens
            case Text() | Tool():
                item = _item(block)
                yield {"type": "response.output_item.added", "output_index": len(output), "item": item}
                if isinstance(block, Text):
                    at = {"item_id": item["id"], "output_index": len(output), "content_index": 0}
                    yield {"type": "response.output_text.delta", **at, "delta": block.text, "logprobs": []}
                yield {"type": "response.output_item.done", "output_index": len(output), "item": item}
                output.append(item)
    usage = {
        **usage,
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": output, "usage": usage},
    }


def _item(block: Text | Tool) -> Body:
    if isinstance(block, Text):
        said = {"type": "output_text", "text": block.text, "annotations": []}
        return {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": [said]}
    call = {"type": "function_call", "id": _id("fc"), "call_id": block.id or _id("call"), "status": "completed"}
    return {**call, "name": block.name, "arguments": json.dumps(block.input)}


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"
