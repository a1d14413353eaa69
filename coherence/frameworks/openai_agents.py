"""OpenAI Agents SDK: hooks, an input filter and guarded tools for a run."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    RunConfig,
    RunHooks,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.items import ModelResponse
from agents.run import CallModelData, ModelInputData
from agents.run_config import ToolErrorFormatterArgs

from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.conversation import Answer, Turn, plain
from coherence.integrations.openai_wire import ResponsesWire
from coherence.integrations.watch import Watch
from coherence.providers.readers.openai_responses import output_text

_RESPONSES = ResponsesWire()


class _Request(NamedTuple):
    """A request under way."""

    turn: Turn
    hint: str
    began: float


class _Running(NamedTuple):
    """A call whose tool runs."""

    began: float
    failure: str | None = None
    """Kind of its error."""


MAX_RUNNING = 1_000
"""Running calls that are remembered; the oldest are those of runs that have failed."""

_REQUEST: ContextVar[_Request | None] = ContextVar("coherence_openai_agents", default=None)


class Coherence(Watching):
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
        super().__init__(agents=agents, **options)
        self._hooks = _Hooks(self.agents)
        self.hooks: RunHooks[Any] = self._hooks
        """Hooks for ``Runner.run`` and for ``Agent.as_tool``."""
        self.guardrail: ToolInputGuardrail[Any] = ToolInputGuardrail(guardrail_function=self._judge, name="coherence")
        """Checks the calls of a tool; for MCP servers, ``MCPServerStdio(..., tool_input_guardrails=[...])``."""

    def hooks_with(self, hooks: RunHooks[Any]) -> RunHooks[Any]:
        """Return hooks that call these ones and then yours, since a run takes one object."""
        return _Both(self._hooks, hooks)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a copy of a configuration whose requests and errors of tools are recorded.

        Your own input filter comes first, and your own formatter of errors decides what the agent is told.
        """
        given = RunConfig() if config is None else config
        return replace(
            given,
            call_model_input_filter=self._filter(given.call_model_input_filter),
            tool_error_formatter=self._formatter(given.tool_error_formatter),
        )

    def guarded(self, agent: Agent[Any]) -> Agent[Any]:
        """Return a copy of an agent, and of those that it hands over to, whose function tools are checked first.

        MCP servers, which have their own connections, are no copies: give them :attr:`guardrail`. The provider's own
        tools run where nobody can refuse them.
        """
        return self._guarded(agent, {})

    def _guarded(self, agent: Agent[Any], known: dict[int, Agent[Any]]) -> Agent[Any]:
        if id(agent) in known:
            return known[id(agent)]
        made = known[id(agent)] = agent.clone(tools=[self._guarded_tool(tool) for tool in agent.tools])
        made.handoffs = [
            self._guarded(each, known) if isinstance(each, Agent) else self._guarded_handoff(each)
            for each in agent.handoffs
        ]
        return made

    def _guarded_tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool
        made = copy.copy(tool)
        made.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), self.guardrail]
        return made

    def _guarded_handoff(self, given: Handoff[Any, Any]) -> Handoff[Any, Any]:
        made, invoke = copy.copy(given), given.on_invoke_handoff

        async def invoked(context: Any, arguments: str) -> Any:
            agent = await invoke(context, arguments)
            return self.guarded(agent) if isinstance(agent, Agent) else agent

        made.on_invoke_handoff = invoked
        return made

    async def _judge(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Let a call pass, or give its agent the reason of the refusal."""
        call, name = data.context, data.agent.name
        why = await self.agents.watch(name).arefusal(call.tool_call_id, call.tool_name, call.tool_arguments)
        if why:
            return ToolGuardrailFunctionOutput.reject_content(why)
        self.agents.works(name)  # the task of the call is this one
        return ToolGuardrailFunctionOutput.allow()

    def _formatter(self, mine: Callable[[ToolErrorFormatterArgs[Any]], Any] | None) -> Any:
        def formatted(told: ToolErrorFormatterArgs[Any]) -> Any:
            if (error := getattr(told, "error", None)) is not None:  # older SDKs tell none
                self._hooks.failed(told.call_id, type(error).__name__)
            return None if mine is None else mine(told)

        return formatted

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


class _Both(RunHooks[Any]):
    """Two hooks as one."""

    def __init__(self, first: RunHooks[Any], then: RunHooks[Any]) -> None:
        self._both = first, then

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("on_"):
            return super().__getattribute__(name)

        async def called(*given: Any, **named: Any) -> None:
            for hooks in self._both:
                await getattr(hooks, name)(*given, **named)

        return called


class _Hooks(RunHooks[Any]):
    """Record answers and results, and which agent works for which."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._running: dict[str, _Running] = {}

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

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        if isinstance(call := getattr(context, "tool_call_id", None), str):  # the provider's own tools have none
            self._agents.watch(agent.name).runs(call, context.tool_name, context.tool_arguments)
            self._running[call] = _Running(time.monotonic())
            if len(self._running) > MAX_RUNNING:
                del self._running[next(iter(self._running))]

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        running = self._running.pop(getattr(context, "tool_call_id", ""), None)
        if running is None:
            return
        seconds, watch = time.monotonic() - running.began, self._agents.watch(agent.name)
        limit = getattr(tool, "timeout_seconds", None)
        failure = running.failure or ("timeout" if limit is not None and seconds >= limit else None)
        watch.result(
            context.tool_call_id,
            _text(watch, result),
            error=True if failure else None,
            duration_s=seconds,
            error_type=failure,
        )

    def failed(self, call: str, kind: str) -> None:
        """Remember that a call has raised an error, whose text the agent is not told."""
        if (running := self._running.get(call)) is not None:
            self._running[call] = running._replace(failure=kind)


def _text(watch: Watch, result: Any) -> str:
    """Return a result as text; of an image or a file, only its kind."""
    try:
        told = plain(result)
        if isinstance(told, Mapping) and isinstance(told.get("type"), str):
            told = [told]
        return output_text(told) if isinstance(told, list) else str(result)
    except Exception as error:  # the host goes on
        watch.failed(error)
        return ""


def _answer(watch: Watch, agent: Any, response: ModelResponse) -> Answer | None:
    try:
        answer = _RESPONSES.answer({"output": plain(response.output), "id": response.response_id})
        used, model = response.usage, agent.model
        answer = answer._replace(model=model if isinstance(model, str) else getattr(model, "model", None))
        if not used.total_tokens:  # the SDK puts zeros where the provider tells nothing
            return answer
        return answer._replace(
            tokens_in=used.input_tokens,
            tokens_out=used.output_tokens,
            tokens_cached=used.input_tokens_details.cached_tokens,
        )
    except Exception as error:  # the host goes on
        watch.failed(error)
        return None
