"""Parameters and bodies of requests, checked: each field is one that a page may send, and an error names it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from coherence.core.readings import one_line
from coherence.integrations.http_requests import RefusedError

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1_000)]
Text: TypeAlias = Annotated[str, Meta(max_length=1_000)]
Comment: TypeAlias = Annotated[str, Meta(max_length=10_000)]
Time: TypeAlias = Annotated[float, Meta(ge=-1e12, le=1e12)]
Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=1_000)]
Label: TypeAlias = Literal["good", "bad"]

MAX_QUERY = 16_384
"""Bytes of a query."""


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Question to one part of the interface; an empty value is the same as none."""


class Nothing(Query, frozen=True):
    """No parameters."""


class OverviewQuery(Query, frozen=True):
    """Choice of sessions, and their order."""

    agent: Name | None = None
    band: Literal["green", "yellow", "orange", "red", "unknown"] | None = None
    rule: Name | None = None
    text: Text | None = None
    since: Time | None = None
    until: Time | None = None
    label: Literal["good", "bad", "none"] | None = None
    state: Literal["running", "open", "succeeded", "failed"] | None = None
    sort: Literal["worst", "newest", "cost", "steps", "agent"] = "worst"
    limit: Limit = 100
    offset: Number = 0


class SessionQuery(Query, frozen=True):
    """One session."""

    agent: Name
    session: Name


class TimelineQuery(SessionQuery, frozen=True):
    """Part of a session's course, in a number of points."""

    first: Annotated[int, Meta(ge=1, le=2**62)] = 1
    last: Annotated[int, Meta(ge=1, le=2**62)] | None = None
    points: Annotated[int, Meta(ge=1, le=5_000)] = 600


class EventsQuery(SessionQuery, frozen=True):
    """Some events of a session, in order."""

    after: Number = 0
    limit: Limit = 100
    kind: Name | None = None
    text: Text | None = None


class StepQuery(SessionQuery, frozen=True):
    """The step of a session that holds an event."""

    seq: Annotated[int, Meta(ge=1, le=2**62)]


class CompareQuery(Query, frozen=True):
    """Two sessions: agent and session of the one, and of the other."""

    a: Name
    b: Name
    c: Name
    d: Name


class LessonsQuery(Query, frozen=True):
    """Words that lessons are searched by."""

    text: Text = ""
    limit: Limit = 100


class Login(Query, frozen=True):
    """Token of the printed address."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class SessionLabel(Query, frozen=True):
    """Label of a session's newest run; ``None`` takes it back."""

    agent: Name
    session: Name
    label: Label | None
    comment: Comment = ""


class FiringLabel(Query, frozen=True):
    """Label of a firing or a refusal; ``None`` takes it back."""

    id: Name
    label: Label | None


class Unblock(Query, frozen=True):
    """End of a block."""

    agent: Name
    session: Name
    reason: Comment = ""


Q = TypeVar("Q", bound=Query)


def parse_query(text: bytes, kind: type[Q]) -> Q:
    """Return the parameters of a request.

    Raises
    ------
    RefusedError
        A parameter is unknown, missing, given twice, or no such value.

    Examples
    --------
    >>> parse_query(b"agent=a%2Fb&session=s&seq=7", StepQuery)
    StepQuery(agent='a/b', session='s', seq=7)
    >>> parse_query(b"agent=a&session=s&seq=0", StepQuery)
    Traceback (most recent call last):
        ...
    coherence.integrations.http_requests.RefusedError: seq: expected `int` >= 1
    """
    if len(text) > MAX_QUERY:
        raise RefusedError(HTTPStatus.REQUEST_URI_TOO_LONG, f"more than {MAX_QUERY:,} bytes of parameters")
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50, strict_parsing=bool(text)
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"malformed parameters: {error}") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name}: given twice")
        found[name] = value
    return _converted({name: value for name, value in found.items() if value}, kind, strict=False)


def parse_body(content: bytes, kind: type[Q]) -> Q:
    """Return a request's body, which must be JSON.

    Raises
    ------
    RefusedError
        It is none, or a field is unknown, missing, or no such value.
    """
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}") from error
    return _converted(found, kind, strict=True)


def _converted(found: Any, kind: type[Q], *, strict: bool) -> Q:
    if isinstance(found, dict) and (unknown := sorted(set(found) - set(kind.__struct_fields__))):
        known = ", ".join(kind.__struct_fields__) or "none"
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{one_line(unknown[0])}: no such field; there are: {known}")
    try:
        return msgspec.convert(found, kind, strict=strict)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, _in_words(str(error), kind)) from error


def _in_words(error: str, kind: type[Query]) -> str:
    """Return a message of msgspec with the field at its beginning, and the values that it may have."""
    what, _, where = error.partition(" - at `$.")
    field = where.rstrip("`")
    if what.startswith("Invalid enum value"):
        values = [value for part in get_args(get_type_hints(kind)[field]) for value in get_args(part) or (part,)]
        what = f"{what}; expected one of {', '.join(value for value in values if isinstance(value, str))}"
    what = what.replace("Object", "the request", 1) if what.startswith("Object") else what
    what = f"{what[:1].lower()}{what[1:]}"
    return one_line(f"{field}: {what}" if field else what)
