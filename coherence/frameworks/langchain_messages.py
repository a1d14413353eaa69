"""Messages and tool calls of LangChain, for its agents and for nodes of LangGraph."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_openai_messages
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from coherence.frameworks.agents import Agents
from coherence.integrations.conversation import Answer, Json, Result, Said, text_key
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch
from coherence.providers.transcript import TranscriptCall

MIN_TEXT = 20
"""Shortest text, in characters, that tells whose answer it is; shorter ones are said by many."""

_OTHERS = "coherence.others"


class SharedWire(ChatWire):
    """Chat messages of several agents: to one of them, what another one said is told, and what its tools gave is read.

    Without that, the calls of another agent and their failures would count as this one's own.
    """

    def keys(self, item: Json) -> tuple[str, ...]:
        """Return the marks of an answer of the agent itself."""
        return () if _OTHERS in item else super().keys(item)

    def read(self, item: Json) -> Iterator[Said | Result]:
        """Yield the message."""
        for told in super().read(item):
            if _OTHERS not in item:
                yield told
            elif isinstance(told, Result):
                yield told._replace(error=False)
            elif told.text:
                yield Said("user", told.text)


WIRE = SharedWire()


def plain_request(agents: Agents, watch: Watch, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    """Return a request to an agent's model as one of Chat Completions; join the agent with those it has words of."""
    told: list[Any] = []
    for message in messages:
        try:
            plain: Any = convert_to_openai_messages([message])
            others = _is_others(agents, watch, message)
        except Exception as error:  # the host goes on
            watch.failed(error)
            continue
        told.extend({**item, _OTHERS: True} if others else item for item in plain)
    return {"messages": told}


def plain_answer(agents: Agents, watch: Watch, message: AIMessage, seconds: float, model: str | None = None) -> Answer:
    """Return a model's answer, and know whose it is."""
    agents.wrote(watch.monitor.agent, _marks(message))
    used = message.usage_metadata
    converted: Any = convert_to_openai_messages(message)
    return Answer(
        str(message.text),
        calls=tuple(TranscriptCall(call["name"], call["args"], call["id"]) for call in message.tool_calls),
        keys=WIRE.keys(converted),
        tokens_in=used["input_tokens"] if used else None,
        tokens_out=used["output_tokens"] if used else None,
        tokens_cached=used.get("input_token_details", {}).get("cache_read") if used else None,
        model=message.response_metadata.get("model_name") or model,
        id=message.id,
        duration_s=seconds,
    )


def run_tool(agents: Agents, name: str, asked: Any, handler: Callable[[Any], Any]) -> Any:
    """Run a call and record its result, or refuse the call."""
    watch, call = agents.watch(name), asked.tool_call
    if why := watch.refusal(call["id"], call["name"], call["args"]):
        return _refused(call, why)
    with agents.at_work(name), _Result(watch, call) as result:
        result.value = handler(asked)
    return result.value


async def arun_tool(agents: Agents, name: str, asked: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do what :func:`run_tool` does in an event loop."""
    watch, call = agents.watch(name), asked.tool_call
    if why := await watch.arefusal(call["id"], call["name"], call["args"]):
        return _refused(call, why)
    with agents.at_work(name), _Result(watch, call) as result:
        result.value = await handler(asked)
    return result.value


class _Result:
    """The result of one call, recorded when it is there."""

    def __init__(self, watch: Watch, call: Mapping[str, Any]) -> None:
        self._watch, self._call = watch, call
        self.value: Any = None
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, GraphBubbleUp):  # the tool waits for a person, and runs again with the answer
            return
        seconds = time.monotonic() - self._began
        call, name = self._call["id"], self._call["name"]
        if error is not None:
            told, what = str(error) or type(error).__name__, type(error).__name__
            self._watch.result(call, told, error=True, tool=name, duration_s=seconds, error_type=what)
        elif (message := next(_results(self.value, call), None)) is not None:
            failed = True if message.status == "error" else None
            self._watch.result(call, str(message.text), error=failed, tool=name, duration_s=seconds)
        else:
            self._watch.result(call, "", error=False, tool=name, duration_s=seconds)


def _results(value: Any, call: str | None) -> Iterator[ToolMessage]:
    """Yield the messages for a call among what its tool has given; a command for the graph carries some."""
    if isinstance(value, ToolMessage):
        if value.tool_call_id == call:
            yield value
    elif isinstance(value, Command):
        yield from _results(value.update, call)
    elif isinstance(value, Mapping):
        yield from _results(value.get("messages"), call)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _results(each, call)


def _is_others(agents: Agents, watch: Watch, message: BaseMessage) -> bool:
    """Return True for an answer of another agent, and for what its tools gave; join the two."""
    name, marks = watch.monitor.agent, _marks(message)
    writers = agents.writers(marks)
    if not writers or name in writers:
        return False
    agents.handed_over(writers[-1], name)
    if isinstance(message, ToolMessage):  # its text may be another agent's, as the result of a call of this one
        return bool(agents.writers(marks[:1]))
    return isinstance(message, AIMessage)


def _marks(message: BaseMessage) -> list[str]:
    """Return what tells whose a message is, wherever it is repeated."""
    marks = []
    if isinstance(message, ToolMessage):
        marks.append(f"call {message.tool_call_id}")
    elif isinstance(message, AIMessage):
        marks += [f"id {message.id}"] if message.id else []
        marks += [f"call {call['id']}" for call in message.tool_calls if call["id"]]
    if len(message.text.strip()) >= MIN_TEXT:
        marks.append(text_key(message.text))
    return marks


def _refused(call: Mapping[str, Any], why: str) -> ToolMessage:
    return ToolMessage(why, tool_call_id=call["id"], name=call["name"], status="error")
