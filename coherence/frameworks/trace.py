"""Agents that no framework makes: functions whose calls are recorded, and blocks of code that are an agent's run."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast, get_args, overload
from uuid import uuid4

import msgspec

from coherence.core.config import Budget, MonitorConfig
from coherence.core.errors import CoherenceBlocked, CoherenceError
from coherence.core.plain import type_name
from coherence.core.validation import check_flag
from coherence.fleet.fleet import Fleet
from coherence.frameworks.agents import Agents
from coherence.integrations.conversation import Answer, Turn, plain
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch
from coherence.monitor.arguments import check_name
from coherence.monitor.monitor import Monitor
from coherence.providers.transcript import TranscriptCall

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])

Kind: TypeAlias = Literal["agent", "tool", "model"]
"""Purpose of a function: to be an agent, a tool of one, or its request to a model."""

MAX_OPEN = 1_000
"""Calls of answers whose tools have not run; the oldest are forgotten."""

_CHAT = ChatWire()
_LOG = logging.getLogger("coherence")


class _Run(NamedTuple):
    """The agent that works now."""

    agents: Agents
    name: str
    watch: Watch
    open: list[TranscriptCall]
    """Calls of the model's answers whose tools have not run yet."""


_RUN: ContextVar[_Run | None] = ContextVar("coherence_trace", default=None)


def current_monitor() -> Monitor | None:
    """Return the monitor of the agent whose :func:`trace` the caller runs in, ``None`` outside of all.

    Examples
    --------
    >>> current_monitor() is None
    True
    """
    run = _RUN.get()
    return None if run is None else run.watch.monitor


@overload
def trace(function: F, /) -> F: ...
@overload
def trace(
    *,
    kind: Kind = ...,
    agent: str | None = ...,
    tool: str | None = ...,
    goal: str | None = ...,
    store: str | Path | Store | None = ...,
    guide: bool = ...,
    budget: Budget | Mapping[str, Any] | None = ...,
    config: MonitorConfig | Mapping[str, Any] | str | Path | None = ...,
    monitor: Monitor | None = ...,
    fleet: Fleet | None = ...,
) -> Trace: ...
def trace(
    function: F | None = None,
    /,
    *,
    kind: Kind = "agent",
    agent: str | None = None,
    tool: str | None = None,
    goal: str | None = None,
    store: str | Path | Store | None = None,
    guide: bool = False,
    budget: Budget | Mapping[str, Any] | None = None,
    config: MonitorConfig | Mapping[str, Any] | str | Path | None = None,
    monitor: Monitor | None = None,
    fleet: Fleet | None = None,
) -> F | Trace:
    """Record the calls of a function, or a block of code as an agent's run.

    As a decorator it takes functions and coroutine functions; as a context manager, plain or ``async``, it gives the
    agent's :class:`~coherence.monitor.monitor.Monitor`.

    Parameters
    ----------
    function : callable, optional
        The function, where the decorator has no arguments.
    kind : {"agent", "tool", "model"}
        ``agent``: each call is a run. ``tool``: each call is checked before it runs, and recorded with its result, its
        duration and its error. ``model``: the first list of chat messages among the arguments, or else the first text,
        is recorded as the request; what is returned, a text or a chat completion, as the answer.
    agent : str, optional
        Name of the agent; default: that of the function, in a block ``"agent"``. An agent that is traced inside of
        another one is a part of the same fleet, and its pressure reaches the other one.
    tool : str, optional
        Name of the tool; default: that of the function.
    goal : str, optional
        Task of the agent; default: the first text among the function's arguments, else the first user message.
    store, guide, budget, config, monitor, fleet
        As for :class:`~coherence.frameworks.agents.Agents`, of the outermost agent; an inner one shares them.

    Returns
    -------
    callable or context manager
        The function, recorded; without one, what decorates a function or begins a block.

    Raises
    ------
    TypeError
        For what is no function that returns, such as a generator function.
    ValueError
        For arguments that exclude each other, and for an unknown kind.

    Notes
    -----
    A refused call and a used-up budget raise :class:`~coherence.core.errors.CoherenceBlocked` before a tool runs or a
    request is sent; an answer with a call that must not run raises it with the answer. Outside of an agent's trace,
    tools and models do just what they do. Threads that a function starts itself begin outside of all traces;
    ``contextvars.copy_context().run`` and ``asyncio.to_thread`` carry the trace along.

    Examples
    --------
    >>> @trace(kind="tool")
    ... def bash(command: str) -> str:
    ...     return "deleted"
    >>> with trace(agent="cleaner", goal="List the files.", config={"tick": "manual"}) as m:
    ...     try:
    ...         bash("rm -rf /")
    ...     except CoherenceBlocked as refused:
    ...         print(refused.tools)
    ('bash',)
    """
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, not {kind!r}")
    of_agents: dict[str, Any] = {"agent": agent, "goal": goal, "store": store, "budget": budget, "config": config}
    of_agents |= {"monitor": monitor, "fleet": fleet, "guide": True if check_flag("guide", guide) else None}
    given = {name: value for name, value in of_agents.items() if value is not None}
    if kind != "agent" and given:
        raise ValueError(f"{', '.join(given)} belong to the agent, not to its {kind}")
    if tool is not None and kind != "tool":
        raise ValueError(f"tool= names a tool, not {'an agent' if kind == 'agent' else 'a model'}: use kind='tool'")
    for argument, value in (("agent", agent), ("tool", tool)):
        if value is not None:
            check_name(argument, value)
    made = Trace(kind, tool, given)
    return made if function is None else made(function)


