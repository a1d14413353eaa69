"""LangChain: a middleware for agents that ``langchain.agents.create_agent`` makes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from coherence.core.errors import CoherenceBlocked
from coherence.frameworks.agents import Agents, Watching
from coherence.frameworks.langchain_messages import WIRE, arun_tool, plain_answer, plain_request, run_tool
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor


class CoherenceMiddleware(Watching, AgentMiddleware):
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
        Watching.__init__(self, agent, agents=agents, **options)
        AgentMiddleware.__init__(self)

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
        asking = _Asking(self.agents, self._watch, request)
        asking.guide(asking.watch.ask())
        with asking:
            return asking.answered(handler(asking.request))

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        """Record a request and its answer, in an event loop."""
        asking = _Asking(self.agents, self._watch, request)
        asking.guide(await asking.watch.aask())
        with asking:
            response = await handler(asking.request)
        return await asyncio.to_thread(asking.answered, response)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Record a call and its result, or refuse the call."""
        return run_tool(self.agents, self._agent, request, handler)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Record a call and its result, or refuse the call, in an event loop."""
        return await arun_tool(self.agents, self._agent, request, handler)


class _Asking:
    """One request to the model."""

    def __init__(self, agents: Agents, watch: Watch, request: ModelRequest) -> None:
        self.watch, self.request = watch, request
        self._agents = agents
        system = [request.system_message] if request.system_message is not None else []
        self._turn = watch.asked(WIRE, plain_request(agents, watch, [*system, *request.messages]))
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
            answers = [plain_answer(self._agents, self.watch, message, seconds) for message in said]
        except Exception as error:  # the host goes on
            self.watch.failed(error)
            return response
        for answer in answers:
            self.watch.answered(answer, self._turn)
        return response
