r"""Secrets out of texts and of tool-call arguments, before anything of them is written to disk.

Every event passes here, and nearly none holds a secret, so a rule runs only where its *needle*, a literal that each of
its secrets contains, is in the text. Every pattern begins at a literal and repeats possessively or a bounded number of
times, so that hostile text costs time in proportion to its length.

Two families of rules: *shapes* are secrets by their own look (``ghp_…``, ``eyJ….….…``); *contexts* are values of which
the words before them say that they are secret (``password=…``). A value in a context is left alone if it is a
placeholder, a reference in source code, or a plain word: other rooms compare texts, so a false alarm costs too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import count, groupby
from typing import Any, NamedTuple, TypeAlias

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
from coherence.core.lazy import lazy_regex
from coherence.core.validation import MAX_NAME, MAX_TEXT, clean, to_json

MAX_DEPTH = 128
TOO_DEEP = "[redacted:too-deep]"
"""Stands for a container that is nested deeper than :data:`MAX_DEPTH` or contains itself."""

Span: TypeAlias = tuple[int, int]
Found: TypeAlias = tuple[int, int, str]
"""Start, end and kind of a secret."""
_Seen: TypeAlias = dict[tuple[int, str | None], tuple[Any, Any]]
_MARKER = lazy_regex(r"\[redacted:[a-z0-9-]+\]")
_COMMON = re.ASCII | re.VERBOSE


class _Rule(NamedTuple):
    gate: bytes  # a literal that neighbouring rules share, looked for first
    needle: bytes
    kind: str
    pattern: re.Pattern[str]  # its group 1, if it has one, is the secret of a shape
    judge: Callable[[re.Match[str], str], Span | None] | None = None  # says what of a context is secret, if anything


def _shape(gate: str, needle: str, kind: str, rest: str, *, literal: str = "") -> _Rule:
    # The look-behind stands after the literal: `re` skips quickly to a literal at the beginning of a pattern. A word
    # may not go on into the secret (task-…, desk-…) unless its end is an escape of JSON (\n) or of a URL (%3D).
    start = re.escape(literal or needle)
    behind = rf"(?:(?<![A-Za-z0-9_-]{start})|(?<=\\[nrt]{start})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{start}))"
    # Six or more x are a mask and no secret.
    return _Rule(gate.encode(), needle.encode(), kind, lazy_regex(f"{start}{behind}(?![xX]{{6}}){rest}", re.ASCII))


_PEM = r"""-----BEGIN\ (?:[A-Z0-9]{1,12}\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?=(?:[^-]|-(?!----))*?[A-Za-z0-9+/]{16}) (?:[^-]|-(?!----))*+ -----END\ [A-Z0-9 ]{1,60}-----
      # cut off: headers and lines of base64, each behind what a listing or a diff puts at the start of a line
      | (?:(?:\s|\\[nrt]|["'+>|,]|\d{1,6}[\t:→])*+ (?:[A-Z][\w-]{1,20}:\ [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,}+))++
        (?:(?:\s|\\[nrt])*+[A-Za-z0-9+/=]++(?=\s*\Z))? )"""
# A bot's number has 8 to 10 digits; a look-behind has one width, so each length is written out.
_TELEGRAM = r":(AA(?:(?<=(?<!\d)\d{8}:AA)|(?<=(?<!\d)\d{9}:AA)|(?<=(?<!\d)\d{10}:AA))[\w-]{30,40})(?![\w-])"
# XXX and T000 stand for parts of an address in Slack's documentation.
_SLACK_HOOK = r"hooks\.slack\.com/(?:services|workflows|triggers)/((?!X{3}|T0{3})[\w/-]{16,}+)"

_SHAPES = (
    _shape("_", "gh", "github-token", r"[pousr]_(?![xX]{6})[A-Za-z0-9]{20,}+"),
    _shape("_", "github_pat_", "github-token", r"\w{20,}+"),
    _shape("_", "whsec_", "stripe-key", r"[A-Za-z0-9+/]{16,}+=*+"),
    _shape("_", "hf_", "huggingface-token", r"[A-Za-z0-9]{20,}+"),
    _shape("_", "npm_", "npm-token", r"[A-Za-z0-9]{30,}+"),
    *(_shape(f"k_{m}_", f"{s}k_{m}_", "stripe-key", r"[A-Za-z0-9]{10,}+") for m in ("live", "test") for s in "sr"),
    _shape("sk-", "sk-ant-", "anthropic-key", r"(?:[a-z]{2,8}\d*-)?+(?![xX]{6})[\w-]{16,}+"),
    _shape("sk-", "sk-", "openai-key", r"(?:(?:proj|svcacct|admin|or-v1)-(?![xX]{6})[\w-]{20,}+|[A-Za-z0-9]{20,}+)"),
    _shape("-", "glpat-", "gitlab-token", r"[\w-]{16,}+"),
    _shape("-", "xox", "slack-token", r"[a-z](?:\.xox[a-z])?-(?![xX]{4})[\w-]{10,}+"),
    _shape("-", "pypi-AgE", "pypi-token", r"[\w-]{16,}+"),
    _shape(".", "eyJ", "jwt", r"[\w-]{6,}+\.[\w-]{6,}+\.[\w-]*+"),
    _shape(".", "ya29.", "google-token", r"[\w-]{16,}+"),
    _Rule(b".", b"hooks.slack.com/", "slack-webhook", lazy_regex(_SLACK_HOOK, _COMMON)),
)
_CAPITAL_SHAPES = (
    *(_shape("", name, "aws-key", r"[A-Z0-9]{16}(?![A-Za-z0-9])") for name in ("AKIA", "ASIA")),
    # only capitals are there to be looked for, so the needle is the part of AIza without small letters
    _shape("", "AI", "google-key", r"[\w-]{35}(?![\w-])", literal="AIza"),
    _shape("", "SG.", "sendgrid-key", r"[\w-]{16,64}\.[\w-]{16,64}(?![\w-])"),
    _shape("", "SK", "twilio-key", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _Rule(b"", b":AA", "telegram-token", lazy_regex(_TELEGRAM, _COMMON)),
    _Rule(b"", b"-----BEGIN", "private-key", lazy_regex(_PEM, _COMMON)),
)
"""Shapes with needles of capitals and signs only: looked for in what remains of a text without its :data:`_SMALL`."""

_SMALL = bytes(range(ord("a"), ord("z") + 1)) + b"0123456789 \t\r\n"

_PLACEHOLDER = lazy_regex(
    r"""[*.•…_\#?-]+ | [xX]{2,} | <.* | \[.* | \{.* | [\#@]\{.*
    | \$(?:[A-Za-z_]\w*|\d[\d.,]*(?:/\w+)?|[{(].*) | %(?:\w+%|[sdr]|\(.*) | [:@][a-z_]+ | [&!]
    | (?:your|my|the|some|insert|enter|replace|change)(?:[\ _-]|me|your).* | your\w*
    | none|null|nil|undefined|true|false|yes|no|on|off|empty|unset|set|n/a|tbd|todo|example|placeholder|dummy|redacted
    | hidden|masked|missing|invalid|required|optional|str|string|text|bytes|int|bool|any|object|function""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_MASKED = lazy_regex(r"\*{3}|[xX]{6}|…|\.{3}|\$\{|\{\{|%s|\[redacted:")
_OUTSIDE = lazy_regex(r"\s*+(?:[,;+%:]\s|[)\]]|\.[a-z]+\(|[,;+%:]?\s*\Z)")
"""Text after one that ends in a name: ``'Password: ', …``."""
_NAME = r"[A-Za-z_]\w*"
_CODE = lazy_regex(rf"\(|{_NAME}(?:(?:\??\.|::|->){_NAME})*+[(\[{{]|[A-Za-z_]+\d?(?:(?:\??\.|::)[A-Za-z_]+\d?)++\Z")
_PATH = lazy_regex(r"(?:~|\.{1,2})?/[\w.-]*(?:/[\w. -]*)*|[A-Za-z]:\\.*", re.ASCII)
_WORDS = lazy_regex(r"(?:[^\W\d]|[\s:./,!?'-])+")
_SENSITIVE = lazy_regex(r"pass|pwd|pw\b|secret|tok|key|cred|auth|cookie", re.IGNORECASE)
_PLAIN = lazy_regex(r"(?:[A-Z]++(?![a-z](?![a-z]))|[a-z]{2,}+|[_.,:!?-])++", re.ASCII)
"""Words, also in camelCase; base64 has single small letters between capitals."""
_NUMBER = lazy_regex(r"[$€£]?[+-]?\d[\d.,_:/-]*(?:e[+-]?\d+)?[a-z%]{0,3}(?:/\w{1,8})?", re.IGNORECASE)


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.fullmatch(value) or _MASKED.search(value))


def _is_random(value: str) -> bool:
    return not _PLAIN.fullmatch(value) and (not _NUMBER.fullmatch(value) or (value.isdigit() and len(value) >= 16))


def _judge_assignment(found: re.Match[str], text: str, *, strict: bool) -> Span | None:
    """Give the span of an assigned value if it is a secret; the names of ``strict`` ones have many innocent values."""
    if found["sep"].isspace() and not _FLAG.search(text, max(0, found.start() - 40), found.start()):
        return None  # "password x" is prose, unless it is --password x
    if strict and _HARMLESS.search(text, max(0, found.start() - 16), found.start()):
        return None
    quoted = found["quote"] is not None
    start, end = found.span("quoted" if quoted else "bare")
    if quoted and not text.startswith(found["quote"], end):  # never closed, so only the next word
        end = start + len((text[start:end].split(maxsplit=1) or [""])[0])
    value = text[start:end]
    words = _WORDS.fullmatch(value)
    names_itself = _SENSITIVE.search(value) if words else None  # "Enter your password", raw_password
    if names_itself or _is_placeholder(value) or _PATH.fullmatch(value) or (_OUTSIDE if quoted else _CODE).match(value):
        return None
    tight = found["sep"] == "=" and not text.startswith((")", ", ", ",\n"), end)  # not the argument of a call
    if strict:
        secret = len(value) >= (6 if tight else 8) and _is_random(value) and not re.search(r"\s", value)
    else:
        secret = quoted or (len(value) >= 4 and (tight or not words))
    if not quoted and end - start >= _MAX_VALUE:
        end = _REST.match(text, end).end()  # type: ignore[union-attr]  # it matches the empty text
    return (start, end) if secret else None


def _judge_header(found: re.Match[str], text: str) -> Span | None:
    value = found["value"]
    innocent = _is_placeholder(value) or _CODE.match(value) or (len(value) < 24 and not _is_random(value))
    if len(value) < _MAX_VALUE and innocent:  # a longer one would be read again from every name within it
        return None
    return found.span("value") if found["scheme"] is not None or len(value) >= 8 else None


def _judge_cookie(found: re.Match[str], text: str) -> Span | None:
    value = found["value"].partition("=")[2].strip()
    return None if ";" not in value and len(value) < _MAX_VALUE and _is_placeholder(value) else found.span("value")


def _judge_argument(found: re.Match[str], text: str) -> Span | None:
    return None if _is_placeholder(found["value"]) else found.span("value")


# Bounded, because a value may be read again from every name that stands within it.
_MAX_VALUE = 256
_END = r"""\d{0,2}(?![\w-]) (?:\\*["'`]\]?)?\*{0,2}"""
# The annotation between a name and its value: password: str | None = "…".
_TYPE = r"""(?:[ \t]*:[ \t]*(?:Optional\[)?&?(?:\w{0,9}str|bytes|string)\]?(?:[ ]?\|[ ]?\w{4,9})?(?=[ \t]*=))?"""
_QUOTED = r"""[frbu]{0,2}(?P<quote>\\{0,7}["'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\\\n]))*+)"""
# A separator belongs to the value unless the value ends there: "a,b" against "a, b" and "a,user=b".
_BARE = rf"""(?P<bare>(?:[^\s"'`<>,;&|)\]}}\\]|\\(?![nrt"'\\])
    |[,;&|)\]}}](?![\s,;&|)\]}}"'`\\<>:.(\[]|\Z|[\w.%-]{{1,40}}=)){{1,{_MAX_VALUE}}}+)"""
_REST = lazy_regex(r"""[^\s"'`<>,;&|)\]}\\]*+""")
_FLAG = lazy_regex(r"(?:\A|[\s\"'])--[\w-]*\Z")
_HARMLESS = lazy_regex(
    r"(?:x-access|next|page|[be]os|pad|unk|sep|cls|mask|stop|start|end|first|last|prev)[_-]?\Z", re.IGNORECASE
)
_OWNERS = ("api", "access", "secret", "encryption", "signing", "master", "auth")
_ARGUMENT = r"""["']?(?P<value>(?<=")[^"\n]++|(?<=')[^'\n]++|[^\s"'`\\;|&]++)"""
_BLANK = r"(?:[ \t]|\\\r?\n)++"
_OTHERS = rf"(?:{_BLANK}(?!STOP)(?:[^\s\\]|\\(?![\r\n])){{1,200}}+){{0,24}}+{_BLANK}"
"""Up to 24 words of a shell command, none of which begins with STOP."""


def _context(gate: str, needle: str, kind: str, pattern: str, judge: Callable[..., Span | None]) -> _Rule:
    compiled = lazy_regex(pattern.replace("END", _END, 1), _COMMON | re.IGNORECASE)
    return _Rule(gate.encode(), needle.encode(), kind, compiled, judge)


def _assigned(gate: str, needle: str, kind: str, name: str, *, strict: bool = True) -> _Rule:
    pattern = rf"(?:{name})END{_TYPE}(?P<sep>[ \t]*(?:=>|:=|={{1,3}}|:)[ \t]*|[ \t]+)(?:{_QUOTED}|{_BARE})"
    return _context(gate, needle, kind, pattern, partial(_judge_assignment, strict=strict))


_AUTHORIZATION = r"""authorizationEND[ \t]*[:=][ \t]*(?:[frb]{0,2}\\*["'`])?
    (?P<scheme>(?:bearer|basic|token|apikey|digest|negotiate|key)[ \t]+)?(?P<value>[^\s"'`,;<>\\]++)"""
_DOCKER = r"""(?<=["'_])auth(?:\\*["'])?[ \t]*[:=][ \t]*\\*["']?
    (?P<scheme>)(?P<value>[A-Za-z0-9+/]{12,}+={0,2})(?![\w(.-])"""
_BEARER = r"bearer(?P<scheme>[ \t]+)(?P<value>[\w.~+/=-]{8,}+)"
_COOKIE = r"""cookieEND[ \t]*(?::[ \t]*\\*["'`]?|=[ \t]*\\*["'`])
    (?P<value>[\w.!\#$%&*+^|~-]{1,128}=[^\r\n"'`\\]++)"""
_URL = r"""://[^\s/:@"'`<>?\#\\\[]{0,200}+:(?P<value>[^\s/"'`<>?\\]{1,400})@(?=[\w\[%{$.-])"""
_MYSQL = r"mysql(?:dump|admin|import|show)?" + _OTHERS.replace("STOP", r"-p[^\s]") + "-p" + _ARGUMENT
_CURL = rf"""curl{_OTHERS.replace("STOP", "-u|--user")}(?:-u|--user)[ =]?["']?[^\s:"'\[]{{1,80}}+:
    (?P<value>[^\s"'`\\]++)"""
_NETRC = r"machine\s{1,9}\S{1,255}+\s{1,9}login\s{1,9}\S{1,255}+\s{1,9}password\s{1,9}(?P<value>\S++)"

_CONTEXTS = (
    _assigned("pass", "passw", "password", "passw(?:or)?d", strict=False),
    _assigned("pass", "_pass", "password", "_pass", strict=False),
    _assigned("pass", "passphrase", "password", "passphrase", strict=False),
    _context("pass", "sshpass", "password", rf"sshpass[ \t]+-p[ \t]*{_ARGUMENT}", _judge_argument),
    _assigned("pwd", "pwd", "password", "pwd", strict=False),
    _assigned("secret", "secret", "secret", "secret", strict=False),
    _assigned("token", "token", "token", "token"),
    _assigned("key", "secret", "aws-secret", "secret[_-]?access[_-]?key"),
    _assigned("key", "account", "azure-key", "account[_-]?key"),
    _assigned("key", "private", "private-key", "private[_-]?key"),
    _assigned("key", "key", "api-key", f"(?:{'|'.join(f'(?<={o})|(?<={o}[_-])' for o in _OWNERS)})key"),
    _context("auth", "authorization", "token", _AUTHORIZATION, _judge_header),
    _context("auth", "auth", "auth", _DOCKER, _judge_header),
    _context("bearer", "bearer", "token", _BEARER, _judge_header),
    _context("cookie", "cookie", "cookie", _COOKIE, _judge_cookie),
    _context("@", "://", "password", _URL, _judge_argument),
    _context("mysql", "mysql", "password", _MYSQL, _judge_argument),
    _context("curl", "curl", "password", _CURL, _judge_argument),
    _context("machine", "machine", "password", _NETRC, _judge_argument),
)

_GATED_SHAPES, _GATED_CONTEXTS = (
    [(gate, list(group)) for gate, group in groupby(rules, lambda rule: rule.gate)] for rules in (_SHAPES, _CONTEXTS)
)

_KEYS = (
    ("password", r"passw(?:or)?ds?|passphrase|pwd"),
    ("aws-secret", r"secretaccesskey"),
    ("private-key", r"privatekeys?"),
    ("api-key", rf"(?:{'|'.join(_OWNERS)}|account)keys?"),
    ("secret", r"secrets?"),
    # next_token, eos_token and their like are places in a list or marks of a vocabulary, no secrets
    ("token", r"(?<!next)(?<!page)(?<![be]os)(?<!pad)(?<!unk)(?<!sep)(?<!cls)(?<!mask)(?<!stop)token"),
    ("authorization", r"authorization"),
    ("cookie", r"cookies?"),
)
_KEY_KINDS = [(kind, lazy_regex(rf"(?:{pattern})\Z")) for kind, pattern in _KEYS]
_BASE64 = lazy_regex(r"[A-Za-z0-9+/]{12,}={0,2}")


@lru_cache(4096)
def _kind_of_key(key: str) -> str | None:
    name = re.sub(r"[\W_]|\d+\Z", "", _MARKER.sub("", key.lower()))
    return next((kind for kind, pattern in _KEY_KINDS if pattern.search(name)), None)


def _kind_of(key: object, item: object) -> str | None:
    if not isinstance(key, str) or len(key) > 100:
        return None
    if key in ("pwd", "PWD", "OLDPWD"):
        return None if isinstance(item, str) and _PATH.fullmatch(item) else "password"  # the working directory
    if key in ("auth", "_auth"):  # of Docker and npm
        return "auth" if isinstance(item, str) and _BASE64.fullmatch(item) and _is_random(item) else None
    return _kind_of_key(key)


def redact(text: str) -> str:
    """Replace the secrets in a text; return the same object if it holds none. Twice does no more than once.

    Examples
    --------
    >>> redact("export PGPASSWORD=hunter2!x")
    'export PGPASSWORD=[redacted:password]'
    """
    for _ in range(8):  # until nothing is found, for what replaces a secret may uncover the one beside it
        # One byte a character, so that positions are those of the text; what is not ASCII becomes "?".
        found = list(_find(text, text.encode("ascii", "replace")))
        if not found or not (found := _outside_markers(found, text)):
            break
        text = _replace(text, sorted(found, key=lambda item: (item[0], -item[1])))
    return text


def redact_value(value: Any) -> Any:
    """Replace the secrets in JSON-like data; return the same object if it holds none, else a changed copy.

    A text under a sensitive key (``password``, ``DB_PASSWORD``, ``openaiApiKey``, …) is replaced whole.
    """
    try:
        return _redact_any(value, None, MAX_DEPTH, {})
    except RecursionError:  # the caller's own stack was nearly full
        return TOO_DEEP


def _find(text: str, data: bytes) -> Iterator[Found]:
    for gate, rules in _GATED_SHAPES:
        if gate in data:
            for rule in rules:
                if rule.needle in data:
                    yield from _shapes(rule.pattern, rule.kind, text)
    capitals = data.translate(None, _SMALL)
    for rule in _CAPITAL_SHAPES:
        if rule.needle in capitals:
            yield from _shapes(rule.pattern, rule.kind, text)
    low = data.lower()
    for gate, rules in _GATED_CONTEXTS:
        if gate in low:
            for rule in rules:
                yield from _values(rule, text, low)


def _redact_any(value: Any, kind: str | None, depth: int, seen: _Seen) -> Any:
    if isinstance(value, str):
        whole = kind is not None and value and not _MARKER.fullmatch(value)
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
        new = _redact_any(item, _kind_of(name, item), depth, seen)
        changed = changed or name is not key or new is not item
        numbers = count(2)
        while name is not key and (name in copy or name in value):  # two secrets as keys stay two entries
            name = f"{stem}#{next(numbers)}"
        copy[name] = new
    return copy if changed else value


def _redact_sequence(value: Any, kind: str | None, depth: int, seen: _Seen) -> Any:
    copy, changed, flag = [], False, None
    for item in list(value):
        new = _redact_any(item, kind or _kind_of(flag, item), depth, seen)
        flag = item if isinstance(item, str) and item.startswith("--") else None  # the arguments of a command
        changed = changed or new is not item
        copy.append(new)
    return value if not changed else copy if isinstance(value, list) else tuple(copy)


def _shapes(pattern: re.Pattern[str], kind: str, text: str) -> Iterator[Found]:
    for found in pattern.finditer(text):
        start, end = found.span(min(pattern.groups, 1))
        if start < end:
            yield start, end, kind


def _values(rule: _Rule, text: str, low: bytes) -> Iterator[Found]:
    at = low.find(rule.needle)
    while at >= 0:
        after = at + len(rule.needle)
        found = rule.pattern.match(text, at)
        if found and rule.judge and (span := rule.judge(found, text)):
            yield *span, rule.kind
            after = span[1]
        at = low.find(rule.needle, after)


def _outside_markers(found: list[Found], text: str) -> list[Found]:
    markers = {match.span() for match in _MARKER.finditer(text)}
    inside = {position for start, end in markers for position in range(start + 1, end)}
    return [item for item in found if not (item[0] in inside or item[1] in inside or item[:2] in markers)]


def _replace(text: str, found: list[Found]) -> str:
    parts: list[str] = []
    done, (start, end, kind) = 0, found[0]
    # one more beyond the end, so that the last one is written out too
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
    Usage: ("model",),
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
