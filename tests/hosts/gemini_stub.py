"""A scripted stand-in for Gemini's generateContent API on the loopback device.

As in :mod:`hosts.messages_stub`, the answer depends on the request alone: the newest marker ``[[script:NAME]]`` of the
user picks a script, and the number of the model's turns since then its step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hosts.messages_stub import OK, Scripts, Step, Text, Tool, step_of
from hosts.stub_server import MARKER, Body, StubHandler, StubServer

THOUGHTS, READ, WRITTEN = 5, 100, 10
"""Tokens that each answer reports: thought, read and written."""

SNAPSHOT: Step = (Text("<state_snapshot>\nWhat was asked for is under way.\n</state_snapshot>"),)

_COMPACTION = "<state_snapshot>"
"""What the client's instruction names where it asks for a summary."""

_ADDED = re.compile(r"<(session|hook)_context>.*?</\1_context>", re.DOTALL)
_CHOICE = {"reasoning": "stub", "next_speaker": "user", "model_choice": "flash", "complexity_score": 1}
"""Answer to the client's small questions about how to go on: it asks for JSON."""


class GeminiStub(StubServer):
    """Answers the API by ``scripts``, from entering the context to leaving it."""

    def __init__(self, scripts: Scripts) -> None:
        super().__init__(_Handler)
        self.scripts = scripts


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
        if found := MARKER.findall(_ADDED.sub("", said)):
            name, done = found[-1], 0
    if _COMPACTION in json.dumps(body.get("systemInstruction")) and not body.get("tools"):
        return SNAPSHOT
    return step_of(scripts, name, done) if body.get("tools") else OK


def _texts(part: Mapping[str, Any]) -> Iterator[str]:
    if "text" in part:
        yield part["text"]
    if "functionResponse" in part:
        yield from (value for value in part["functionResponse"]["response"].values() if isinstance(value, str))


class _Handler(StubHandler):
    stub: GeminiStub

    def do_POST(self) -> None:
        raw, stub = self.read_raw(), self.stub
        path = self.path.partition("?")[0]
        if not path.endswith("GenerateContent") and not path.endswith(":generateContent"):
            stub.others.append(f"POST {path}")
            return self.send_json({"totalTokens": READ})
        body = json.loads(raw)
        stub.requests.append(body)
        try:
            answer = _answer(body, step_for(body, stub.scripts))
        except KeyError as error:
            return self.send_json({"error": {"code": 400, "message": f"no script {error}"}}, 400)
        if not path.endswith(":streamGenerateContent"):
            return self.send_json(answer)
        event = f"data: {json.dumps(answer)}\r\n\r\n".encode()
        self.send_head(200, ("Content-Type", "text/event-stream"), ("Content-Length", str(len(event))))
        self.wfile.write(event)
        return None


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
