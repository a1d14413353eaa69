"""Agents of CrewAI: its hooks and the requests to their models tell a crew's life, and decisions answer."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from crewai.events import LLMCallCompletedEvent, crewai_event_bus
from crewai.hooks import HookAborted, InterceptionPoint, LLMCallHookContext, ToolCallHookContext
from crewai.hooks.dispatch import get_scoped_hooks, scoped_hooks
from crewai.tools.tool_failure import detect_tool_failure
from crewai.types.usage_metrics import UsageMetrics
from crewai.utilities.agent_utils import extract_tool_call_info

from coherence.core.errors import CoherenceBlocked, CoherenceError
from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.conversation import Turn
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch

MAX_OPEN = 1_000
"""Calls of answers whose tools have not run, and tasks that have begun; the oldest are forgotten."""

WAIT_S = 1.0
"""Longest wait for the tokens of an answer, which CrewAI tells from a thread of its own."""

_CHAT = ChatWire()
_OBSERVED = "\nObservation:"
_FAILED = "Error executing tool:"
_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")
_LOG = logging.getLogger("coherence")

_ACTIVE: ContextVar[CoherenceCrew | None] = ContextVar("coherence_crew", default=None)
_SPENT: ContextVar[_Spent | None] = ContextVar("coherence_crew_spent", default=None)


class _Stopped(CoherenceBlocked, HookAborted):
    """A used-up budget, raised as what CrewAI neither retries nor hands to an agent."""

    def __init__(self, blocked: CoherenceBlocked) -> None:
        CoherenceBlocked.__init__(self, str(blocked), blocked.decision, blocked.tools)
        self.reason, self.source = str(blocked), "coherence"


class CoherenceCrew(Watching):
    """Watch the agents of all crews, flows and agents that are started inside of its block, each under its role.

    Parameters
    ----------
    agent : str
        Name of an agent whose role is empty.
    agents : Agents, optional
        Agents of yours, in place of ``options``. The block does not close them.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    Inside of the block, ``call`` and ``acall`` of a model object that an agent uses are replaced on that object; they
    are put back at its end. Other threads and tasks that were not started inside of the block are not watched, even if
    they share the model.
    """

    def __init__(self, agent: str = "agent", *, agents: Agents | None = None, **options: Any) -> None:
        self._owns = agents is None
        super().__init__(agent, agents=agents, **options)
        self._lock = threading.Lock()
        self._open: dict[str, _OpenCall] = {}
        self._tools: dict[int, _Tool] = {}
        self._begun: dict[tuple[str, str], None] = {}
        self._scope: AbstractContextManager[Any] | None = None
        self._outer: CoherenceCrew | None = None

    def __enter__(self) -> Self:
        if self._scope is not None:
            raise RuntimeError("this CoherenceCrew is entered already; begin each block with one of its own")
        hooks = {point: list(get_scoped_hooks(point)) for point in InterceptionPoint}
        hooks[InterceptionPoint.PRE_MODEL_CALL].append(self._before_model)
        hooks[InterceptionPoint.PRE_TOOL_CALL].append(self._before_tool)
        hooks[InterceptionPoint.POST_TOOL_CALL].append(self._after_tool)
        self._scope = scoped_hooks(hooks)
        self._scope.__enter__()
        self._outer = _ACTIVE.get()
        _ACTIVE.set(self)
        crewai_event_bus.on(LLMCallCompletedEvent)(self._completed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        scope, self._scope = self._scope, None
        crewai_event_bus.off(LLMCallCompletedEvent, self._completed)
        _give_back(self)
        _ACTIVE.set(self._outer)
        if scope is not None:
            try:
                scope.__exit__(kind, error, trace)
            except ValueError:  # entered in another context, whose hooks end with it
                _LOG.debug("a block was left in another context than it was entered in")
        if self._owns:
            self.agents.close()
        else:
            self.agents.flush()

    @property
    def is_open(self) -> bool:
        """True inside of the block."""
        return self._scope is not None

    def _before_model(self, context: LLMCallHookContext) -> None:
        if self.is_open and hasattr(context.llm, "call"):
            _take(context.llm, self)

    def _before_tool(self, context: ToolCallHookContext) -> bool | None:
        """Refuse a call that must not run."""
        if not self.is_open or (found := self._watched(context.agent)) is None:
            return None
        name, watch = found
        call = self._call(name, context.tool_name, context.tool_input)
        refusal = watch.refusal(call, context.tool_name, dict(context.tool_input))
        work = None if refusal else self.agents.at_work(name)
        tool = _Tool(context.tool_input, call, watch, refusal, time.perf_counter(), work)
        with self._lock:
            _keep(self._tools, id(context.tool_input), tool)
        if work is None:
            return False
        work.__enter__()
        return None

    def _after_tool(self, context: ToolCallHookContext) -> str | None:
        """Record a result; a refused call's is the reason."""
        with self._lock:
            tool = self._tools.pop(id(context.tool_input), None)
        if tool is None:
            return None
        if tool.work is None:
            return tool.refusal
        text, raw = context.tool_result or "", context.raw_tool_result
        failed = text.startswith(_FAILED) or detect_tool_failure(raw) is not None
        took = time.perf_counter() - tool.began
        tool.watch.result(tool.call, text, error=failed or None, tool=context.tool_name, duration_s=took)
        with suppress(ValueError):  # a tool that went on in another context leaves nothing in this one
            tool.work.__exit__(None, None, None)
        return None

    def _completed(self, source: Any, event: LLMCallCompletedEvent) -> None:
        if (spent := _SPENT.get()) is not None:
            spent.told(event)

    def _watched(self, agent: Any) -> tuple[str, Watch] | None:
        """Return an agent's name and its watch."""
        try:
            watch = self.agents.watch(str(getattr(agent, "role", None) or "").strip())
            return watch.monitor.agent, watch
        except (CoherenceError, ValueError, TypeError) as error:  # the crew goes on
            _LOG.error("an agent of a crew cannot be watched: %s", error)
            return None

    def _expect(self, name: str, call: str, tool: str, arguments: Any) -> None:
        """Know that the tool of a recorded call runs next."""
        with self._lock:
            _keep(self._open, call, _OpenCall(name, tool, arguments))

    def _call(self, name: str, tool: str, arguments: Any) -> str | None:
        """Return the id of the oldest call of an agent's answers that these arguments belong to."""
        with self._lock:
            wanted = _OpenCall(name, tool, arguments)
            found = next((call for call, known in self._open.items() if known == wanted), None)
            if found is not None:
                del self._open[found]
            return found

    def _join(self, watch: Watch, name: str, agent: Any, task: Any) -> None:
        """Let the pressure of those reach an agent whose work it goes on with; once for each task."""
        try:
            self.agents.began(name)
            key = (name, str(getattr(task, "id", "")))
            with self._lock:
                if task is None or key in self._begun:
                    return
                _keep(self._begun, key, None)
            for before in _tasks_before(agent, task):
                role = getattr(getattr(before, "output", None), "agent", None)
                if isinstance(role, str) and role.strip():
                    self.agents.handed_over(role.strip(), name)
        except Exception as error:
            watch.failed(error)


