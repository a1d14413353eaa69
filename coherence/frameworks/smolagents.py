"""Agents of smolagents: their models, tools and interpreters are watched, and each managed agent under its name."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from smolagents import ChatMessage, MessageRole, MultiStepAgent
from smolagents.local_python_executor import CodeOutput
from smolagents.models import agglomerate_stream_deltas

from coherence.core.errors import CoherenceBlocked
from coherence.frameworks.agents import Watching
from coherence.integrations.conversation import Answer, Json, Said, Turn, text_key
from coherence.integrations.watch import Watch
from coherence.providers.transcript import TranscriptCall

_Agent = TypeVar("_Agent", bound=MultiStepAgent)

PYTHON = "python_interpreter"
"""Name under which the code of a CodeAgent is recorded: smolagents' own."""

FINAL = "final_answer"
"""Tool by which a ToolCallingAgent says its last words."""

_TASK = "New task:\n"
_CALLS = "Calling tools:\n"


class CoherenceInstrumentor(Watching):
    """Watch agents of smolagents.

    Parameters
    ----------
    agent : str
        Name of an agent that has none.
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

    def instrument(self, agent: _Agent) -> _Agent:
        """Watch an agent and those that it manages, from now on; the agent itself is changed and returned.

        Raises
        ------
        ValueError
            If it is watched already.
        """
        if isinstance(agent.model, _Model):
            raise ValueError(f"the agent {agent.name or 'without a name'} is watched already")
        watch = self.agents.watch(agent.name or self._agent)
        tags = getattr(agent, "code_block_tags", None) or ("", "")
        agent.model = _Model(agent.model, watch, tags[1])
        agent.run = _unwrapped(agent.run)
        if hasattr(agent, "execute_tool_call"):
            agent.execute_tool_call = _watched(agent.execute_tool_call, agent.model)
        if hasattr(agent, "python_executor"):
            agent.python_executor = _Executor(agent.python_executor, watch)
        for managed in agent.managed_agents.values():
            if not isinstance(managed.model, _Model):
                self.instrument(managed)
            self.agents.handed_over(managed.name, watch.monitor.agent)
        return agent


class _Wire:
    """Messages of smolagents, which tells calls and results as texts: what they are was recorded as they came."""

    END = re.compile(rb"(?!)")

    def items(self, body: Json) -> Sequence[Any]:
        messages = [each.dict() if isinstance(each, ChatMessage) else each for each in body["messages"]]
        return [{"role": MessageRole(each["role"]).value, "text": _text(each["content"])} for each in messages]

    def system(self, body: Json) -> str:
        return ""

    def follows(self, body: Json) -> str | None:
        return None

    def keys(self, item: Json) -> tuple[str, ...]:
        if item["role"] == "assistant":
            return (text_key(item["text"]),) if item["text"].strip() else ()
        return tuple(f"call {id}" for id in _ids(item["text"])) if item["role"] == "tool-call" else ()

    def read(self, item: Json) -> Iterator[Said]:
        if item["role"] in ("system", "user", "assistant"):
            yield Said(item["role"], item["text"].removeprefix(_TASK))

    def begins(self, item: Json) -> bool:
        return False

    def answer(self, value: Json, begun: str = "") -> Answer:
        message, raw = value["message"], value["message"].raw
        calls = tuple(_call(each) for each in message.tool_calls or ())
        last = [str(call.arguments.get("answer", "")) for call in calls if _is_last(call)]
        text = _text(message.content)
        usage = message.token_usage if value["has_usage"] else None
        details = getattr(getattr(raw, "usage", None), "prompt_tokens_details", None)
        said = [text_key(each) for each in (text, text + value["tag"]) if each.strip()]
        return Answer(
            "\n".join(each for each in (text, *last) if each),
            calls=tuple(call for call in calls if not _is_last(call)),
            keys=(*(f"call {call.id}" for call in calls), *said),
            tokens_in=getattr(usage, "input_tokens", None),
            tokens_out=getattr(usage, "output_tokens", None),
            tokens_cached=getattr(details, "cached_tokens", None),
            model=value["model"],
            id=getattr(raw, "id", None),
        )

    def assemble(self, events: Any) -> Json:
        return {"message": agglomerate_stream_deltas(list(events))}

    def guided(self, body: Json, text: str) -> dict[str, Any]:
        told = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": text}])
        return {**body, "messages": [*body["messages"], told]}


_WIRE = _Wire()


class _Model:
    """The model of one agent; all that is not a request is the model's own."""

    def __init__(self, model: Any, watch: Watch, tag: str) -> None:
        self._inner, self._watch, self._tag = model, watch, tag
        self._asked: list[TranscriptCall] = []
        """Calls of the newest answer that have not run."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generate(*args, **kwargs)

    def generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        turn, told = self._begin(messages)
        began = monotonic()
        try:
            message = self._inner.generate(told, *args, **kwargs)
        except Exception as error:
            self._watch.failed(error)
            raise
        self._end(message, turn, began, has_usage=message.token_usage is not None)
        return message

    @property
    def generate_stream(self) -> Any:
        """Method of models that can stream; it has no name for others, as agents ask for it."""
        return self._stream if hasattr(self._inner, "generate_stream") else self._inner.generate_stream

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        turn, told = self._begin(messages)
        began = monotonic()
        deltas: list[Any] = []
        finished = False
        try:
            for delta in self._inner.generate_stream(told, *args, **kwargs):
                deltas.append(delta)
                yield delta
            finished = True
        except Exception as error:
            self._watch.failed(error)
            raise
        finally:
            has_usage = any(delta.token_usage is not None for delta in deltas)
            self._end(agglomerate_stream_deltas(deltas), turn, began, has_usage=has_usage, finished=finished)

    def _begin(self, messages: Any) -> tuple[Turn, Any]:
        """Record a request; return it with what the agent is to be told."""
        body = {"messages": messages}
        turn = self._watch.asked(_WIRE, body)
        if not (text := self._watch.ask()):
            return turn, messages
        self._watch.arrived(text)
        return turn, _WIRE.guided(body, text)["messages"]

    def _end(self, message: Any, turn: Turn, began: float, *, has_usage: bool, finished: bool = True) -> None:
        try:
            name = getattr(message.raw, "model", None) or self._inner.model_id
            told = {"message": message, "has_usage": has_usage, "tag": self._tag, "model": name}
            answer = _WIRE.answer(told)._replace(duration_s=monotonic() - began)
            if finished:
                self._watch.answered(answer, turn)
                self._asked = list(answer.calls)
            else:
                self._watch.conversation.abandoned(answer)
        except Exception as error:  # the agent goes on
            self._watch.monitor.fault("wrap", error)

    def take(self, tool: str, arguments: Any) -> str:
        """Return the id of a call that runs now."""
        same = [call for call in self._asked if call.name == tool]
        found = next((call for call in same if call.arguments == arguments), same[0] if same else None)
        if found is None or found.id is None:
            return uuid4().hex
        self._asked = [call for call in self._asked if call is not found]
        return found.id


class _Executor:
    """The interpreter of a CodeAgent; all that is not code is the interpreter's own."""

    def __init__(self, executor: Any, watch: Watch) -> None:
        self._inner, self._watch = executor, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __call__(self, code: str) -> Any:
        id = uuid4().hex
        if reason := self._watch.refusal(id, PYTHON, {"code": code}):
            return CodeOutput(output=reason, logs="", is_final_answer=False)
        began = monotonic()
        try:
            output = self._inner(code)
        except Exception as error:
            what = type(error).__name__
            self._watch.result(id, str(error), error=True, duration_s=monotonic() - began, error_type=what)
            raise
        told = "\n".join(str(each).strip() for each in (output.logs, output.output) if each not in (None, ""))
        self._watch.result(id, told, error=False, duration_s=monotonic() - began)
        return output


