"""OpenAI Agents SDK: hooks, an input filter and guarded tools for a run."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

from agents import (
    Agent,
    FunctionTool,
    RunConfig,
    RunHooks,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.items import ModelResponse
from agents.run import CallModelData, ModelInputData

from coherence.frameworks.agents import Agents
from coherence.integrations.conversation import Answer, Turn, plain
from coherence.integrations.openai_wire import ResponsesWire
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor

_RESPONSES = ResponsesWire()


class _Request(NamedTuple):
    """A request under way."""

    turn: Turn
    hint: str
    began: float


_REQUEST: ContextVar[_Request | None] = ContextVar("coherence_openai_agents", default=None)


class Coherence:
    """Watch runs of ``agents.Runner``: record them, refuse calls, stop at a budget.

    Each agent is watched under its own name, and all are one fleet. The pressure of an agent that hands over reaches
    the next one, and that of an agent that is a tool reaches the one that calls it.

    Parameters
    ----------
    agents : Agents, optional
        Those of another framework or run, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    A run takes all three: ``Runner.run(watch.guarded(agent), text, hooks=watch.hooks, run_config=watch.run_config())``.
    A refused call is not run: the agent is given the reason as the tool's output. A request beyond the budget raises
    :class:`~coherence.core.errors.CoherenceBlocked`.
    """

    def __init__(self, *, agents: Agents | None = None, **options: Any) -> None:
        self.agents = Agents.joined(agents, "agent", options)
        """All agents that are watched together; close it at the end."""
        self.hooks: RunHooks[Any] = _Hooks(self.agents)
        """Hooks for ``Runner.run`` and for ``Agent.as_tool``."""

    @property
    def monitor(self) -> Monitor:
        """The monitor of the first agent."""
        return self.agents.monitor

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a copy of a configuration whose requests are recorded; your own input filter comes first."""
        given = RunConfig() if config is None else config
        return replace(given, call_model_input_filter=self._filter(given.call_model_input_filter))

    def guarded(self, agent: Agent[Any]) -> Agent[Any]:
        """Return a copy of an agent, and of those that it hands over to, whose function tools are checked first.

        Handoffs that are no agents, MCP servers and the provider's own tools stay as they are: their calls are
        recorded, and not refused.
        """
        return self._guarded(agent, {})

    def _guarded(self, agent: Agent[Any], known: dict[int, Agent[Any]]) -> Agent[Any]:
        if id(agent) in known:
            return known[id(agent)]
        made = known[id(agent)] = agent.clone(tools=[self._guarded_tool(tool) for tool in agent.tools])
        made.handoffs = [self._guarded(each, known) if isinstance(each, Agent) else each for each in agent.handoffs]
        return made

    def _guarded_tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool
        made = copy.copy(tool)
        guard: ToolInputGuardrail[Any] = ToolInputGuardrail(guardrail_function=self._judge, name="coherence")
        made.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), guard]
        made.on_invoke_tool = self._timed(tool.on_invoke_tool)
        return made

    async def _judge(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Let a call pass, or give its agent the reason of the refusal."""
        call = data.context
        why = await self.agents.watch(data.agent.name).arefusal(call.tool_call_id, call.tool_name, call.tool_arguments)
        return ToolGuardrailFunctionOutput.reject_content(why) if why else ToolGuardrailFunctionOutput.allow()

    def _timed(self, invoke: Callable[[Any, str], Awaitable[Any]]) -> Callable[[Any, str], Awaitable[Any]]:
        async def invoked(context: Any, arguments: str) -> Any:
            name = context.agent.name if context.agent is not None else None
            watch = self.agents.watch(name)
            began = time.monotonic()
            with self.agents.at_work(watch.monitor.agent):
                try:
                    value = await invoke(context, arguments)
                except Exception as error:
                    told, kind = str(error) or type(error).__name__, type(error).__name__
                    seconds = time.monotonic() - began
                    watch.result(context.tool_call_id, told, error=True, duration_s=seconds, error_type=kind)
                    raise
            watch.result(context.tool_call_id, str(value), duration_s=time.monotonic() - began)
            return value

        return invoked

    def _filter(self, mine: Callable[[CallModelData[Any]], Any] | None) -> Callable[[CallModelData[Any]], Any]:
        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            given = data.model_data
            if mine is not None:
                given = mine(data)
                if asyncio.iscoroutine(given):
                    given = await given
            watch = self.agents.watch(data.agent.name)
            turn = watch.asked(_RESPONSES, {"instructions": given.instructions, "input": given.input})
            hint = await watch.aask()
            if hint:
                body = _RESPONSES.guided({"input": given.input}, hint)
                given = ModelInputData(input=body["input"], instructions=given.instructions)
            _REQUEST.set(_Request(turn, hint, time.monotonic()))
            return given

        return filtered


class _Hooks(RunHooks[Any]):
    """Record answers, and which agent works for which."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        self._agents.began(agent.name)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        await asyncio.to_thread(self._agents.taken_over, from_agent.name, to_agent.name)

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        watch, request = self._agents.watch(agent.name), _REQUEST.get()
        if request is None:  # without run_config(), nobody has seen the request
            request = _Request(Turn(""), "", time.monotonic())
        watch.arrived(request.hint)
        if (answer := _answer(watch, agent, response)) is not None:
            seconds = time.monotonic() - request.began
            await watch.aanswered(answer._replace(duration_s=seconds), request.turn)


def _answer(watch: Watch, agent: Any, response: ModelResponse) -> Answer | None:
    try:
        answer = _RESPONSES.answer({"output": plain(response.output), "id": response.response_id})
        used, model = response.usage, agent.model
        return answer._replace(
            tokens_in=used.input_tokens,
            tokens_out=used.output_tokens,
            tokens_cached=used.input_tokens_details.cached_tokens,
            model=model if isinstance(model, str) else getattr(model, "model", None),
        )
    except Exception as error:  # the host goes on
        watch.failed(error)
        return None
