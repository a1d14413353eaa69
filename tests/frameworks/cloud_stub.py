"""A scripted stand-in for Amazon Bedrock and Gemini on the loopback device; its answers come in order."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

from hosts.messages_stub import Fail, Step, Text, Tool, Wait
from hosts.stub_server import Body, StubHandler, StubServer, new_id

from frameworks.model_stub import PER_CALL, Asked

THOUGHTS = 10
"""Tokens of an answer that Gemini counts apart."""


class CloudStub(StubServer):
    """Answers Converse, ConverseStream, generateContent and streamGenerateContent with ``steps``, one a request.

    After the last it answers "ok". A step of ``Fail`` is an HTTP error, once. ``has_ids``: Gemini's calls have ids.
    """

    def __init__(self, steps: Sequence[Step], *, has_ids: bool = False) -> None:
        super().__init__(_Handler)
        self.steps = list(steps)
        self.has_ids = has_ids
        self.asked: list[Asked] = []


class _Handler(StubHandler):
    stub: CloudStub

    def do_POST(self) -> None:
        raw, stub = self.read_raw(), self.stub
        path = self.path.partition("?")[0]
        stub.asked.append(Asked(path, tuple(self.headers.items()), raw))
        step = stub.steps.pop(0) if stub.steps else (Text("ok"),)
        if failure := next((block for block in step if isinstance(block, Fail)), None):
            error = {"code": failure.status, "message": failure.message, "status": failure.kind}
            self.send_json({"message": failure.message, "error": error}, failure.status)
        elif path.endswith("/converse"):
            self.send_json(_message(step))
        elif path.endswith("/converse-stream"):
            self._send("application/vnd.amazon.eventstream", (_frame(*event) for event in _events(step)))
        elif path.endswith(":generateContent"):
            self.send_json(_response(step, [_part(block, stub) for block in step if not isinstance(block, Wait)]))
        elif path.endswith(":streamGenerateContent"):
            told = (f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in _chunks(step, stub))
            self._send("text/event-stream", told)
        else:
            self.refuse_path()

    def _send(self, kind: str, chunks: Iterable[bytes]) -> None:
        self.send_head(200, ("Content-Type", kind), ("Transfer-Encoding", "chunked"))
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")


def _message(step: Step) -> Body:
    content: list[Body] = []
    for block in step:
        if isinstance(block, Text):
            content.append({"text": block.text})
        elif isinstance(block, Tool):
            call = {"toolUseId": block.id or new_id("tooluse"), "name": block.name, "input": dict(block.input)}
            content.append({"toolUse": call})
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _reason(step),
        "usage": _usage(),
        "metrics": {"latencyMs": 1},
    }


def _reason(step: Step) -> str:
    return "tool_use" if any(isinstance(block, Tool) for block in step) else "end_turn"


def _usage() -> Body:
    return {
        "inputTokens": PER_CALL["input"] - PER_CALL["cached"],
        "cacheReadInputTokens": PER_CALL["cached"],
        "cacheWriteInputTokens": 0,
        "outputTokens": PER_CALL["output"],
        "totalTokens": PER_CALL["input"] + PER_CALL["output"],
    }


def _events(step: Step) -> Iterator[tuple[str, Body]]:
    yield "messageStart", {"role": "assistant"}
    for at, block in enumerate(step):
        if isinstance(block, Wait):
            time.sleep(block.seconds)
        elif isinstance(block, Text):
            for half in (block.text[: len(block.text) // 2], block.text[len(block.text) // 2 :]):
                yield "contentBlockDelta", {"contentBlockIndex": at, "delta": {"text": half}}
            yield "contentBlockStop", {"contentBlockIndex": at}
        elif isinstance(block, Tool):
            call = {"toolUseId": block.id or new_id("tooluse"), "name": block.name}
            yield "contentBlockStart", {"contentBlockIndex": at, "start": {"toolUse": call}}
            told = json.dumps(dict(block.input))
            for part in (told[:3], told[3:]):
                yield "contentBlockDelta", {"contentBlockIndex": at, "delta": {"toolUse": {"input": part}}}
            yield "contentBlockStop", {"contentBlockIndex": at}
    yield "messageStop", {"stopReason": _reason(step)}
    yield "metadata", {"usage": _usage(), "metrics": {"latencyMs": 1}}


def _frame(kind: str, event: Body) -> bytes:
    """Return an event in Amazon's event-stream encoding: prelude, its checksum, headers, payload, and a checksum."""
    named = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack(f"!B{len(name)}sBH{len(value)}s", len(name), name.encode(), 7, len(value), value.encode())
        for name, value in named.items()
    )
    payload = json.dumps(event).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    told = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return told + struct.pack("!I", crc32(told))


def _part(block: object, stub: CloudStub) -> Body:
    if isinstance(block, Tool):
        call: Body = {"name": block.name, "args": dict(block.input)}
        return {"functionCall": {**call, "id": new_id("call")} if stub.has_ids else call}
    assert isinstance(block, Text)
    return {"text": block.text}


def _response(step: Step, parts: list[Body], *, finished: bool = True) -> Body:
    candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = {
        "promptTokenCount": PER_CALL["input"],
        "cachedContentTokenCount": PER_CALL["cached"],
        "candidatesTokenCount": PER_CALL["output"] - THOUGHTS,
        "thoughtsTokenCount": THOUGHTS,
        "totalTokenCount": PER_CALL["input"] + PER_CALL["output"],
    }
    if finished:
        candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": new_id("response")}


def _chunks(step: Step, stub: CloudStub) -> Iterator[Body]:
    for block in step:
        if isinstance(block, Wait):
            time.sleep(block.seconds)
        elif isinstance(block, Text):
            for half in (block.text[: len(block.text) // 2], block.text[len(block.text) // 2 :]):
                yield _response(step, [{"text": half}], finished=False)
        else:
            yield _response(step, [_part(block, stub)], finished=False)
    yield _response(step, [{"text": ""}])