def _watched(execute: Any, model: _Model) -> Any:
    """Return a method that runs a call of a tool or a managed agent, unless it is refused."""
    watch = model._watch

    def execute_tool_call(tool_name: str, arguments: Any) -> Any:
        if tool_name == FINAL:
            return execute(tool_name, arguments)
        id = model.take(tool_name, arguments)
        if reason := watch.refusal(id, tool_name, arguments):
            return reason
        began = monotonic()
        try:
            result = execute(tool_name, arguments)
        except Exception as error:
            what = type(error.__cause__ or error).__name__
            watch.result(id, str(error), error=True, duration_s=monotonic() - began, error_type=what)
            raise
        watch.result(id, str(result).strip(), duration_s=monotonic() - began)
        return result

    return execute_tool_call


def _unwrapped(run: Any) -> Any:
    """Return a method whose caller gets CoherenceBlocked itself, and not an error of the framework around it."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            result = run(*args, **kwargs)
        except Exception as error:
            if isinstance(error.__cause__, CoherenceBlocked):
                raise error.__cause__ from None
            raise
        return _each(result) if isinstance(result, Iterator) else result

    return watched


def _each(steps: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from steps
    except Exception as error:
        if isinstance(error.__cause__, CoherenceBlocked):
            raise error.__cause__ from None
        raise


def _is_last(call: TranscriptCall) -> bool:
    return call.name == FINAL and isinstance(call.arguments, Mapping)


def _call(call: Any) -> TranscriptCall:
    arguments = call.function.arguments
    if isinstance(arguments, str):
        with suppress(ValueError):  # the tool will say so
            arguments = json.loads(arguments)
    return TranscriptCall(call.function.name or "unknown", arguments, call.id or uuid4().hex)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content or () if isinstance(part, Mapping)]
    return "\n".join(str(part["text"]) if "text" in part else f"[{part.get('type', 'image')}]" for part in parts)


def _ids(text: str) -> list[str]:
    """Return the ids of calls in the text by which smolagents repeats them."""
    try:
        return [str(call["id"]) for call in ast.literal_eval(text.removeprefix(_CALLS))]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):  # arguments that are objects
        return re.findall(r"\{'id': '([^']+)', 'type'", text)
