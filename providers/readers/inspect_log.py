"""Logs of inspect_ai: an evaluation with the messages of each sample, as ``.json`` or ``.eval``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters, number_of
from coherence.providers.readers.chat import text_of_any
from coherence.providers.readers.detect import objects
from coherence.providers.readers.source import Document, Source
from coherence.providers.readers.values import Tokens, check_depth, seconds_of
from coherence.providers.transcript import Step, Transcript, TranscriptCall

EXPECTED = "a log of inspect_ai {eval: {task}, samples: [{id, epoch, messages}]}"

_ROLES = ("system", "user", "assistant", "tool")
_ATTACHED = "attachment://"
_GOOD, _BAD = ("C", 1, 1.0, True), ("I", 0, 0.0, False)
_REASONING = ("reasoning",)


class _Call(msgspec.Struct):
    function: str
    arguments: Any = None
    id: str | None = None

    def __post_init__(self) -> None:
        check_depth(self.arguments)


class _Error(msgspec.Struct):
    message: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: Any = None
    id: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    function: str | None = None
    error: _Error | None = None

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ValueError(f"role {self.role!r} is not one of {', '.join(_ROLES)}")


class _Usage(msgspec.Struct):
    input_tokens: Tokens | None = None
    input_tokens_cache_write: Tokens | None = None
    input_tokens_cache_read: Tokens | None = None
    output_tokens: Tokens | None = None
    total_cost: float | None = None

    def to_counters(self) -> Counters:
        """Return the tokens, those of the cache included, which the log counts apart."""
        inputs = (self.input_tokens, self.input_tokens_cache_write, self.input_tokens_cache_read)
        known = [tokens for tokens in inputs if tokens is not None]
        return Counters(
            tokens_in=sum(known) if known else None, tokens_out=self.output_tokens, cost_usd=self.total_cost
        )


class _Sample(msgspec.Struct):
    id: str | int | None = None
    epoch: int | None = None
    messages: list[_Message] = []
    events: Any = None
    attachments: Any = None
    scores: Any = None
    error: _Error | None = None

    def success(self) -> bool | None:
        """Return what its scores say, if they are plain grades and agree."""
        given = self.scores.values() if isinstance(self.scores, dict) else ()
        grades = [score.get("value") if isinstance(score, dict) else None for score in given]
        plain = [grade for grade in grades if isinstance(grade, str | int | float) and grade in (*_GOOD, *_BAD)]
        if not plain or len(plain) < len(grades):
            return None
        good = [grade in _GOOD for grade in plain]
        return good[0] if len(set(good)) == 1 else None


class _Eval(msgspec.Struct):
    task: str | None = None


class _Log(msgspec.Struct):
    eval: _Eval
    samples: list[_Sample] | None = None


class _Told(NamedTuple):
    """Details of a message that the events of a sample tell."""

    usage: Counters | None
    ts: float | None
    latency_s: float | None


_NOTHING = _Told(None, None, None)


class InspectReader:
    """Logs of inspect_ai, each sample of each epoch a run."""

    def matches(self, documents: Sequence[Document]) -> bool:
        """Look for an object with the head of an evaluation."""
        keys = {"samples", "status"}
        heads = (value for value in objects(documents) if value.keys() & keys)
        return any(isinstance(value.get("eval"), dict) for value in heads)

    def read(self, source: Source) -> Iterator[Transcript]:
        """Yield each sample that has a message, called ``task/sample/epoch``."""
        read = 0
        for document in source.documents:
            log = source.convert(document, _Log, EXPECTED)
            spoken = [sample for sample in log.samples or () if any(each.role != "system" for each in sample.messages)]
            passed_over = len(log.samples or ()) - len(spoken)
            left_out = [f"{number_of(passed_over, 'sample')} left out: no messages"] if passed_over else []
            for sample in spoken:
                read += 1
                yield _run(source, document.line, log.eval.task or "", sample, left_out if sample is spoken[0] else [])
        if not read:
            raise TranscriptError(source.path, f"no sample with messages, expected {EXPECTED}")


def _run(source: Source, line: int | None, task: str, sample: _Sample, warnings: list[str]) -> Transcript:
    messages, attached = sample.messages, sample.attachments if isinstance(sample.attachments, dict) else {}
    begun = next(at for at, message in enumerate(messages) if message.role != "system")
    system = "\n".join(filter(None, (_text(message.content, attached) for message in messages[:begun])))
    named = [str(part) for part in (task, sample.id, sample.epoch) if part not in (None, "")]
    steps = _steps(messages[begun:], attached, _told(sample.events))
    run = source.transcript(steps, line=line, id="/".join(named), system=system, warnings=warnings)
    success = sample.success()
    outcome = {True: "good", False: "failed", None: ""}[success]
    if sample.error is not None:
        success, outcome = False, f"error: {sample.error.message or 'unknown'}"
    return msgspec.structs.replace(
        run,
        group="/".join(str(part) for part in (task, sample.id) if part not in (None, "")),
        success=success,
        outcome=outcome,
        went_wrong=None if success is None else not success,
    )


def _steps(messages: Sequence[_Message], attached: Mapping[str, Any], told: Mapping[str, _Told]) -> Iterator[Step]:
    names: dict[str | None, str] = {}
    for message in messages:
        text = _text(message.content, attached)
        usage, ts, latency_s = told.get(message.id or "", _NOTHING)
        if message.role == "assistant":
            calls = [TranscriptCall(call.function, call.arguments, call.id) for call in message.tool_calls or ()]
            names.update((call.id, call.name) for call in calls if call.id is not None)
            yield Step(role="assistant", content=text, tool_calls=tuple(calls), usage=usage, ts=ts, latency_s=latency_s)
        elif message.role == "tool":
            failure = "" if message.error is None else _text(message.error.message or "failed", attached)
            yield Step(
                role="tool",
                content="\n".join(dict.fromkeys(filter(None, (text, failure)))),
                tool_name=message.function or names.get(message.tool_call_id),
                is_error=message.error is not None,
                ts=ts,
                latency_s=latency_s,
            )
        else:
            yield Step(role="user" if message.role == "user" else "system", content=text, ts=ts)


def _text(content: Any, attached: Mapping[str, Any]) -> str:
    """Return a content as text; one that is kept beside the messages is looked up."""
    text = text_of_any(content, _REASONING)
    if text.startswith(_ATTACHED):
        kept = attached.get(text.removeprefix(_ATTACHED))
        return kept if isinstance(kept, str) else text
    return text


def _told(events: Any) -> dict[str, _Told]:
    """Return tokens, time and latency by the id of the message that an event made."""
    found: dict[str, _Told] = {}
    for event in events if isinstance(events, list) else ():
        if not isinstance(event, dict) or event.get("event") not in ("model", "tool"):
            continue
        usage, id = None, event.get("message_id")
        if event["event"] == "model":
            output = event.get("output")
            usage, id = _output(output if isinstance(output, dict) else {})
        ts = seconds_of(event.get("completed"))
        ts = seconds_of(event.get("timestamp")) if ts is None else ts
        if isinstance(id, str):
            found[id] = _Told(usage, ts, seconds_of(event.get("working_time")))
    return found


def _output(output: Mapping[str, Any]) -> tuple[Counters | None, Any]:
    """Return the usage of a model's output, and the id of its message."""
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    try:
        usage = msgspec.convert(output.get("usage"), _Usage | None)
    except msgspec.ValidationError:
        usage = None
    return None if usage is None else usage.to_counters(), message.get("id") if isinstance(message, dict) else None
