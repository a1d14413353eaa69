"""Memories of smolagents: ``agent.memory.get_full_steps()``, ``get_succinct_steps()`` and ``RunResult.dict()``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from coherence.core.readings import Counters
from coherence.core.validation import to_json
from coherence.providers.readers.chat import marker, text_of_any
from coherence.providers.readers.detect import flat
from coherence.providers.readers.openai_chat import parse_arguments
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import Tokens, check_depth, seconds_of
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "the memory of an agent of smolagents: a list of steps, or a run result {output, steps}"

_FINAL = "final_answer"
_FENCES = ("<code>", "```python", "```py", "```", "Code:")


class _Function(msgspec.Struct):
    name: str
    arguments: Any = None

    def __post_init__(self) -> None:
        self.arguments = parse_arguments(self.arguments)


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Output(msgspec.Struct):
    """Answer of the model; a call that failed is told here alone."""

    content: Any = None
    tool_calls: list[_Call] | None = None


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Timing(msgspec.Struct):
    end_time: Any = None
    duration: Any = None


class _Usage(msgspec.Struct):
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class _Step(msgspec.Struct):
    task: str | None = None
    task_images: Any = None
    system_prompt: str | None = None
    plan: str | None = None
    timing: _Timing | None = None
    model_input_messages: Any = None
    model_output_message: _Output | None = None
    model_output: Any = None
    tool_calls: list[_Call] | None = None
    code_action: str | None = None
    observations: str | None = None
    observations_images: Any = None
    action_output: Any = None
    error: _Error | None = None
    token_usage: _Usage | None = None
    is_final_answer: bool | None = None
    output: Any = None

    def __post_init__(self) -> None:
        self.output, self.action_output = _as_text(self.output), _as_text(self.action_output)

    def calls(self) -> list[TranscriptCall]:
        told = self.model_output_message.tool_calls if self.model_output_message is not None else None
        found = self.tool_calls or told or ()
        return [TranscriptCall(call.function.name, call.function.arguments, call.id) for call in found]

    def said(self) -> str:
        """Return the words of the model, without the code that is the argument of its call."""
        text = text_of_any(self.model_output if self.model_output is not None else self._content()).strip()
        before, code, _ = text.partition(self.code_action.strip()) if self.code_action else (text, "", "")
        if not code:
            return text
        before = before.rstrip()
        for fence in _FENCES:
            before = before.removesuffix(fence).rstrip()
        return before

    def _content(self) -> Any:
        return self.model_output_message.content if self.model_output_message is not None else None

    def usage(self) -> Counters | None:
        used = self.token_usage
        return None if used is None else Counters(tokens_in=used.input_tokens, tokens_out=used.output_tokens)


class _Result(msgspec.Struct):
    steps: list[_Step]
    output: Any = None
    state: Any = None

    def __post_init__(self) -> None:
        self.output = _as_text(self.output)


class SmolagentsReader:
    """The memory of an agent of smolagents, or the full result of its run."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for a task, or for an action with a number and its times."""
        for value in flat(documents):
            held = value.get("steps", [value])
            if isinstance(held, list) and any(map(_is_step, held)):
                return True
        return False

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each memory; the agent's final answer is the last step."""
        for document in source.documents:
            value = {"steps": document.value} if isinstance(document.value, list) else document.value
            result = source.convert(Document(value, document.line), _Result, EXPECTED)
            run = source.transcript(_steps(result), line=document.line, system=_system(result.steps))
            if result.state == "max_steps_error":
                run = msgspec.structs.replace(run, outcome="ended at the most steps allowed", went_wrong=True)
            yield run


def _is_step(value: object) -> bool:
    signs = ({"task", "task_images"}, {"step_number", "timing"})
    return isinstance(value, dict) and any(sign <= value.keys() for sign in signs)


def _system(steps: Iterable[_Step]) -> str:
    """Return the system prompt, which the messages of the first call to the model begin with."""
    for step in steps:
        if step.system_prompt:
            return step.system_prompt
        given = step.model_input_messages
        first = given[0] if isinstance(given, list) and given else None
        if isinstance(first, dict) and first.get("role") == "system":
            return text_of_any(first.get("content"))
    return ""


def _steps(result: _Result) -> Iterator[Step]:
    answered = False
    for step in result.steps:
        ts = None if step.timing is None else seconds_of(step.timing.end_time)
        if step.task is not None:
            yield Step(role="user", content="\n".join((step.task, *_images(step.task_images))))
        elif step.plan is not None:
            yield Step(role="assistant", content=step.plan, usage=step.usage(), ts=ts, latency_s=_latency(step))
        elif step.model_output_message is not None or step.model_output is not None or step.tool_calls or step.error:
            answered = step.is_final_answer is True
            yield from _action(step, result.output, ts)
        elif step.output and not answered:
            answered = True
            yield Step(role="assistant", content=step.output)
    if not answered and result.output:
        yield Step(role="assistant", content=result.output)


def _action(step: _Step, output: str, ts: float | None) -> Iterator[Step]:
    said, calls = step.said(), step.calls()
    if step.is_final_answer and [call.name for call in calls] == [_FINAL]:
        # this call is no tool: it gives the answer
        answer = step.action_output or step.observations or output
        content = "\n".join(filter(None, (said, answer)))
        yield Step(role="assistant", content=content, usage=step.usage(), ts=ts, latency_s=_latency(step))
        return
    usage, latency = step.usage(), _latency(step)
    yield Step(role="assistant", content=said, tool_calls=tuple(calls), usage=usage, ts=ts, latency_s=latency)
    error = "" if step.error is None else step.error.message or step.error.type or "failed"
    seen = [step.observations or "", *_images(step.observations_images), error]
    if calls or any(seen):
        name = calls[0].name if len(calls) == 1 else None
        content = "\n".join(filter(None, seen))
        yield Step(role="tool", content=content, tool_name=name, is_error=step.error is not None, ts=ts)
    if step.is_final_answer and (answer := step.action_output or output):
        yield Step(role="assistant", content=answer, ts=ts)


def _latency(step: _Step) -> float | None:
    return None if step.timing is None else seconds_of(step.timing.duration)


def _images(held: Any) -> list[str]:
    """Return a marker for each image; one that was written as a text counts as one."""
    if not held:
        return []
    return [marker("image")] * (len(held) if isinstance(held, list) else 1)


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    check_depth(value)
    return to_json("output", value).decode()
