"""Messages of GenAI telemetry in one form, whoever wrote them: the conventions, old and new, and their dialects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from coherence.core import genai_names as names
from coherence.providers.readers.openai_chat import parse_arguments
from coherence.providers.readers.values import check_depth, loads
from coherence.providers.transcript import Role, TranscriptCall

MAX_PARTS = 100_000
"""Attributes with an index that are read of one span."""

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "choice": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CALLS = ("tool_call", "tool_use", "function_call", "server_tool_use")
_RESULTS = ("tool_call_response", "tool_result", "function_call_output")
_UNSAID = ("reasoning", "thinking", "redacted_thinking")


class SpanEvent(NamedTuple):
    """An event of a span, or a log record that belongs to it."""

    name: str
    attributes: Mapping[str, Any]
    ts: float | None = None


class Said(NamedTuple):
    """One message."""

    role: Role
    text: str = ""
    calls: tuple[TranscriptCall, ...] = ()
    call_id: str | None = None
    """Of a tool's message: the call that it answers."""
    tool_name: str | None = None


def messages_of(value: Any, role: Role) -> list[Said]:
    """Return the messages of a value: a list of them, an object that holds one or more, their JSON, or a plain text.

    Parameters
    ----------
    value : any
        As an attribute holds it.
    role : str
        Who speaks where the value does not say.

    Examples
    --------
    >>> messages_of('[{"role": "user", "parts": [{"type": "text", "content": "Hi."}]}]', "user")
    [Said(role='user', text='Hi.', calls=(), call_id=None, tool_name=None)]
    """
    value = parsed(value)
    if value in ([], {}):
        return []
    if isinstance(value, Mapping):
        held = next(
            (value[key] for key in ("messages", "choices", "content") if isinstance(value.get(key), list)), None
        )
        if _is_message(value):
            return list(_said(value, role))
        if held is not None and all(isinstance(each, Mapping) for each in held):
            return [said for each in held for said in _said(_unwrapped(each, "message"), role)]
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        flat = [_unwrapped(each, "message") for each in value]
        if any(map(_is_message, flat)):
            return [said for each in flat for said in _said(each, role)]
        return list(_said({"content": flat}, role))
    text = as_text(value)
    return [Said(role, text)] if text.strip() else []


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return what attributes with an index hold under a prefix, in the order of the indices.

    Examples
    --------
    >>> indexed({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi."}, "gen_ai.prompt")
    [{'role': 'user', 'content': 'Hi.'}]
    """
    tree: dict[str, Any] = {}
    start = f"{prefix}."
    for at, (name, value) in enumerate(item for item in attributes.items() if item[0].startswith(start)):
        if at >= MAX_PARTS:
            break
        *path, last = name[len(start) :].split(".")[:12]
        node = tree
        for key in path:
            found = node.get(key)
            if not isinstance(found, dict):
                found = node[key] = {}
            node = found
        if not isinstance(node.get(last), dict):
            node[last] = value
    listed = _listed(tree)
    return listed if isinstance(listed, list) else []


def parsed(value: Any) -> Any:
    """Return a value from its JSON; as it is where it is no JSON of a list or an object, or is nested too deep."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return value
        try:
            found = loads(value)
            check_depth(found)
        except (ValueError, RecursionError):
            return value
        return found
    return value


def as_text(value: Any) -> str:
    """Return a value as text, of data their JSON; empty for none."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def arguments_of(value: Any) -> Any:
    """Return the arguments of a call without what instrumentations put around them."""
    try:
        found = parse_arguments(value)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        if isinstance(found.get("inputs"), dict):  # OpenLLMetry, of LangChain's tools
            return found["inputs"]
        if found.keys() == {"args", "kwargs"}:  # OpenLLMetry, of decorated functions
            return found["kwargs"] if not found["args"] and isinstance(found["kwargs"], dict) else found
    return found


def _is_message(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    is_named = isinstance(kind, str) and kind in _ROLES
    return isinstance(value.get("role"), str) or isinstance(value.get("parts"), list) or is_named


def _unwrapped(value: Any, key: str) -> Any:
    """Return what OpenInference, and a choice of OpenAI, hold one level deeper."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else value


def _said(message: Any, role: Role) -> Iterator[Said]:
    """Yield a message, and before it the results of tools that it holds."""
    if not isinstance(message, Mapping):
        return
    kind = message.get("type")
    if kind in _CALLS or kind in _RESULTS:  # an item of the Responses API
        message = {"content": [message]}
    given = message.get("role", kind)
    speaker = _ROLES.get(given.lower(), role) if isinstance(given, str) else role
    held = next((message[key] for key in ("parts", "content", "contents", "refusal") if message.get(key)), None)
    texts: list[str] = []
    calls: list[TranscriptCall] = []
    results: list[Said] = []
    held = parsed(held) if isinstance(held, str) and speaker != "tool" and held.startswith('[{"type"') else held
    for part in held if isinstance(held, list) else [held]:
        _take(_unwrapped(part, "message_content"), texts, calls, results)
    more = parsed(message.get("tool_calls"))
    made = [*(more if isinstance(more, list) else ()), message.get("function_call")]
    calls += [_call(_unwrapped(call, "tool_call")) for call in made if isinstance(call, Mapping)]
    if speaker == "tool" and not results:
        id = _text(message, "tool_call_id", "id", "call_id")
        yield Said("tool", "\n".join(texts), call_id=id, tool_name=_text(message, "name"))
        return
    yield from results
    if texts or calls or not results:
        yield Said("assistant" if calls else speaker, "\n".join(texts), tuple(calls))


def _take(part: Any, texts: list[str], calls: list[TranscriptCall], results: list[Said]) -> None:
    if part is None:
        return
    if not isinstance(part, Mapping):
        texts.append(as_text(part))
        return
    kind = part.get("type")
    if kind in _CALLS or isinstance(part.get("functionCall"), Mapping):
        calls.append(_call(_unwrapped(part, "functionCall")))
    elif kind in _RESULTS:
        found = next(
            (part[key] for key in ("response", "result", "content", "output") if part.get(key) is not None), ""
        )
        id = _text(part, "id", "tool_use_id", "call_id", "tool_call_id")
        results.append(Said("tool", result_text(found), call_id=id, tool_name=_text(part, "name")))
    elif kind not in _UNSAID:
        text = next((part[key] for key in ("content", "text") if isinstance(part.get(key), str)), None)
        # a picture or a file is told, never read
        texts.append(f"[{_text(part, 'modality', 'type') or 'data'}]" if text is None else text)


def result_text(value: Any) -> str:
    """Return the result of a tool as text; of content blocks, only the texts count."""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "type" in each for each in value):
        texts: list[str] = []
        for each in value:
            _take(each, texts, [], [])
        return "\n".join(texts)
    return as_text(value)


def _call(call: Mapping[str, Any]) -> TranscriptCall:
    inner = _unwrapped(call, "function")
    given = next((inner[key] for key in ("arguments", "input", "args") if inner.get(key) is not None), None)
    return TranscriptCall(_text(inner, "name") or "unknown", arguments_of(given), _text(call, "id", "call_id"))


def _text(value: Mapping[str, Any], *keys: str) -> str | None:
    return next((value[key] for key in keys if isinstance(value.get(key), str) and value[key]), None)


def _listed(node: Any) -> Any:
    """Return a tree in which what is keyed by numbers alone is a list."""
    if not isinstance(node, dict):
        return node
    children = {key: _listed(child) for key, child in node.items()}
    numbered = [key for key in children if key.isascii() and key.isdigit() and len(key) < 9]
    if numbered and len(numbered) == len(children):
        return [children[key] for key in sorted(numbered, key=int)]
    return children


def inputs_of(attributes: Mapping[str, Any], events: Sequence[SpanEvent]) -> list[Said]:
    """Return what a model was given, by a span's attributes and its events."""
    told = _told(events, choice=False)
    return _found(attributes, events, names.INPUT_MESSAGES, names.INDEXED_INPUT, names.ANY_INPUT, "user", told)


def outputs_of(attributes: Mapping[str, Any], events: Sequence[SpanEvent]) -> list[Said]:
    """Return what a model answered, likewise."""
    told = _told(events, choice=True)
    return _found(attributes, events, names.OUTPUT_MESSAGES, names.INDEXED_OUTPUT, names.ANY_OUTPUT, "assistant", told)


def _found(
    attributes: Mapping[str, Any],
    events: Sequence[SpanEvent],
    current: str,
    prefixes: Iterable[str],
    others: Iterable[str],
    role: Role,
    told: list[Said],
) -> list[Said]:
    sources = [attributes, *(event.attributes for event in events)]
    for given in sources:
        if current in given:
            system = messages_of(given.get(names.SYSTEM_INSTRUCTIONS), "system") if role == "user" else []
            return [*system, *messages_of(given[current], role)]
    for prefix in prefixes:
        if listed := indexed(attributes, prefix):
            return messages_of(listed, role)
    for given in sources:
        for name in others:
            if given.get(name) not in (None, "") and (found := messages_of(given[name], role)):
                return found
    return told


def _told(events: Sequence[SpanEvent], *, choice: bool) -> list[Said]:
    """Return the messages that events hold one by one."""
    found: list[Said] = []
    for event in events:
        given, role = event.attributes, names.MESSAGE_EVENTS.get(event.name)
        if role is None or (role == "choice") != choice:
            continue
        body = parsed(given.get("gen_ai.event.content", given.get("event.body", dict(given))))
        message = parsed(body.get("message", body)) if isinstance(body, Mapping) else body
        if isinstance(message, str):
            message = {"content": message}
        if isinstance(message, Mapping):
            found += _said({**message, "role": role}, _ROLES[role])
    return found