class Trace:
    """Decorator and context manager that :func:`trace` returns."""

    def __init__(self, kind: Kind, tool: str | None, given: Mapping[str, Any]) -> None:
        self._kind, self._tool, self._given = kind, tool, given
        self._block: _AgentRun | None = None

    def __call__(self, function: F) -> F:
        """Return the function with its calls recorded."""
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"trace decorates functions, not {type_name(function)}; for a block of code, use with")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__name__} is a generator function, and a trace needs one that returns: use "
                "`with coherence.trace(...)` around the loop that reads it"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **named: Any) -> Any:
                if (around := self._around(function, args, named)) is None:
                    return await function(*args, **named)
                await _apart(around, around.begin)
                try:
                    value = await function(*around.args, **around.named)
                except BaseException as error:
                    around.failed(error)
                    raise
                await _apart(around, around.end, value)
                return value

            return cast("F", awaited)

        @functools.wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            if (around := self._around(function, args, named)) is None:
                return function(*args, **named)
            around.begin()
            try:
                value = function(*around.args, **around.named)
            except BaseException as error:
                around.failed(error)
                raise
            around.end(value)
            return value

        return cast("F", called)

    def _around(self, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> _Around | None:
        """Return what happens before and after one call; ``None`` outside of all agents."""
        name = getattr(function, "__name__", "function")
        if self._kind == "agent":
            given = dict(self._given)
            if "monitor" not in given:
                given.setdefault("agent", name)
                if (text := _first_text(args, named)) is not None:
                    given.setdefault("goal", text)
            return _AgentRun(given, args, named)
        run = _RUN.get()
        if run is None:
            return None
        if self._kind == "model":
            return _ModelCall(run, args, named)
        return _ToolCall(run, self._tool or name, function, args, named)

    def __enter__(self) -> Monitor:
        if self._kind != "agent":
            raise TypeError(f"only an agent is traced by with; decorate the function that is the {self._kind}")
        if self._block is not None:
            raise RuntimeError("this trace is entered already; begin each block with a coherence.trace(...) of its own")
        self._block = _AgentRun(self._given, (), {})
        self._block.begin()
        return self._block.monitor

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.end(None)

    async def __aenter__(self) -> Monitor:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class _Around(Protocol):
    """Work before and after one call of a function."""

    WAITS: bool
    """True if it may wait for a measurement."""
    args: Any
    named: Any
    """Arguments that the function is called with, once it has begun."""

    def begin(self) -> None: ...

    def end(self, value: Any) -> None: ...

    def failed(self, error: BaseException) -> None: ...


async def _apart(around: _Around, do: Callable[..., None], *given: Any) -> None:
    """Do what may wait beside the event loop; what sets the agent that works now, in the caller's context."""
    if around.WAITS:
        await asyncio.to_thread(do, *given)
    else:
        do(*given)


class _AgentRun:
    """One run of an agent: the outermost makes the fleet and closes it."""

    WAITS = False

    def __init__(self, given: Mapping[str, Any], args: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.args, self.named = args, named
        self._given = given
        self._token: Token[_Run | None] | None = None
        self._owned: Agents | None = None

    @property
    def monitor(self) -> Monitor:
        """The agent's."""
        run = _RUN.get()
        assert run is not None
        return run.watch.monitor

    def begin(self) -> None:
        outer = _RUN.get()
        if outer is None:
            agents = self._owned = Agents(**self._given)
            watch = agents.watch()
        else:
            agents, name, goal = outer.agents, self._given.get("agent", "agent"), self._given.get("goal")
            watch = agents.watch(name)
            agents.handed_over(watch.monitor.agent, outer.name)
            if goal is not None and watch is not outer.watch:
                watch.monitor.goal(goal)
        self._token = _RUN.set(_Run(agents, watch.monitor.agent, watch, []))

    def end(self, value: Any) -> None:
        if self._token is not None:
            _RUN.reset(self._token)
        if self._owned is not None:
            try:
                self._owned.close()
            except CoherenceError as error:  # what the agent has returned must not be lost
                _LOG.error("the record of an agent could not be written to its end: %s", error)

    def failed(self, error: BaseException) -> None:
        if not isinstance(error, CoherenceBlocked):
            self.monitor.fault("agent", f"{type(error).__name__}: {error}")
        self.end(None)


class _ToolCall:
    """One call of a tool."""

    WAITS = True

    def __init__(
        self, run: _Run, tool: str, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        self.args, self.named = args, named
        self._run, self._tool = run, tool
        self._arguments = _arguments(function, args, named)
        self._call: str | None = None
        self._began = 0.0

    def begin(self) -> None:
        watch = self._run.watch
        self._call = self._told() or uuid4().hex
        if (refused := watch.judge(self._call, self._tool, self._arguments)) is not None:
            raise watch.blocked([refused], "The call did not run")
        self._began = time.monotonic()

    def _told(self) -> str | None:
        """Return the id of the call if the model's answer has told it; the newest of those that are alike."""
        mine = _encoded(self._arguments)
        for at in range(len(self._run.open) - 1, -1, -1):
            call = self._run.open[at]
            if call.name == self._tool and _encoded(call.arguments) == mine:
                del self._run.open[at]
                return call.id
        return None

    def end(self, value: Any) -> None:
        text = value if isinstance(value, str) else _encoded(value).decode("utf-8", "replace")
        self._run.watch.result(self._call, text, tool=self._tool, duration_s=time.monotonic() - self._began)

    def failed(self, error: BaseException) -> None:
        self._run.watch.result(
            self._call,
            str(error) or type(error).__name__,
            error=True,
            tool=self._tool,
            duration_s=time.monotonic() - self._began,
            error_type=type(error).__name__,
        )


class _ModelCall:
    """One request to a model."""

    WAITS = True

    def __init__(self, run: _Run, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.args: list[Any] = list(args)
        self.named: dict[str, Any] = dict(named)
        self._run = run
        self._turn = Turn("")
        self._began = 0.0

    def begin(self) -> None:
        watch, where = self._run.watch, self._request()
        given = None if where is None else where[0][where[1]]
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
        self._turn = watch.asked(_CHAT, {"messages": messages})
        hint = watch.ask()
        if hint and where is not None:
            arguments, key = where
            if isinstance(given, str):
                arguments[key] = f"{given}\n\n{hint}"
            else:
                arguments[key] = _CHAT.guided({"messages": messages}, hint)["messages"]
            watch.arrived(hint)
        self._began = time.monotonic()

    def _request(self) -> tuple[Any, Any] | None:
        """Return the arguments that hold the request, and its place among them."""
        places: list[tuple[Any, Any]] = [(self.args, at) for at in range(len(self.args))]
        places += [(self.named, name) for name in self.named]
        for found in (_is_messages, lambda value: isinstance(value, str)):
            for arguments, key in places:
                if found(arguments[key]):
                    return arguments, key
        return None

    def end(self, value: Any) -> None:
        seconds = time.monotonic() - self._began
        watch, told = self._run.watch, plain(value)
        is_completion = isinstance(told, Mapping) and "choices" in told
        answer = _CHAT.answer(told) if is_completion else Answer(value if isinstance(value, str) else str(value))
        watch.answered(answer._replace(duration_s=seconds), self._turn)
        judged = [watch.judge(call.id, call.name, call.arguments) for call in answer.calls]
        if refused := [each for each in judged if each is not None]:
            error = watch.blocked(refused)
            error.answer = value
            raise error
        self._run.open.extend(answer.calls)
        del self._run.open[:-MAX_OPEN]

    def failed(self, error: BaseException) -> None:
        self._run.watch.monitor.fault("model", f"{type(error).__name__}: {error}")


def _is_messages(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(plain(each), Mapping) for each in value)


def _first_text(args: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    return next((value for value in (*args, *named.values()) if isinstance(value, str) and value.strip()), None)


def _arguments(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, without those that were left out and the object of a method."""
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except (TypeError, ValueError):  # no signature is known, or the call does not fit it: the function itself says so
        return {**{f"argument_{at}": value for at, value in enumerate(args)}, **named}
    given = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(name, {})
    return {name: value for name, value in given.items() if name not in ("self", "cls")}


def _encoded(value: Any) -> bytes:
    """Return a value as JSON with its keys in order; what JSON cannot hold, as Python shows it."""
    try:
        return msgspec.json.encode(value, enc_hook=repr, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return repr(value).encode("utf-8", "replace")
