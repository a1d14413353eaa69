"""LangGraph: nodes of a graph whose requests to models are recorded, and a node that runs tools."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tracers.context import register_configure_hook
from langgraph.config import get_config
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from pydantic import BaseModel

from coherence.frameworks.agents import Agents, Watching
from coherence.frameworks.langchain_messages import WIRE, arun_tool, plain_answer, plain_request, run_tool
from coherence.integrations.conversation import Answer, Turn

MAX_OPEN = 1_000
"""Requests of an agent whose answer has not come; the oldest are forgotten."""

_HINT = "coherence-hint-"

_RECORDER: ContextVar[_Recorder | None] = ContextVar("coherence_recorder", default=None)
"""Recorder of the agent whose node runs; LangChain adds it to the callbacks of all that runs inside."""

register_configure_hook(_RECORDER, inheritable=True)


class CoherenceGraph(Watching):
    """Record what the agents of a graph are told, say, call and get back; refuse calls; stop at a budget.

    Parameters
    ----------
    agents : Agents, optional
        Agents of yours, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``agent``, ``goal``, ``store``, ``guide``,
        ``budget``, ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    An agent that is given words of another one, in its messages or as the result of a tool, is joined with it: the
    pressure of that one reaches it. A request beyond the budget raises
    :class:`~coherence.core.errors.CoherenceBlocked` out of the graph.
    """

    def __init__(self, *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__(options.pop("agent", "agent"), agents=agents, **options)
        self._recorders: dict[str, _Recorder] = {}

    def watched(self, node: Any, *, agent: str | None = None) -> Any:
        """Return a node whose requests to chat models are recorded as those of an agent.

        Parameters
        ----------
        node : callable or Runnable
            A node as ``StateGraph.add_node`` takes it; it is not changed.
        agent : str, optional
            Name of the agent; default: that of the node in the graph. Several nodes may be one agent.

        Returns
        -------
        callable or Runnable
            The same kind of node, with the same signature.

        Raises
        ------
        TypeError
            For what is no node.

        Notes
        -----
        With ``guide=True``, a hint stands as one more message at the end of ``messages`` in a copy of the node's state.
        It is taken out of what the node returns.
        """
        if inspect.isgeneratorfunction(node) or inspect.isasyncgenfunction(node):
            node = RunnableLambda(node)
        if isinstance(node, Runnable):
            return self._runnable(node, agent)
        if not callable(node):
            raise TypeError(f"node must be a function or a Runnable, as add_node takes it, not {type(node).__name__}")
        signed = node if inspect.isroutine(node) or isinstance(node, functools.partial) else node.__call__
        if inspect.iscoroutinefunction(node) or inspect.iscoroutinefunction(signed):

            @functools.wraps(signed)
            async def aworks(state: Any, *args: Any, **named: Any) -> Any:
                with self._at_work(agent) as name:
                    return _unhinted(await node(_hinted(state, await self._ahint(name)), *args, **named))

            return aworks

        @functools.wraps(signed)
        def works(state: Any, *args: Any, **named: Any) -> Any:
            with self._at_work(agent) as name:
                return _unhinted(node(_hinted(state, self._hint(name)), *args, **named))

        return works

    def tool_node(self, tools: Sequence[Any], **options: Any) -> ToolNode:
        """Return a node that runs the calls of the agents: records results, refuses what must not run.

        A call counts for the agent whose answer has it. The agent is given the reason of a refusal as the result.

        Parameters
        ----------
        tools : sequence
            Tools, as ``ToolNode`` takes them.
        **options
            Other arguments of ``ToolNode``. A ``wrap_tool_call`` of yours runs for calls that are not refused.
        """
        inner, ainner = options.pop("wrap_tool_call", None), options.pop("awrap_tool_call", None)

        def wrap(asked: Any, execute: Callable[[Any], Any]) -> Any:
            handler = execute if inner is None else lambda given: inner(given, execute)
            return run_tool(self.agents, self._caller(asked), asked, handler)

        async def awrap(asked: Any, execute: Callable[[Any], Any]) -> Any:
            handler = execute if ainner is None else lambda given: ainner(given, execute)
            return await arun_tool(self.agents, self._caller(asked), asked, handler)

        # ToolNode runs a wrapper without an asynchronous twin in event loops, too
        only_sync = inner is not None and ainner is None
        return ToolNode(tools, wrap_tool_call=wrap, awrap_tool_call=None if only_sync else awrap, **options)

    def _runnable(self, node: Runnable[Any, Any], agent: str | None) -> Runnable[Any, Any]:
        def works(state: Any, config: RunnableConfig) -> Any:
            with self._at_work(agent) as name:
                return _unhinted(node.invoke(_hinted(state, self._hint(name)), config))

        async def aworks(state: Any, config: RunnableConfig) -> Any:
            with self._at_work(agent) as name:
                return _unhinted(await node.ainvoke(_hinted(state, await self._ahint(name)), config))

        return RunnableLambda(works, aworks, name=node.get_name())

    @contextmanager
    def _at_work(self, agent: str | None) -> Iterator[str]:
        """Record what runs inside as an agent's."""
        name = self.agents.watch(agent or _node()).monitor.agent
        self.agents.began(name)
        token = _RECORDER.set(self._recorders.setdefault(name, _Recorder(self.agents, name)))
        try:
            with self.agents.at_work(name):
                yield name
        finally:
            _RECORDER.reset(token)

    def _hint(self, name: str) -> str:
        watch = self.agents.watch(name)
        return watch.ask() if watch.guides else ""

    async def _ahint(self, name: str) -> str:
        watch = self.agents.watch(name)
        return await watch.aask() if watch.guides else ""

    def _caller(self, asked: Any) -> str:
        """Return the agent whose answer has a call."""
        found = self.agents.writers([f"call {asked.tool_call['id']}"])
        return found[-1] if found else self.agents.watch().monitor.agent


