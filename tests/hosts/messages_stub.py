"""A scripted stand-in for the Anthropic Messages API on the loopback device.

What it answers depends on the request alone. The marker ``[[script:NAME]]`` in the newest text of the user that has
one picks a script; the number of assistant messages since then picks its step. So requests may be retried, and
agents and subagents may run at the same time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from hosts.stub_server import MARKER, Body, StubHandler, StubServer, new_id


class Text(NamedTuple):
    """Words of the model."""

    text: str


class Tool(NamedTuple):
    """A call of a tool; ``id`` is drawn by chance unless given."""

    name: str
    input: Mapping[str, object]
    id: str = ""


class Fail(NamedTuple):
    """An HTTP error in place of the whole step, each time that the step is asked for."""

    status: int
    kind: str = "api_error"
    message: str = "scripted failure"


class Wait(NamedTuple):
    """A pause before the next block is sent."""

    seconds: float


class Usage(NamedTuple):
    """The tokens that the step reports, by the API's names, in place of the stub's own count."""

    tokens: Mapping[str, int]


Block: TypeAlias = Text | Tool | Fail | Wait | Usage
Step: TypeAlias = Sequence[Block]
Scripts: TypeAlias = Mapping[str, Sequence[Step]]

OK: Step = (Text("ok"),)
SUMMARY: Step = (Text("<summary>\nWhat was asked for is under way.\n</summary>"),)

# What the client or a hook adds may repeat the prompt: the script would start again, for ever.
_ADDED = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_COMPACTION = re.compile(
    r"Respond with TEXT ONLY|detailed summary of (?:the|our) conversation|not allowed during compaction"
)


class MessagesStub(StubServer):
    """Answers the Messages API by ``scripts``, from entering the context to leaving it.

    After a script's last step, to a prompt without a marker and to a request without tools it answers "ok". A marker
    of no script is answered with status 400, so that a slip in a test ends the run. A compaction is answered with the
    script ``summary``, if there is one.

    Attributes
    ----------
    spans
        Begin and end of each turn in the stub, in seconds of :func:`time.monotonic`.
    """

    def __init__(self, scripts: Scripts) -> None:
        super().__init__(_Handler)
        self.scripts = scripts
        self.spans: list[tuple[float, float]] = []

    def texts(self) -> list[str]:
        """Return all texts in the newest turn."""
        return texts_of(self.turns[-1])


def texts_of(body: Body) -> list[str]:
    """Return all texts of a request: its system prompt, then those of each message, results of tools included."""
    return [*_texts(body.get("system")), *(text for message in body["messages"] for text in _texts(message["content"]))]


def results_of(body: Body) -> list[Body]:
    """Return the blocks of a request that hold results of tools, oldest first."""
    return [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def is_compaction(body: Body) -> bool:
    """Return whether a request asks for a summary of the conversation."""
    return _COMPACTION.search("\n".join(_texts(body["messages"][-1]["content"], results=False))) is not None


def step_of(scripts: Scripts, name: str, done: int) -> Step:
    """Return the step of a script after so many; "ok" after its last one, and where no script is named.

    Raises
    ------
    KeyError
        No script has that name.
    """
    steps = scripts[name] if name else ()
    return steps[done] if done < len(steps) else OK


def step_for(body: Body, scripts: Scripts) -> Step:
    """Choose the step that answers a request.

    Raises
    ------
    KeyError
        The request's marker names no script.
    """
    name, done = "", 0
    newest: list[str] = []
    for message in body["messages"]:
        if message["role"] == "assistant":
            done, newest = done + 1, []
            continue
        said = list(_texts(message["content"], results=False))
        newest += said
        if message["role"] == "user" and (found := MARKER.findall(_ADDED.sub("", "\n".join(said)))):
            name, done = found[-1], 0
    if _COMPACTION.search("\n".join(newest)):
        return scripts.get("summary", (SUMMARY,))[0]
    if not body.get("tools"):
        return OK
    return step_of(scripts, name, done)


def _texts(content: object, *, results: bool = True) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            if block["type"] == "text":
                yield block["text"]
            elif block["type"] == "tool_result" and results:
                yield from _texts(block.get("content"))


class _Handler(StubHandler):
    stub: MessagesStub

    def do_POST(self) -> None:
        raw, stub = self.read_raw(), self.stub
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            stub.others.append(f"POST {path}")
            self.send_json({"input_tokens": len(raw) // 4})
        elif path == "/v1/messages":
            began = time.monotonic()
            body = json.loads(raw)
            stub.requests.append(body)
            self._answer(body, len(raw) // 4)
            if body.get("tools"):
                stub.spans.append((began, time.monotonic()))
        else:
            self.refuse_path()

    def do_HEAD(self) -> None:
        self.stub.others.append(f"HEAD {self.path}")
        self.send_head(200, ("Content-Length", "0"))

    def _answer(self, body: Body, read: int) -> None:
        try:
            step = step_for(body, self.stub.scripts)
        except KeyError as error:
            step = (Fail(400, "invalid_request_error", f"no script {error}"),)
        if failure := next((block for block in step if isinstance(block, Fail)), None):
            time.sleep(sum(block.seconds for block in step if isinstance(block, Wait)))
            self._send_error(failure)
            return
        usage = {"input_tokens": read, "output_tokens": 1}
        for block in step:
            if isinstance(block, Usage):
                usage |= block.tokens
        events = _events(step, str(body.get("model")), usage)
        if body.get("stream"):
            self.send_events(events)
        else:
            self.send_json(_assemble(events))

    def _send_error(self, failure: Fail) -> None:
        error = {"type": failure.kind, "message": failure.message}
        self.send_json({"type": "error", "error": error}, failure.status)

    def send_head(self, status: int, *headers: tuple[str, str]) -> None:
        super().send_head(status, *headers, ("request-id", new_id("req")))


def _events(step: Step, model: str, usage: dict[str, int]) -> Iterator[Body]:
    """Yield the events of a step's stream, waiting where it says so."""
    message = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
    ends = {"stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, **ends, "usage": usage}}
    index = 0
    for block in step:
        if isinstance(block, Wait):
            time.sleep(block.seconds)
        elif isinstance(block, Text | Tool):
            empty, delta = _block_events(block)
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
            index += 1
    reason = "tool_use" if any(isinstance(block, Tool) for block in step) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {**ends, "stop_reason": reason},
        "usage": {"output_tokens": usage["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _block_events(block: Text | Tool) -> tuple[Body, Body]:
    if isinstance(block, Text):
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": block.text}
    call = {"type": "tool_use", "id": block.id or new_id("toolu"), "name": block.name, "input": {}}
    return call, {"type": "input_json_delta", "partial_json": json.dumps(block.input)}


def _assemble(events: Iterator[Body]) -> Body:
    """Put a stream together to the message that a client without streaming is given."""
    message: Body = {}
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block, delta = message["content"][-1], event["delta"]
                if block["type"] == "text":
                    block["text"] = delta["text"]
                else:
                    block["input"] = json.loads(delta["partial_json"])
            case "message_delta":
                message |= event["delta"]
    return message
