"""Agents of AutoGen: their model clients and workbenches are wrapped, and teams share a fleet."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from time import monotonic
from typing import Any, TypeVar

from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    TextResultContent,
    ToolResult,
    Workbench,
)

from coherence.core.errors import CoherenceBlocked
from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.conversation import Json, Result, Said, Turn
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch

_Message = TypeVar("_Message")

SOURCE = "coherence"
"""Name under which an agent is told a hint."""


class CoherenceAutogen(Watching):
    """Watch agents of AutoGen.

    Make each agent of what :meth:`watched` returns. Where an agent reads what another one has said, the pressure of
    that one reaches it.

    Parameters
    ----------
    agents : Agents, optional
        Agents of yours, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For arguments that exclude each other.
    """

    def __init__(self, *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__(agents=agents, **options)
        self.names: set[str] = set()
        """Names of the agents that are watched."""
        self.stopped: CoherenceBlocked | None = None
        """The newest request that was not sent."""

    def watched(self, name: str, model_client: ChatCompletionClient, tools: Any = ()) -> dict[str, Any]:
        """Return ``model_client`` and ``workbench`` for ``AssistantAgent(name, ...)``; what you gave is not changed.

        Parameters
        ----------
        name : str
            Name of the agent.
        model_client : ChatCompletionClient
            Its requests and answers are recorded.
        tools : Workbench or sequence
            A workbench, or tools and functions as for ``AssistantAgent(tools=...)``: calls may be refused, and results
            are recorded as they come. Without any, there is no ``workbench``.

        Raises
        ------
        ValueError
            If the client is a watched one: each agent has its own.
        """
        if isinstance(model_client, _Client):
            raise ValueError(f"the model client of {name!r} is watched already: give the client itself to each agent")
        watch = self.agents.watch(name)
        self.names.add(watch.monitor.agent)
        watched: dict[str, Any] = {"model_client": _Client(model_client, watch, self)}
        if isinstance(tools, Workbench) and not isinstance(tools, StaticStreamWorkbench):
            watched["workbench"] = _Workbench(tools, watch)
        elif tools:
            watched["workbench"] = _StreamWorkbench(_workbench_of(tools), watch)
        return watched

    async def messages(self, messages: AsyncIterator[_Message]) -> AsyncIterator[_Message]:
        """Yield what ``run_stream`` of an agent or a team yields.

        Raises
        ------
        CoherenceBlocked
            If a used-up budget has ended the run, where a team raises a RuntimeError.
        """
        self.stopped = None
        try:
            async for message in messages:
                yield message
        except RuntimeError:
            if self.stopped is not None:
                raise self.stopped from None
            raise


class _Wire(ChatWire):
    """Messages of AutoGen as those of Chat Completions; what another agent has said is no request of the user."""

    def read(self, item: Json) -> Iterator[Said | Result]:
        if item.get("role") == "agent":
            yield Result(None, item["content"], False, item["name"])
        else:
            yield from super().read(item)


_WIRE = _Wire()


class _Client(ChatCompletionClient):
    """The model client of one agent; all that is not a request is the client's own."""

    def __init__(self, client: Any, watch: Watch, owner: CoherenceAutogen) -> None:
        self._inner, self._watch, self._owner = client, watch, owner
        self._model = _model_of(client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    async def create(self, messages: Any, **options: Any) -> Any:
        turn, told = await self._begin(messages)
        began = monotonic()
        try:
            result = await self._inner.create(told, **options)
        except Exception as error:
            self._watch.failed(error)
            raise
        await self._end(result, turn, began)
        return result

    async def create_stream(self, messages: Any, **options: Any) -> AsyncGenerator[Any, None]:
        turn, told = await self._begin(messages)
        began = monotonic()
        said: list[str] = []
        finished = False
        try:
            async for part in self._inner.create_stream(told, **options):
                if isinstance(part, CreateResult):
                    finished = True
                    await self._end(part, turn, began)
                else:
                    said.append(part)
                yield part
        except Exception as error:
            self._watch.failed(error)
            raise
        finally:
            if not finished:
                begun = {"choices": [{"message": {"content": "".join(said)}}], "model": self._model}
                self._watch.conversation.abandoned(_WIRE.answer(begun))

    async def _begin(self, messages: Any) -> tuple[Turn, Any]:
        """Record a request; return it with what the agent is to be told."""
        agent, names = self._watch.monitor.agent, self._owner.names
        try:
            body = {"messages": [each for message in messages for each in _plain(message, agent, names)]}
            for source in {each["name"] for each in body["messages"] if each["role"] == "agent"}:
                self._owner.agents.handed_over(source, agent)
        except Exception as error:  # the agent goes on
            self._watch.monitor.fault("wrap", error)
            body = {"messages": []}
        turn = self._watch.asked(_WIRE, body)
        try:
            text = await self._watch.aask()
        except CoherenceBlocked as error:
            self._owner.stopped = error
            raise
        if not text:
            return turn, messages
        self._watch.arrived(text)
        return turn, [*messages, UserMessage(content=text, source=SOURCE)]

    async def _end(self, result: Any, turn: Turn, began: float) -> None:
        try:
            answer = _WIRE.answer(_completion(result, self._model))._replace(duration_s=monotonic() - began)
            await self._watch.aanswered(answer, turn)
        except Exception as error:  # the agent goes on
            self._watch.monitor.fault("wrap", error)

    async def close(self) -> None:
        await self._inner.close()

    def actual_usage(self) -> Any:
        return self._inner.actual_usage()

    def total_usage(self) -> Any:
        return self._inner.total_usage()

    def count_tokens(self, messages: Any, **options: Any) -> int:
        return int(self._inner.count_tokens(messages, **options))

    def remaining_tokens(self, messages: Any, **options: Any) -> int:
        return int(self._inner.remaining_tokens(messages, **options))

    @property
    def capabilities(self) -> Any:
        return self._inner.capabilities

    @property
    def model_info(self) -> Any:
        return self._inner.model_info

    def dump_component(self) -> Any:
        return self._inner.dump_component()


class _Workbench(Workbench):
    """The workbench of one agent; all that is not a call is the workbench's own."""

    def __init__(self, workbench: Any, watch: Watch) -> None:
        self._inner, self._watch = workbench, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    async def call_tool(
        self, name: str, arguments: Any = None, cancellation_token: Any = None, call_id: str | None = None
    ) -> Any:
        if reason := await self._watch.arefusal(call_id, name, arguments or {}):
            return _refused(name, reason)
        began = monotonic()
        try:
            result = await self._inner.call_tool(name, arguments, cancellation_token, call_id)
        except Exception as error:
            seconds, what = monotonic() - began, type(error).__name__
            self._watch.result(call_id, str(error), error=True, tool=name, duration_s=seconds, error_type=what)
            raise
        _record(self._watch, call_id, result, monotonic() - began)
        return result

    async def list_tools(self) -> Any:
        return await self._inner.list_tools()

    async def start(self) -> None:
        await self._inner.start()

    async def stop(self) -> None:
        await self._inner.stop()

    async def reset(self) -> None:
        await self._inner.reset()

    async def save_state(self) -> Any:
        return await self._inner.save_state()

    async def load_state(self, state: Any) -> None:
        await self._inner.load_state(state)

    def dump_component(self) -> Any:
        return self._inner.dump_component()


class _StreamWorkbench(StaticStreamWorkbench):
    """The same for a workbench of the class whose calls an agent streams."""

    def __init__(self, workbench: Any, watch: Watch) -> None:
        self.__dict__.update(workbench.__dict__)
        self._inner, self._watch = workbench, watch

    call_tool = _Workbench.call_tool

    async def call_tool_stream(
        self, name: str, arguments: Any = None, cancellation_token: Any = None, call_id: str | None = None
    ) -> AsyncGenerator[Any, None]:
        if reason := await self._watch.arefusal(call_id, name, arguments or {}):
            yield _refused(name, reason)
            return
        began = monotonic()
        async for event in self._inner.call_tool_stream(name, arguments, cancellation_token, call_id):
            if isinstance(event, ToolResult):
                _record(self._watch, call_id, event, monotonic() - began)
            yield event

    def dump_component(self) -> Any:
        return self._inner.dump_component()


def _workbench_of(tools: Any) -> Any:
    """Return tools and functions as the workbench that an agent makes of them."""
    if isinstance(tools, Workbench):
        return tools
    made = [
        each if isinstance(each, BaseTool) else FunctionTool(each, description=each.__doc__ or "") for each in tools
    ]
    return StaticStreamWorkbench(made)


def _refused(tool: str, reason: str) -> Any:
    return ToolResult(name=tool, result=[TextResultContent(content=reason)], is_error=True)


def _record(watch: Watch, call: str | None, result: Any, duration_s: float) -> None:
    # A tool that catches its errors itself says so in words alone.
    error = True if result.is_error else None
    watch.result(call, result.to_text("[image]"), error=error, tool=result.name, duration_s=duration_s)


def _plain(message: Any, agent: str, names: set[str]) -> Iterator[dict[str, Any]]:
    """Yield a message of AutoGen as messages of Chat Completions."""
    if isinstance(message, SystemMessage):
        yield {"role": "system", "content": message.content}
    elif isinstance(message, UserMessage):
        parts = [message.content] if isinstance(message.content, str) else message.content
        text = "\n".join(part if isinstance(part, str) else "[image]" for part in parts)
        is_agents = message.source in names and message.source != agent
        yield {"role": "agent" if is_agents else "user", "content": text, "name": message.source}
    elif isinstance(message, AssistantMessage):
        yield _answer(message.content, message.thought)
    elif isinstance(message, FunctionExecutionResultMessage):
        for result in message.content:
            yield {"role": "tool", "tool_call_id": result.call_id, "content": result.content, "name": result.name}


def _answer(content: Any, thought: str | None) -> dict[str, Any]:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in content
    ]
    return {"role": "assistant", "content": thought or "", "tool_calls": calls}


def _completion(result: Any, model: str | None) -> dict[str, Any]:
    """Return an answer as one of Chat Completions; one of a cache has cost nothing."""
    usage = {"prompt_tokens": result.usage.prompt_tokens, "completion_tokens": result.usage.completion_tokens}
    return {
        "choices": [{"message": _answer(result.content, result.thought), "finish_reason": result.finish_reason}],
        "usage": None if result.cached else usage,
        "model": model,
    }


def _model_of(client: Any) -> str | None:
    """Return the model's name, as the client's own description has it."""
    try:
        name = client.dump_component().config.get("model")
    except Exception:  # not every client can be described
        return None
    return name if isinstance(name, str) else None
