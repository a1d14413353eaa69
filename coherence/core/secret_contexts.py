r"""Secrets of which the words beside them say what they are: ``password=…``, ``Authorization: …``, ``curl -u …``.

A value is left alone if it is a placeholder, a reference in source code, or a plain word: other rooms compare texts, so
a false alarm costs too. Nearly no text holds one, so a rule runs only where its *needle*, a literal that it begins
with, is in the text. Every pattern repeats possessively or a bounded number of times, so that hostile text costs time
in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

from coherence.core.lazy import lazy_regex
from coherence.core.plain_view import Found
from coherence.core.secret_shapes import is_random

Span: TypeAlias = tuple[int, int]
MARKER = lazy_regex(r"\[redacted:[a-z0-9-]+\]")
"""Stands for a secret."""
_COMMON = re.ASCII | re.VERBOSE


class _Rule(NamedTuple):
    gate: bytes  # a literal that neighbouring rules share, looked for first
    needle: bytes
    kind: str
    pattern: re.Pattern[str]
    judge: Callable[[re.Match[str], str], Span | None]  # says what of a context is secret, if anything


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


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.fullmatch(value) or _MASKED.search(value))


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
        secret = len(value) >= (6 if tight else 8) and is_random(value) and not re.search(r"\s", value)
    else:
        secret = quoted or (len(value) >= 4 and (tight or not words))
    if not quoted and end - start >= _MAX_VALUE:
        end = _REST.match(text, end).end()  # type: ignore[union-attr]  # it matches the empty text
    return (start, end) if secret else None


def _judge_header(found: re.Match[str], text: str) -> Span | None:
    value = found["value"]
    innocent = _is_placeholder(value) or _CODE.match(value) or (len(value) < 24 and not is_random(value))
    if len(value) < _MAX_VALUE and innocent:  # a longer one would be read again from every name within it
        return None
    return found.span("value") if found["scheme"] is not None or len(value) >= 8 else None


def _judge_cookie(found: re.Match[str], text: str) -> Span | None:
    value = found["value"].partition("=")[2].strip()
    return None if ";" not in value and len(value) < _MAX_VALUE and _is_placeholder(value) else found.span("value")


def _judge_argument(found: re.Match[str], text: str) -> Span | None:
    return None if _is_placeholder(found["value"]) else found.span("value")


_MAX_VALUE = 256
_END = r"""\d{0,2}(?![\w-]) (?:\\*["'`]\]?)?\*{0,2}"""
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
_HOOK = r"""hooks\.slack\.com/(?:services|workflows|triggers)/(?P<value>(?!X{3}|T0{3})[\w/-]{16,}+)"""
_TEAMS_HOOK = r"""webhookb2/(?P<value>[0-9a-f][\w@-]{30,80}/IncomingWebhook/[\w/-]{32,}+)"""
_DISCORD_HOOK = r"""/api/webhooks/\d{15,21}/(?P<value>[\w-]{50,}+)"""
_ZAPIER_HOOK = r"""hooks\.zapier\.com/hooks/catch/(?P<value>\d{4,10}/\w{5,}+)"""
_PEM = r"""-----BEGIN\ (?:[A-Z0-9]{1,12}\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?=(?:[^-]|-(?!----))*?[A-Za-z0-9+/]{16}) (?:[^-]|-(?!----))*+ -----END\ [A-Z0-9 ]{1,60}-----
      # cut off: headers and lines of base64, each behind what a listing or a diff puts at the start of a line
      | (?:(?:\s|\\[nrt]|["'+>|,]|\d{1,6}[\t:→])*+ (?:[A-Z][\w-]{1,20}:\ [^\n\\]{1,80}|[A-Za-z0-9+/=]{16,}+))++
        (?:(?:\s|\\[nrt])*+[A-Za-z0-9+/=]++(?=\s*\Z))? )"""
_MYSQL = r"mysql(?:dump|admin|import|show)?" + _OTHERS.replace("STOP", r"-p[^\s]") + "-p" + _ARGUMENT
_CURL = rf"""curl{_OTHERS.replace("STOP", "-u|--user")}(?:-u|--user)[ =]?["']?[^\s:"'\[]{{1,80}}+:
    (?P<value>[^\s"'`\\]++)"""
_NETRC = r"machine\s{1,9}\S{1,255}+\s{1,9}login\s{1,9}\S{1,255}+\s{1,9}password\s{1,9}(?P<value>\S++)"


def _whole(found: re.Match[str], _: str) -> Span:
    return found.span("value" if "value" in found.re.groupindex else 0)


def _cased(gate: str, needle: str, kind: str, pattern: str) -> _Rule:
    return _Rule(gate.encode(), needle.encode(), kind, lazy_regex(pattern, _COMMON), _whole)


_CONTEXTS = (
    _cased("hook", "hooks.slack.com/", "slack-webhook", _HOOK),
    _cased("hook", "webhookb2/", "teams-webhook", _TEAMS_HOOK),
    _cased("hook", "/api/webhooks/", "discord-webhook", _DISCORD_HOOK),
    _cased("hook", "hooks.zapier.com/", "zapier-webhook", _ZAPIER_HOOK),
    _cased("-----begin", "-----begin", "private-key", _PEM),
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

_GATED = [(gate, list(group)) for gate, group in groupby(_CONTEXTS, lambda rule: rule.gate)]

_KEYS = (
    ("password", r"passw(?:or)?ds?|passphrase|pwd"),
    ("aws-secret", r"secretaccesskey"),
    ("private-key", r"privatekeys?"),
    ("api-key", rf"(?:{'|'.join(_OWNERS)}|account)keys?"),
    ("secret", r"secrets?"),
    ("token", r"(?<!next)(?<!page)(?<![be]os)(?<!pad)(?<!unk)(?<!sep)(?<!cls)(?<!mask)(?<!stop)token"),
    ("authorization", r"authorization"),
    ("cookie", r"cookies?"),
)
_KEY_KINDS = [(kind, lazy_regex(rf"(?:{pattern})\Z")) for kind, pattern in _KEYS]
_BASE64 = lazy_regex(r"[A-Za-z0-9+/]{12,}={0,2}")


@lru_cache(4096)
def _kind_of_key(key: str) -> str | None:
    name = re.sub(r"[\W_]|\d+\Z", "", MARKER.sub("", key.lower()))
    return next((kind for kind, pattern in _KEY_KINDS if pattern.search(name)), None)


def kind_of(key: object, item: object) -> str | None:
    """Return the kind of secret that a key of a mapping says its item is, if any.

    Examples
    --------
    >>> kind_of("DB_PASSWORD", "tulip"), kind_of("max_tokens", "9")
    ('password', None)
    """
    if not isinstance(key, str) or len(key) > 100:
        return None
    if key in ("pwd", "PWD", "OLDPWD"):
        return None if isinstance(item, str) and _PATH.fullmatch(item) else "password"  # the working directory
    if key in ("auth", "_auth"):  # of Docker and npm
        return "auth" if isinstance(item, str) and _BASE64.fullmatch(item) and is_random(item) else None
    return _kind_of_key(key)


def find_contexts(text: str, data: bytes) -> Iterator[Found]:
    """Yield the secrets of a text that the words beside them give away.

    Parameters
    ----------
    text : str
        Any text.
    data : bytes
        The same with one byte for each character.
    """
    low = data.lower()
    for gate, rules in _GATED:
        if gate in low:
            for rule in rules:
                yield from _values(rule, text, low)


def _values(rule: _Rule, text: str, low: bytes) -> Iterator[Found]:
    at = low.find(rule.needle)
    while at >= 0:
        after = at + len(rule.needle)
        found = rule.pattern.match(text, at)
        if found and (span := rule.judge(found, text)):
            yield *span, rule.kind
            after = span[1]
        at = low.find(rule.needle, after)
