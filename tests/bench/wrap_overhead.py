"""Measure what coherence.wrap adds to a call of the real OpenAI and Anthropic clients, nothing embedded.

``python tests/bench/wrap_overhead.py`` needs the extra ``frameworks``. The clients answer from a transport in the
process, so that no network hides what is measured; the bare client and the wrapped one take turns. Each call goes on a
conversation of 40 messages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import anthropic
import httpx2
import openai
from showing import row, say, summary

import coherence
from coherence import Monitor

ROUNDS = 150
PAUSE_S = 0.05
"""Between calls, as a model thinks: what is measured behind a call has that time."""
THOUGHT_S = 0.03
"""Seconds that the model takes, fewer than a real one: reading the request meanwhile costs nobody anything."""

PAST = [{"role": role, "content": f"Part {at} of a talk."} for at in range(20) for role in ("user", "assistant")]


class Chunks(httpx2.SyncByteStream):
    """The events of a stream, as a server sends them."""

    def __iter__(self) -> Iterator[bytes]:
        for at in range(50):
            told = {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {"content": f"word {at} "}}]}
            yield f"data: {json.dumps(told)}\n\n".encode()
        end = {"id": "r", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode()


def answer(request: httpx2.Request) -> httpx2.Response:
    """Answer by the request's path and by the name of its model."""
    time.sleep(THOUGHT_S)
    body = json.loads(request.content)
    if body.get("stream"):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Chunks())
    calls = body["model"] == "calls"
    # a new id each time, as providers give it
    id = f"c{time.perf_counter_ns()}"
    if "messages" in request.url.path:
        content: list[Any] = [{"type": "text", "text": "A step of the work is done."}]
        if calls:
            content.append({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a.py"}})
        usage = {"input_tokens": 9, "output_tokens": 4}
        told = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
        return httpx2.Response(200, json={**told, "stop_reason": "end_turn", "stop_sequence": None})
    message: dict[str, Any] = {"role": "assistant", "content": "A step of the work is done."}
    if calls:
        function = {"name": "read_file", "arguments": '{"path": "a.py"}'}
        message["tool_calls"] = [{"id": id, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
    return httpx2.Response(200, json={**head, "choices": [choice], "usage": usage})


def clients() -> Iterator[tuple[str, Any, Callable[[Any, str, str], None]]]:
    """Yield each client and how it asks."""

    def ask_openai(client: Any, model: str, said: str) -> None:
        client.chat.completions.create(model=model, messages=[*PAST, {"role": "user", "content": said}])

    def ask_anthropic(client: Any, model: str, said: str) -> None:
        client.messages.create(model=model, max_tokens=9, messages=[*PAST, {"role": "user", "content": said}])

    def http() -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(answer))

    yield "openai", openai.OpenAI(api_key="k", http_client=http()), ask_openai
    yield "anthropic", anthropic.Anthropic(api_key="k", http_client=http()), ask_anthropic


def took(action: Callable[[], object]) -> float:
    """Return how long something takes, in microseconds."""
    time.sleep(PAUSE_S)
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1e6


def first_chunk(client: Any) -> float:
    """Return how long the first chunk of a stream takes, in microseconds; read the rest."""
    time.sleep(PAUSE_S)
    began = time.perf_counter()
    with client.chat.completions.create(model="text", messages=PAST, stream=True) as stream:
        next(iter(stream))
        lasted = time.perf_counter() - began
        for _ in stream:
            pass
    return lasted * 1e6


def judged(monitor: Monitor, said: str) -> float:
    """Return how long a monitor takes that is told of an answer with a call by hand, in microseconds."""
    monitor.message("user", said)

    def tell() -> None:
        monitor.message("assistant", "A step of the work is done.", model="m", response_id="r")
        monitor.check("read_file", {"path": "a.py"})
        monitor.tool_call("read_file", {"path": "a.py"}, call=f"c{time.perf_counter_ns()}")
        monitor.usage(tokens_in=9, tokens_out=4, model="m", response_id="r")

    return took(tell)


def main() -> None:
    """Print what is added by a call, and to the first chunk of a stream."""
    for name, bare, ask in clients():
        for model in ("text", "calls"):
            with Monitor(embedder=False, source="test") as monitor, Monitor(embedder=False, source="test") as by_hand:
                client = coherence.wrap(bare, monitor=monitor)
                ask(client, model, "Begin.")  # the whole conversation is new once
                pairs = []
                judgements = []
                for at in range(ROUNDS):
                    said = f"Go on with part {at}."
                    plain = took(partial(ask, bare, model, said))
                    ours = took(partial(ask, client, model, said))
                    pairs.append((plain, ours))
                    if model == "calls":
                        judgements.append(judged(by_hand, said))
                added = median(ours - plain for plain, ours in pairs)
                say(f"{name}, {model}: a bare call", f"{median(plain for plain, _ in pairs):,.0f} us")
                if model == "text":
                    row(f"{name}: wrap adds to an answer of text", added, 200.0, " us")
                else:
                    # the question whether a call may run waits until the step before is measured
                    say(f"{name}: wrap adds to an answer with a call, its judgement included", f"{added:,.0f} us")
                    row(f"{name}: beyond a judgement by hand", added - median(judgements), 200.0, " us")
        if name == "openai":
            with Monitor(embedder=False, source="test") as monitor:
                client = coherence.wrap(bare, monitor=monitor)
                first_chunk(client)
                waits = [(first_chunk(bare), first_chunk(client)) for _ in range(ROUNDS)]
            row("wrap adds to the first chunk of a stream", median(b - a for a, b in waits) / 1e3, 1.0, " ms")
    summary()


if __name__ == "__main__":
    main()