class _Open(NamedTuple):
    """A request whose answer has not come."""

    turn: Turn
    began: float
    model: str | None
    hints: list[str]


class _Recorder(BaseCallbackHandler):
    """Callbacks of the requests to models that one agent's nodes make."""

    raise_error = True  # the budget's

    def __init__(self, agents: Agents, name: str) -> None:
        self._agents, self._name = agents, name
        self._watch = agents.watch(name)
        self._open: dict[UUID, _Open] = {}

    @property
    def ignore_chain(self) -> bool:
        """Leave chains alone: in an event loop, each callback costs a turn of a thread."""
        return True

    @property
    def on_llm_new_token(self) -> Any:
        """Callback that does nothing for a token; in an event loop a coroutine, as LangChain runs others in threads."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _nothing
        return _anothing

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, metadata: Any = None, **named: Any
    ) -> None:
        if _RECORDER.get() not in (None, self):  # inside, another agent's node runs
            return
        asked = [message for each in messages for message in each]
        hints = [str(message.text) for message in asked if _is_hint(message)]
        told = plain_request(self._agents, self._watch, [message for message in asked if not _is_hint(message)])
        turn = self._watch.asked(WIRE, told)
        self._watch.ask()
        self._open[run_id] = _Open(turn, time.monotonic(), (metadata or {}).get("ls_model_name"), hints)
        if len(self._open) > MAX_OPEN:
            self._open.pop(next(iter(self._open)), None)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **named: Any) -> None:
        if (asked := self._open.pop(run_id, None)) is None:
            return
        seconds = time.monotonic() - asked.began
        try:
            said: Any = response.generations[0][0]
            found = plain_answer(self._agents, self._watch, said.message, seconds, asked.model)
        except Exception as error:  # the host goes on
            self._watch.failed(error)
            return
        for hint in asked.hints:
            self._watch.arrived(hint)
        self._watch.answered(found, asked.turn)

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, response: LLMResult | None = None, **named: Any
    ) -> None:
        if (asked := self._open.pop(run_id, None)) is None:
            return
        if not isinstance(error, GeneratorExit | asyncio.CancelledError):
            self._watch.failed(error)
            return
        try:
            parts = [part for each in response.generations for part in each] if response is not None else []
            said: Any = functools.reduce(lambda whole, part: whole + part.text, parts, "")
            self._watch.conversation.abandoned(Answer(said, model=asked.model))
        except Exception as fault:
            self._watch.failed(fault)


def _nothing(*args: Any, **named: Any) -> None:
    """Do nothing."""


async def _anothing(*args: Any, **named: Any) -> None:
    """Do nothing."""


def _node() -> str | None:
    """Return the name of the node that runs."""
    try:
        return (get_config().get("metadata") or {}).get("langgraph_node")
    except RuntimeError:  # outside of a graph
        return None


def _is_hint(message: Any) -> bool:
    return isinstance(message, BaseMessage) and (message.id or "").startswith(_HINT)


def _hinted(state: Any, hint: str) -> Any:
    """Return a copy of a state that has a hint behind its messages."""
    if not hint:
        return state
    held = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    if not isinstance(held, list):
        return state
    # a message of the user: providers take system messages only at the beginning
    messages = [*held, HumanMessage(hint, id=f"{_HINT}{uuid4()}")]
    if isinstance(state, Mapping):
        return {**state, "messages": messages}
    if isinstance(state, BaseModel):
        return state.model_copy(update={"messages": messages})
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        return dataclasses.replace(state, messages=messages)
    return state


def _unhinted(value: Any) -> Any:
    """Return what a node has given, without a hint."""
    if isinstance(value, Command):
        update = _unhinted(value.update)
        return value if update is value.update else dataclasses.replace(value, update=update)
    if isinstance(value, Mapping) and any(map(_is_hint, held := value.get("messages") or ())):
        return {**value, "messages": [message for message in held if not _is_hint(message)]}
    return value
