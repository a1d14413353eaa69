"""Pydantic AI: a capability of an agent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, ToolFailed
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_core import to_json

from coherence.core.errors import CoherenceBlocked
from coherence.frameworks.agents import Agents, Watching
from coherence.integrations.conversation import Answer
from coherence.integrations.openai_wire import ChatWire
from coherence.integrations.watch import Watch
from coherence.monitor.monitor import Monitor

_CHAT = ChatWire()


class Coherence(Watching, AbstractCapability[Any]):
    """Record what an agent is told, says, calls and gets back; refuse calls; stop at a budget.

    Agents that work together share :attr:`agents`: one that a tool of another one runs is a part of the same fleet,
    and its pressure reaches the other one.

    Parameters
    ----------
    agent : str
        Name of the agent.
    agents : Agents, optional
        Those of another agent's capability, in place of ``options``.
    **options
        Arguments of :class:`~coherence.frameworks.agents.Agents`: ``goal``, ``store``, ``guide``, ``budget``,
        ``config``, ``monitor`` and ``fleet``.

    Raises
    ------
    ValueError
        For ``agents`` together with options, and for options that exclude each other.

    Notes
    -----
    A refused call is not run: the agent is given the reason as the tool's failure. A request beyond the budget raises
    :class:`~coherence.core.errors.CoherenceBlocked`.
    """

    def __init__(self, agent: str = "agent", *, agents: Agents | None = None, **options: Any) -> None:
        super().__init__(agent, agents=agents, **options)

    @property
    def monitor(self) -> Monitor:
        """The agent's monitor."""
        return self._watch.monitor

    @property
    def _watch(self) -> Watch:
        return self.agents.watch(self._agent)

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Join the agent whose tool has begun this run."""
        self.agents.began(self._agent)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        """Record a request and its answer."""
        watch = self._watch
        outputs = frozenset(tool.name for tool in request_context.model_request_parameters.output_tools)
        turn = watch.asked(_CHAT, {"messages": _plain(watch, request_context.messages, outputs)})
        hint = await watch.aask()
        given = _guided(request_context, hint) if hint else request_context
        began = time.monotonic()
        try:
            response: ModelResponse = await handler(given)
        except CoherenceBlocked:
            raise
        except Exception as error:
            watch.failed(error)
            raise
        except BaseException:  # a stream that is left early ends its request so
            watch.abandoned()
            raise
        watch.arrived(hint)
        try:
            answer = _answer(response, time.monotonic() - began, outputs)
        except Exception as error:  # the host goes on
            watch.failed(error)
        else:
            await watch.aanswered(answer, turn)
        return response

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Record a call and its result, or refuse the call."""
        watch, name = self._watch, call.tool_name
        if why := await watch.arefusal(call.tool_call_id, name, args):
            raise ToolFailed(why)
        began = time.monotonic()
        with self.agents.at_work(self._agent):
            try:
                value = await handler(args)
            except Exception as error:
                told, kind = str(error) or type(error).__name__, type(error).__name__
                seconds = time.monotonic() - began
                watch.result(call.tool_call_id, told, error=True, tool=name, duration_s=seconds, error_type=kind)
                raise
        watch.result(call.tool_call_id, _text(value), tool=name, duration_s=time.monotonic() - began)
        return value


def _plain(watch: Watch, messages: Sequence[ModelMessage], outputs: frozenset[str]) -> list[dict[str, Any]]:
    """Return messages as those of Chat Completions; a call of an output tool is what the agent says."""
    try:
        newest = next((each for each in reversed(messages) if isinstance(each, ModelRequest)), None)
        told = newest.instructions if newest is not None else None
        system = [{"role": "system", "content": told}] if told else []
        return system + [plain for message in messages for plain in _messages(message, outputs)]
    except Exception as error:
        watch.failed(error)
        return []


def _messages(message: ModelMessage, outputs: frozenset[str]) -> Iterator[dict[str, Any]]:
    if isinstance(message, ModelResponse):
        yield _said(message, outputs)
        return
    for part in message.parts:
        match part:
            case SystemPromptPart(content=text):
                yield {"role": "system", "content": text}
            case UserPromptPart(content=str() as text):
                yield {"role": "user", "content": text}
            case UserPromptPart(content=pieces):
                yield {"role": "user", "content": [_block(piece) for piece in pieces]}
            case ToolReturnPart() if part.tool_name in outputs:
                if part.outcome != "success":  # the agent is to say it again
                    yield {"role": "user", "content": part.model_response_str()}
            case ToolReturnPart():
                yield _result(part.tool_call_id, part.model_response_str())
            case RetryPromptPart(tool_name=str() as name) if name not in outputs:
                yield _result(part.tool_call_id, part.model_response())
            case RetryPromptPart():
                yield {"role": "user", "content": part.model_response()}
            case _:
                continue


def _block(piece: Any) -> dict[str, Any]:
    """Return a piece of a prompt; of an image or a file, only its kind."""
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    if isinstance(text := getattr(piece, "content", None), str):
        return {"type": "text", "text": text}
    return {"type": "image" if "image" in str(getattr(piece, "media_type", "")) else "file"}


def _result(call: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": text}


def _said(response: ModelResponse, outputs: frozenset[str]) -> dict[str, Any]:
    made = [part for part in response.parts if isinstance(part, ToolCallPart)]
    results = [part.args_as_json_str() for part in made if part.tool_name in outputs]
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    text = "\n".join(each for each in (text, *results) if each)
    calls = [
        {"id": part.tool_call_id, "function": {"name": part.tool_name, "arguments": part.args_as_json_str()}}
        for part in made
        if part.tool_name not in outputs
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _answer(response: ModelResponse, seconds: float, outputs: frozenset[str]) -> Answer:
    used = response.usage
    answer = _CHAT.answer({"choices": [{"message": _said(response, outputs)}]})
    return answer._replace(
        tokens_in=used.input_tokens,
        tokens_out=used.output_tokens,
        tokens_cached=used.cache_read_tokens,
        model=response.model_name,
        id=response.provider_response_id,
        duration_s=seconds,
    )


def _guided(request: ModelRequestContext, hint: str) -> ModelRequestContext:
    """Return a copy of a request that ends with a hint; the history of the run stays without it."""
    told = ModelRequest(parts=[SystemPromptPart(hint)])
    last = request.messages[-1] if request.messages else None
    if isinstance(last, ModelRequest):
        return replace(request, messages=[*request.messages[:-1], replace(last, parts=[*last.parts, *told.parts])])
    return replace(request, messages=[*request.messages, told])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value, fallback=repr).decode()