class _OpenCall(NamedTuple):
    """A call that an answer has told."""

    agent: str
    tool: str
    arguments: Any


class _Tool(NamedTuple):
    """A tool that runs."""

    input: Any
    """The dict that both hooks of a call are given; kept, so that no other one gets its id."""
    call: str | None
    watch: Watch
    refusal: str
    began: float
    work: AbstractContextManager[None] | None
    """Has agents that begin in the tool work for the one that called it; ``None`` for a refused call."""


class _Spent:
    """The tokens of one request."""

    def __init__(self) -> None:
        self.usage: UsageMetrics | None = None
        self.response: str | None = None
        self._came = threading.Event()

    def told(self, event: LLMCallCompletedEvent) -> None:
        self.usage = UsageMetrics.from_provider_dict(event.usage)
        self.response = event.response_id
        self._came.set()

    def counted(self, by_model: UsageMetrics | None) -> UsageMetrics | None:
        """Return what the event has told; what the model has counted in the meantime, if no event comes."""
        if by_model is not None and by_model.successful_requests:
            self._came.wait(WAIT_S)
        return self.usage or by_model


class _Request:
    """One request to an agent's model."""

    def __init__(self, crew: CoherenceCrew, model: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.args, self.named = args, dict(named)
        self.spent = _Spent()
        self._crew, self._model = crew, model
        self._agent = named.get("from_agent") or _last_agent(model)
        self._name = ""
        self._watch: Watch | None = None
        if self._agent is not None and (found := crew._watched(self._agent)) is not None:
            self._name, self._watch = found
        self._turn = Turn("")
        self._hint = ""
        self._began = 0.0
        self._before = _counted(model)

    def begin(self) -> None:
        """Record the request, and add to a copy of it what the agent is to be told."""
        watch = self._watch
        if watch is None:
            return
        messages, hint = self.args[0] if self.args else self.named.get("messages"), ""
        _asks(self._model, self._agent)
        self._crew._join(watch, self._name, self._agent, self.named.get("from_task"))
        try:
            self._turn = watch.asked(_CHAT, {"messages": _read(messages)})
            hint = watch.ask()
        except CoherenceBlocked as blocked:
            raise _Stopped(blocked) from None
        except Exception as error:  # the crew goes on
            watch.failed(error)
        if hint and isinstance(messages, str | list):
            told = {"role": "user", "content": hint}
            copy = f"{messages}\n\n{hint}" if isinstance(messages, str) else [*messages, told]
            if self.args:
                self.args = (copy, *self.args[1:])
            else:
                self.named["messages"] = copy
            self._hint = hint
        self._began = time.perf_counter()

    def end(self, value: Any) -> None:
        """Record the answer."""
        watch, took = self._watch, time.perf_counter() - self._began
        if watch is None:
            return
        watch.arrived(self._hint)
        try:
            calls = [_call_of(each) for each in value] if isinstance(value, list) else []
            for call in calls:
                if call is not None:
                    self._crew._expect(self._name, *call)
            answer = _CHAT.answer(self._completion(value, [call for call in calls if call]))
            watch.answered(answer._replace(duration_s=took), self._turn)
        except Exception as error:
            watch.failed(error)

    def _completion(self, value: Any, calls: list[tuple[str, str, Any]]) -> dict[str, Any]:
        """Return the answer as a chat completion."""
        text = "" if isinstance(value, list) else _text(value)
        told = [
            {"id": id, "function": {"name": name, "arguments": msgspec.json.encode(given, enc_hook=repr).decode()}}
            for id, name, given in calls
        ]
        message = {"content": _without_observation(text), "tool_calls": told}
        answer: dict[str, Any] = {"choices": [{"message": message, "finish_reason": "stop"}]}
        now = _counted(self._model)
        by_model = None if now is None or self._before is None else now.delta_since(self._before)
        if (usage := self.spent.counted(by_model)) is not None and usage.total_tokens:
            answer["usage"] = {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_prompt_tokens},
            }
        return {**answer, "model": getattr(self._model, "model", None), "id": self.spent.response}

    def failed(self, error: BaseException) -> None:
        """Record that no answer came."""
        if self._watch is not None and not isinstance(error, HookAborted):
            self._watch.failed(error)


