"""A scripted stand-in for the OpenAI Responses API on the loopback device, with scripts as the Messages stub has them.

What it answers depends on the request alone: the marker ``[[script:NAME]]`` in the newest text of the user that has one
picks a script, and the number of the model's turns since then picks its step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from hosts.messages_stub import Fail, Scripts, Step, Text, Tool, Usage, Wait, step_of
from hosts.stub_server import MARKER, Body, StubHandler, StubServer, new_id

_OF_MODEL = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")


class ResponsesStub(StubServer):
    """Answers the Responses API by ``scripts``, from entering the context to leaving it.

    After a script's last step and to a prompt without a marker it answers "ok". A marker of no script is answered with
    status 400, so that a slip in a test ends the run.
    """

    def __init__(self, scripts: Scripts) -> None:
        super().__init__(_Handler)
        self.scripts = scripts
        self.url += "/v1"


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
        if item.get("role") == "user" and (found := MARKER.findall("\n".join(_texts(item["content"])))):
            name, done = found[-1], 0
    return step_of(scripts, name, done)


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content if isinstance(part.get("text"), str))


class _Handler(StubHandler):
    stub: ResponsesStub

    def do_POST(self) -> None:
        raw, stub = self.read_raw(), self.stub
        if not self.path.endswith("/responses"):
            return self.refuse_path()
        body = json.loads(raw)
        stub.requests.append(body)
        try:
            step = step_for(body, stub.scripts)
        except KeyError as error:
            step = (Fail(400, "invalid_request_error", f"no script {error}"),)
        if failure := next((block for block in step if isinstance(block, Fail)), None):
            told = {"type": failure.kind, "code": failure.kind, "message": failure.message}
            return self.send_json({"error": told}, failure.status)
        events = enumerate(_events(step, str(body.get("model")), len(raw) // 4))
        return self.send_events({**event, "sequence_number": number} for number, event in events)


def _events(step: Step, model: str, read: int) -> Iterator[Body]:
    """Yield the events of a step's stream, waiting where it says so."""
    usage: dict[str, Any] = {"input_tokens": read, "output_tokens": 1}
    response = {"id": new_id("resp"), "object": "response", "created_at": int(time.time()), "model": model}
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
        return {"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed", "content": [said]}
    call = {"type": "function_call", "id": new_id("fc"), "call_id": block.id or new_id("call"), "status": "completed"}
    return {**call, "name": block.name, "arguments": json.dumps(block.input)}
