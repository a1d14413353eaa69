r"""Secrets out of texts and of tool-call arguments, before anything of them is written to disk.

Two families of rules find them: *shapes* are secrets by their own look (``ghp_…``, ``eyJ….….…``); *contexts* are values
of which the words before them say that they are secret (``password=…``). Both look at a text as a reader sees it:
without the colours of a terminal, and at the words of a URL also decoded.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Any, TypeAlias

import msgspec

from coherence.core.events import (
    TEXT_FIELDS,
    Correction,
    Event,
    Fault,
    Feedback,
    Goal,
    Memory,
    Message,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.core.plain_view import Found, found_decoded, found_without_escapes
from coherence.core.readings import one_line
from coherence.core.secret_contexts import MARKER, find_contexts, kind_of
from coherence.core.secret_shapes import end_of_rest, find_shapes, head_of, open_at_end
from coherence.core.validation import MAX_NAME, MAX_TEXT, clean, to_json

MAX_DEPTH = 128
TOO_DEEP = "[redacted:too-deep]"
"""Stands for a container that is nested deeper than :data:`MAX_DEPTH` or contains itself."""

MARGIN = 4_000
"""Characters beyond a cut that are searched for secrets too; a private key of 4,096 bits has 3,300."""

MAX_MESSAGE = 500
"""Characters of the text of an error that are kept."""

_Seen: TypeAlias = dict[tuple[int, str | None], tuple[Any, Any]]


def redact(text: str) -> str:
    """Replace the secrets in a text; return the same object if it holds none. Twice does no more than once.

    Examples
    --------
    >>> redact("export PGPASSWORD=hunter2!x")
    'export PGPASSWORD=[redacted:password]'
    """
    for _ in range(8):  # until nothing is found, for what replaces a secret may uncover the one beside it
        found = list(_find(text))
        if not found or not (found := _outside_markers(found, text)):
            break
        text = _replace(text, sorted(found, key=lambda item: (item[0], -item[1])))
    return text


def redacted_start(text: str, most: int) -> str:
    """Return at most so many characters from the beginning of a text, without secrets, for a bounded amount of work.

    A cut through a secret would leave a part that nothing recognises, so more is looked at than is kept.

    Examples
    --------
    >>> redacted_start("password=hunter2!x and more", 12)
    'password=[re'
    """
    found = redact(text[: most + MARGIN])
    if len(text) > most + MARGIN:  # its end, which has moved up, may be a part of a secret
        found = found[: max(len(found) - MARGIN // 2, 0)]
    return found[:most]


def short_message(text: str) -> str:
    r"""Return the text of an error on one line, at most 500 characters of it, without secrets.

    Examples
    --------
    >>> short_message("no access\nwith password=hunter2!x")
    'no access with password=[redacted:password]'
    """
    return one_line(redacted_start(text, MAX_MESSAGE))


def redacted_end(text: str, most: int) -> str:
    """Return at most so many characters from the end of a text, without secrets; see :func:`redacted_start`.

    Examples
    --------
    >>> redacted_end("user and password=hunter2!x", 10)
    ':password]'
    """
    found = redact(text[-most - MARGIN :])
    if len(text) > most + MARGIN:
        found = found[MARGIN // 2 :]
    return found[-most:]


def redact_value(value: Any) -> Any:
    """Replace the secrets in JSON-like data; return the same object if it holds none, else a changed copy.

    A text under a sensitive key (``password``, ``DB_PASSWORD``, ``openaiApiKey``, …) is replaced whole.
    """
    try:
        return _redact_any(value, None, MAX_DEPTH, {})
    except RecursionError:  # the caller's own stack was nearly full
        return TOO_DEEP


def _find(text: str) -> Iterator[Found]:
    return found_without_escapes(text, _find_readable)


def _find_readable(text: str) -> Iterator[Found]:
    yield from _find_plain(text)
    yield from found_decoded(text, _find_plain)


def _find_plain(text: str) -> Iterator[Found]:
    # One byte a character, so that positions are those of the text; what is not ASCII becomes "?".
    data = text.encode("ascii", "replace")
    yield from find_shapes(text, data)
    yield from find_contexts(text, data)


def _redact_any(value: Any, kind: str | None, depth: int, seen: _Seen) -> Any:
    if isinstance(value, str):
        whole = kind is not None and value and not MARKER.fullmatch(value)
        return f"[redacted:{kind}]" if whole else redact(value)
    if not isinstance(value, dict | list | tuple):
        return value
    at = (id(value), kind)
    if at not in seen:  # what is shared is walked once, or a few nested lists could stand for 2**100
        seen[at] = (TOO_DEEP, value)  # with the original, so that nothing else gets its id meanwhile
        if depth:
            walked = (
                _redact_mapping(value, depth - 1, seen)
                if isinstance(value, dict)
                else _redact_sequence(value, kind, depth - 1, seen)
            )
            seen[at] = (walked, value)
    return seen[at][0]


def _redact_mapping(value: Any, depth: int, seen: _Seen) -> Any:
    copy, changed = {}, False
    for key, item in list(value.items()):  # in one go: the agent may go on changing it
        stem = name = redact(key) if isinstance(key, str) else key
        new = _redact_any(item, kind_of(name, item), depth, seen)
        changed = changed or name is not key or new is not item
        numbers = count(2)
        while name is not key and (name in copy or name in value):  # two secrets as keys stay two entries
            name = f"{stem}#{next(numbers)}"
        copy[name] = new
    return copy if changed else value


def _redact_sequence(value: Any, kind: str | None, depth: int, seen: _Seen) -> Any:
    copy, changed, flag = [], False, None
    for item in list(value):
        new = _redact_any(item, kind or kind_of(flag, item), depth, seen)
        flag = item if isinstance(item, str) and item.startswith("--") else None  # the arguments of a command
        changed = changed or new is not item
        copy.append(new)
    return value if not changed else copy if isinstance(value, list) else tuple(copy)


def _outside_markers(found: list[Found], text: str) -> list[Found]:
    markers = {match.span() for match in MARKER.finditer(text)}
    inside = {position for start, end in markers for position in range(start + 1, end)}
    return [item for item in found if not (item[0] in inside or item[1] in inside or item[:2] in markers)]


def _replace(text: str, found: list[Found]) -> str:
    parts: list[str] = []
    done, (start, end, kind) = 0, found[0]
    for first, last, name in [*found[1:], (len(text) + 1, 0, "")]:
        if first < end:  # two that overlap are replaced as one
            end = max(end, last)
        else:
            parts += (text[done:start], f"[redacted:{kind}]")
            done, start, end, kind = end, first, last, name
    return "".join([*parts, text[done:]])


NAMES_OF: Mapping[type, tuple[str, ...]] = {
    Message: ("model", "response_id", "firing"),
    Feedback: ("about",),
    ToolCall: ("tool_name", "call_id"),
    ToolResult: ("tool_name", "call_id", "error_type"),
    Usage: ("model", "response_id"),
    Memory: ("id",),
    Correction: ("id",),
    Fault: ("where", "error_type"),
}


def prepare(event: Event, *, hide_secrets: bool) -> Event:
    """Return the event as it is measured and recorded.

    State, readings and evidence all see this form, or a replay of the evidence could not give the same readings.

    Examples
    --------
    >>> prepare(Message("assistant", "export PGPASSWORD=hunter2!x"), hide_secrets=True).content
    'export PGPASSWORD=[redacted:password]'
    """
    kind = type(event)
    changed: dict[str, Any] = {}
    for field in NAMES_OF.get(kind, ()):
        name = getattr(event, field)
        if name is not None and (plain := clean(redact(name) if hide_secrets else name, MAX_NAME)) is not name:
            changed[field] = plain
    field = TEXT_FIELDS.get(kind, "")
    if field:
        text = getattr(event, field)
        # Redacted before it is cut: half a secret is not recognised any more.
        plain = clean(redact(text) if hide_secrets else text)
        if plain is not text:
            changed[field] = plain
    if type(event) is ToolCall and (plain_json := _prepare_json(event.arguments, hide_secrets)) is not event.arguments:
        changed["arguments"] = plain_json
    return msgspec.structs.replace(event, **changed) if changed else event


class Redactor:
    """Preparation of one agent's events, in their order: a secret that two texts share is replaced in both.

    A host that reports a stream in parts may cut a secret. What the end of a text shows of one, and its rest at the
    beginning of the next text of the same kind, are replaced as far as a prefix gives them away. The beginning is kept
    in memory only, until that text comes.

    Parameters
    ----------
    hide_secrets : bool
        Whether secrets are replaced at all.

    Examples
    --------
    >>> redactor = Redactor(hide_secrets=True)
    >>> parts = "the key is gl" + "pat-a1B2c3D4e5", "F6g7H8i9J0, keep it"
    >>> [redactor.prepare(Message("assistant", part)).content for part in parts]
    ['the key is [redacted:gitlab-token]', '[redacted:gitlab-token], keep it']
    """

    def __init__(self, *, hide_secrets: bool) -> None:
        self._hide_secrets = hide_secrets
        self._begun: dict[Hashable, str] = {}

    def prepare(self, event: Event) -> Event:
        """Return an event as it is measured and recorded."""
        field = TEXT_FIELDS.get(type(event))
        if field and self._hide_secrets:
            text = getattr(event, field)
            whole = self.joined((type(event), event.role if type(event) is Message else ""), text)
            if whole is not text:
                event = msgspec.structs.replace(event, **{field: whole})
        return prepare(event, hide_secrets=self._hide_secrets)

    def joined(self, source: Hashable, text: str) -> str:
        """Return a text without its part of a secret that it shares with the text before, or after it, of its source.

        Other secrets stay: :func:`redact` finds them.
        """
        head = self._begun.pop(source, "")
        rest = end_of_rest(head, text) if head else None
        end, of = rest or (0, "")
        begun = open_at_end(head + text if rest and end == len(text) else text)
        if begun:
            self._begun[source] = begun
        shown = f"[redacted:{of}]{text[end:]}" if rest else text
        last = head_of(begun) if begun and len(begun) <= len(text) - end else None
        return shown if last is None else f"{shown[: len(shown) - len(begun) + last[0]]}[redacted:{last[1]}]"


def _prepare_json(arguments: msgspec.Raw, hide_secrets: bool) -> msgspec.Raw:
    """Return a call's arguments without secrets; if they are too long, their JSON as one text without its middle."""
    found = arguments
    if hide_secrets:
        value = msgspec.json.decode(arguments)
        hidden = redact_value(value)
        if hidden is not value:
            found = msgspec.Raw(to_json("arguments", hidden))
    whole = bytes(found)
    return found if len(whole) <= MAX_TEXT else msgspec.Raw(to_json("arguments", clean(whole.decode())))


def goal_text(goal: object, *, hide_secrets: bool) -> str:
    """Return a goal as the state will hold it; empty for what is no text."""
    if not isinstance(goal, str):
        return ""
    prepared = prepare(Goal(goal), hide_secrets=hide_secrets)
    assert isinstance(prepared, Goal)
    return prepared.text.strip()