class _Known:
    """A model object whose requests are watched."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.crews: set[CoherenceCrew] = set()
        self.agent: Any = None
        """The agent that asked it last: some requests for an agent do not name it."""


_KNOWN: dict[int, _Known] = {}
_KNOWN_LOCK = threading.Lock()


def _take(model: Any, crew: CoherenceCrew) -> None:
    """Watch the requests to a model for a block."""
    with _KNOWN_LOCK:
        known = _KNOWN.setdefault(id(model), _Known(model))
        known.crews.add(crew)
        for name in ("call", "acall"):
            own = vars(model).get(name)
            # A copy of a model carries along what was put on the original, and would ask that one.
            if getattr(own, "watches", None) is not model:
                put = None if own is None or hasattr(own, "watches") else own
                inner = put if put is not None else getattr(type(model), name).__get__(model)
                object.__setattr__(model, name, _watching(model, name, inner, put))


def _give_back(crew: CoherenceCrew) -> None:
    """Put back what was replaced on the models of a block that ends, unless another block watches them."""
    with _KNOWN_LOCK:
        for key, known in list(_KNOWN.items()):
            known.crews.discard(crew)
            if known.crews:
                continue
            del _KNOWN[key]
            for name in ("call", "acall"):
                own = vars(known.model).get(name)
                if getattr(own, "watches", None) is known.model:
                    if own.put is None:
                        object.__delattr__(known.model, name)
                    else:
                        object.__setattr__(known.model, name, own.put)


def _watching(model: Any, name: str, inner: Callable[..., Any], put: Any) -> Any:
    """Return what stands in place of a model's ``call`` or ``acall``."""
    watching: Any

    if name == "acall":

        @functools.wraps(inner)
        async def acall(*args: Any, **named: Any) -> Any:
            if (crew := _ACTIVE.get()) is None or id(model) not in _KNOWN:
                return await inner(*args, **named)
            request = _Request(crew, model, args, named)
            await asyncio.to_thread(request.begin)
            token = _SPENT.set(request.spent)
            try:
                value = await inner(*request.args, **request.named)
            except BaseException as error:
                request.failed(error)
                raise
            finally:
                _SPENT.reset(token)
            await asyncio.to_thread(request.end, value)
            return value

        watching = acall
    else:

        @functools.wraps(inner)
        def call(*args: Any, **named: Any) -> Any:
            if (crew := _ACTIVE.get()) is None or id(model) not in _KNOWN:
                return inner(*args, **named)
            request = _Request(crew, model, args, named)
            request.begin()
            token = _SPENT.set(request.spent)
            try:
                value = inner(*request.args, **request.named)
            except BaseException as error:
                request.failed(error)
                raise
            finally:
                _SPENT.reset(token)
            request.end(value)
            return value

        watching = call
    watching.watches, watching.put = model, put
    return watching


