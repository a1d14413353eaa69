"""LangChain: a middleware for agents that ``langchain.agents.create_agent`` makes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage, convert_to_openai_messages

from coherence.core.errors import CoherenceBlocked
from coherence.frameworks.agents import Agents
from coherence.integrations.conversation import Answer
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor
from coherence.providers.transcript import TranscriptCall

_CHAT = ChatWire()


class CoherenceMiddleware(AgentMiddleware):
    """Record what an agent is told, says, calls and gets back; refuse calls; stop at a budget.

    Each agent has a middleware of its own. Agents that work together share :attr:`agents`: one that is called by a
    tool of another one is a part of the same fleet, and its pressure reaches the other one.

    Parameters
    ----------
    agent : str
        Name of the agent.
    agents : Agents, optional
        Those of another middleware, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    A refused call is not run: the agent is given the reason as the tool's result. A request beyond the budget raises
    :class:`~coherence.core.errors.CoherenceBlocked`.
    """

    def __init__(self, agent: str = "agent", *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__()
        self.agents = Agents.joined(agents, agent, options)
        """All agents that are watched together; close it at the end."""
        self._agent = agent

    @property
    def name(self) -> str:
        """Name of the middleware, by which LangChain tells one from another."""
        return f"CoherenceMiddleware.{self._agent}"

    @property
    def monitor(self) -> Monitor:
        """The agent's monitor."""
        return self._watch.monitor

    @property
    def _watch(self) -> Watch:
        return self.agents.watch(self._agent)

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Join the agent whose tool has called this one."""
        self.agents.began(self._agent)

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        """Record a request and its answer."""
        asking = _Asking(self._watch, request)
        asking.guide(asking.watch.ask())
        with asking:
            return asking.answered(handler(asking.request))

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        """Record a request and its answer, in an event loop."""
        asking = _Asking(self._watch, request)
        asking.guide(await asking.watch.aask())
        with asking:
            response = await handler(asking.request)
        return await asyncio.to_thread(asking.answered, response)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Record a call and its result, or refuse the call."""
        watch, call = self._watch, request.tool_call
        if why := watch.refusal(call["id"], call["name"], call["args"]):
            return _refused(call, why)
        with self.agents.at_work(self._agent), _Result(watch, call) as result:
            result.value = handler(request)
        return result.value

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Record a call and its result, or refuse the call, in an event loop."""
        watch, call = self._watch, request.tool_call
        if why := await watch.arefusal(call["id"], call["name"], call["args"]):
            return _refused(call, why)
        with self.agents.at_work(self._agent), _Result(watch, call) as result:
            result.value = await handler(request)
        return result.value


class _Asking:
    """One request to the model."""

    def __init__(self, watch: Watch, request: ModelRequest) -> None:
        self.watch, self.request = watch, request
        system = [request.system_message] if request.system_message is not None else []
        self._turn = watch.asked(_CHAT, {"messages": _plain(watch, [*system, *request.messages])})
        self._hint = ""
        self._began = 0.0

    def guide(self, hint: str) -> None:
        """Put a hint behind the system message of a copy of the request."""
        if hint:
            self._hint = hint
            before = self.request.system_message
            parts: list[Any] = [] if before is None else list(before.content_blocks)
            self.request = self.request.override(
                system_message=SystemMessage(content=[*parts, {"type": "text", "text": hint}])
            )

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self.watch.arrived(self._hint)
        elif not isinstance(error, CoherenceBlocked):
            self.watch.failed(error)

    def answered(self, response: Any) -> Any:
        """Record an answer; return it."""
        seconds = time.monotonic() - self._began
        try:
            made = getattr(response, "model_response", response)  # of a middleware that changes the state, too
            messages = [made] if isinstance(made, BaseMessage) else list(made.result)
            said = [message for message in messages if isinstance(message, AIMessage)]
            answers = [_answer(message, seconds) for message in said]
        except Exception as error:  # the host goes on
            self.watch.failed(error)
            return response
        for answer in answers:
            self.watch.answered(answer, self._turn)
        return response


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
        seconds = time.monotonic() - self._began
        call, name = self._call["id"], self._call["name"]
        if error is not None:
            told, what = str(error) or type(error).__name__, type(error).__name__
            self._watch.result(call, told, error=True, tool=name, duration_s=seconds, error_type=what)
        elif isinstance(self.value, ToolMessage):
            failed = True if self.value.status == "error" else None
            self._watch.result(call, self.value.text, error=failed, tool=name, duration_s=seconds)
        else:  # a command for the graph; its messages come with the next request
            self._watch.result(call, "", error=False, tool=name, duration_s=seconds)


def _plain(watch: Watch, messages: Sequence[BaseMessage]) -> list[Any]:
    """Return messages as those of Chat Completions."""
    try:
        converted = convert_to_openai_messages(messages)
        return converted if isinstance(converted, list) else [converted]
    except Exception as error:
        watch.failed(error)
        return []


def _answer(message: AIMessage, seconds: float) -> Answer:
    used = message.usage_metadata
    converted: Any = convert_to_openai_messages(message)
    return Answer(
        message.text,
        calls=tuple(TranscriptCall(call["name"], call["args"], call["id"]) for call in message.tool_calls),
        keys=_CHAT.keys(converted),
        tokens_in=used["input_tokens"] if used else None,
        tokens_out=used["output_tokens"] if used else None,
        tokens_cached=used.get("input_token_details", {}).get("cache_read") if used else None,
        model=message.response_metadata.get("model_name"),
        id=message.id,
        duration_s=seconds,
    )


def _refused(call: Mapping[str, Any], why: str) -> ToolMessage:
    return ToolMessage(why, tool_call_id=call["id"], name=call["name"], status="error")
