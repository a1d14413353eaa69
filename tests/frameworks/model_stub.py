"""A scripted stand-in for the OpenAI and Anthropic APIs on the loopback device; its answers come in order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hosts.messages_stub import Fail, Step, Text, Tool, Usage, Wait
from hosts.messages_stub import _assemble as message_of
from hosts.messages_stub import _events as message_events
from hosts.responses_stub import _events as response_events
from hosts.stub_server import Body, StubHandler, StubServer, new_id

PER_CALL = {"input": 1000, "cached": 200, "output": 50}
"""Tokens that each answer reports."""


class Asked(NamedTuple):
    """A request as it came."""

    path: str
    headers: tuple[tuple[str, str], ...]
    raw: bytes

    @property
    def body(self) -> Body:
        body: Body = json.loads(self.raw)
        return body


class ModelStub(StubServer):
    """Answers Chat Completions, Responses and Messages with ``steps``, one a request; "ok" after the last.

    A step of ``Fail`` is an HTTP error, once. ``usage`` comes with each answer.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(_Handler)
        self.steps = list(steps)
        self.asked: list[Asked] = []


class _Handler(StubHandler):
    stub: ModelStub

    def do_GET(self) -> None:
        self.stub.others.append(f"GET {self.path}")
        self.send_json({"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None})

    def do_POST(self) -> None:
        raw, stub = self.read_raw(), self.stub
        path = self.path.partition("?")[0]
        stub.asked.append(Asked(path, tuple(self.headers.items()), raw))
        api = _APIS.get(path.rpartition("/")[2])
        if api is None or "batches" in path:
            stub.others.append(f"POST {path}")
            self.send_json({"id": "x", "object": "list", "data": [], "model": "m", "usage": {}})
            return
        body = json.loads(raw)
        step = stub.steps.pop(0) if stub.steps else (Text("ok"),)
        if failure := next((block for block in step if isinstance(block, Fail)), None):
            error = {"type": failure.kind, "message": failure.message}
            self.send_json({"type": "error", "error": error}, failure.status)
            return
        self._answer(api, step, str(body.get("model")), streamed=bool(body.get("stream")), body=body)

    def _answer(self, api: str, step: Step, model: str, *, streamed: bool, body: Body) -> None:
        if api == "chat":
            if not streamed:
                self.send_json(_completion(step, model))
                return
            wants_usage = (body.get("stream_options") or {}).get("include_usage", False)
            self.send_chunks(_chunks(step, model, wants_usage=wants_usage))
        elif api == "messages":
            tokens = {
                "input_tokens": PER_CALL["input"] - PER_CALL["cached"],
                "cache_read_input_tokens": PER_CALL["cached"],
                "output_tokens": PER_CALL["output"],
            }
            events = message_events(step, model, tokens)
            self.send_events(events) if streamed else self.send_json(message_of(events))
        else:
            events = (_counted(event) for event in response_events((*step, _TOKENS), model, PER_CALL["input"]))
            if streamed:
                self.send_events({**event, "sequence_number": at} for at, event in enumerate(events))
            else:
                self.send_json({**list(events)[-1]["response"], "parallel_tool_calls": True, "tools": []})

    def send_chunks(self, chunks: Iterator[Body]) -> None:
        """Send data without names of events, as Chat Completions does."""
        self.send_head(200, ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
        for told in _with_done(chunks):
            chunk = f"data: {told}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")


_APIS = {"completions": "chat", "responses": "responses", "messages": "messages"}
_TOKENS = Usage({"output_tokens": PER_CALL["output"]})


def _with_done(chunks: Iterator[Body]) -> Iterator[str]:
    for chunk in chunks:
        yield json.dumps(chunk)
    yield "[DONE]"


def _counted(event: Body) -> Body:
    """Return an event of the Responses API with the tokens that came from a cache."""
    usage = event.get("response", {}).get("usage")
    if usage is not None:
        usage["input_tokens_details"] = {"cached_tokens": PER_CALL["cached"]}
    return event


def _calls(step: Step) -> list[Body]:
    return [
        {
            "id": block.id or new_id("call"),
            "type": "function",
            "function": {"name": block.name, "arguments": json.dumps(block.input)},
        }
        for block in step
        if isinstance(block, Tool)
    ]


def _usage() -> Body:
    return {
        "prompt_tokens": PER_CALL["input"],
        "completion_tokens": PER_CALL["output"],
        "total_tokens": PER_CALL["input"] + PER_CALL["output"],
        "prompt_tokens_details": {"cached_tokens": PER_CALL["cached"]},
    }


def _head(model: str, kind: str) -> Body:
    return {"id": new_id("chatcmpl"), "object": kind, "created": int(time.time()), "model": model}


def _completion(step: Step, model: str) -> Body:
    calls = _calls(step)
    text = "".join(block.text for block in step if isinstance(block, Text))
    message: Body = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    return {**_head(model, "chat.completion"), "choices": [choice], "usage": _usage()}


def _chunks(step: Step, model: str, *, wants_usage: bool) -> Iterator[Body]:
    head = _head(model, "chat.completion.chunk")

    def chunk(delta: Body, reason: str | None = None) -> Body:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**head, "choices": [choice], "usage": None}

    yield chunk({"role": "assistant", "content": ""})
    for block in step:
        if isinstance(block, Wait):
            time.sleep(block.seconds)
        elif isinstance(block, Text):
            for half in (block.text[: len(block.text) // 2], block.text[len(block.text) // 2 :]):
                yield chunk({"content": half})
    calls = _calls(step)
    for at, call in enumerate(calls):
        told = call["function"]["arguments"]
        first = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for part in (told[:3], told[3:]):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
    yield chunk({}, "tool_calls" if calls else "stop")
    if wants_usage:
        yield {**head, "choices": [], "usage": _usage()}