def _asks(model: Any, agent: Any) -> None:
    if (known := _KNOWN.get(id(model))) is not None:
        known.agent = agent


def _last_agent(model: Any) -> Any:
    known = _KNOWN.get(id(model))
    return None if known is None else known.agent


def _counted(model: Any) -> UsageMetrics | None:
    """Return the tokens that a model has counted since it was made."""
    try:
        return model.get_token_usage_summary()
    except Exception:  # a model of the user's that counts nothing
        return None


def _read(messages: Any) -> list[dict[str, Any]]:
    """Return the messages of a request as those of chat completions."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    read = []
    for message in messages or ():
        told = {field: message[field] for field in _FIELDS if message.get(field) is not None}
        if told.get("role") == "assistant" and isinstance(told.get("content"), str):
            told["content"] = _without_observation(told["content"])
        read.append(told)
    return read


def _without_observation(text: str) -> str:
    """Return an answer in text form without the result that CrewAI appends to it: the tool's hook has told that."""
    return text.partition(_OBSERVED)[0]


def _call_of(call: Any) -> tuple[str, str, Any] | None:
    """Return the id, the tool and the arguments of a call in a provider's form."""
    info = extract_tool_call_info(call)
    if info is None:
        return None
    id, name, given = info
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given or "{}")
        except msgspec.DecodeError:  # CrewAI tells the agent so
            given = {"arguments": given}
    return str(id), name, given


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    dump = getattr(value, "model_dump_json", None)
    return dump() if callable(dump) else str(value)


def _tasks_before(agent: Any, task: Any) -> list[Any]:
    """Return the tasks whose outputs a task is given: those of its context, or all before it."""
    if isinstance(context := getattr(task, "context", None), list):
        return context
    tasks = list(getattr(getattr(agent, "crew", None), "tasks", None) or ())
    at = next((at for at, each in enumerate(tasks) if each is task), 0)
    return tasks[:at] if context is not None else []


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    while len(kept) > MAX_OPEN:
        del kept[next(iter(kept))]
