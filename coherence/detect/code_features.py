"""Features that come unasked with code: how texts name them, how code shows them, and what else is new in code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.asked import CODE_LINE, FENCE
from coherence.detect.read_once import read_once
from coherence.detect.tables import expression, table

WATCHING = ("logging", "tracing", "metrics", "interface")
"""Features that tell what happens, or are a thing of their own: hardly ever a means to mend something."""

_FEATURES: dict[str, dict[str, str]] = table("additions")["features"]
_GROUPS = "|".join(
    rf"(?P<{name}>(?<!\w)(?:{expression(texts['words'])})(?!\w)|{expression(texts['dense'])})"
    for name, texts in _FEATURES.items()
)
# Within a word no group is tried: only a name of Chinese, Japanese or Korean may begin there.
_NAMED = lazy_regex(rf"(?:(?<!\w)|(?=[\u3000-\uffff]))(?:{_GROUPS})", re.IGNORECASE)
"""One group for each feature."""
_CODE_FEATURES = lazy_regex(
    r"(?P<logging>\blog(?:ger|ging)?[.:]{1,2}\w|console\.(?:log|info|warn|error))"
    r"|(?P<tracing>trac(?:er|ing)\b|start_as_current_span|opentelemetry)"
    r"|(?P<metrics>metrics?\b|counter\b|statsd|prometheus|histogram\b)"
    r"|(?P<timeout>time_?out\b|wait_for\b)"
    r"|(?P<retries>retr(?:y|ies)\b|backoff|tenacity)"
    r"|(?P<caching>lru_cache|memoize|cache[.(\[])",
    re.IGNORECASE,
)

COMMENT = lazy_regex(r"(?:#|//|--|/\*)\s?([A-Za-z][^\n]{2,200})")
_SIGNATURE = lazy_regex(r"\b(?:def|function|func|fn)\s{1,3}(\w{1,80})\s?\(([^()\n]{0,400})\)")
_DEFAULT = lazy_regex(r"(\w{2,60})(?:\s?\??:\s?[^,=]{1,60})?\s?=")

COMMON = word_set(
    "import from return public private static class void final this self none null true false with async await "
    "function "
    "const else elif while raise throw throws except catch print string String yield default case break"
)
"""Words of code that two hunks share by chance."""

_SENTENCES = lazy_regex(r"\w[.!?] [A-Z]")
_STATEMENT = lazy_regex(
    r"^[+ \t]{0,20}(?P<act>CREATE|DROP|ALTER|UPDATE|DELETE FROM|INSERT INTO|TRUNCATE|GRANT|REVOKE)"
    r"(?: (?:UNIQUE|OR REPLACE|MATERIALIZED|TEMPORARY|CONCURRENTLY))*"
    r" (?P<what>(?:INDEX|TRIGGER|VIEW|TABLE|FUNCTION|COLUMN|USER|ROLE|SCHEMA|POLICY|SEQUENCE|TYPE"
    r"|EXTENSION)? ?[\w.]{1,60})",
    re.MULTILINE,
)
_DEFINED = lazy_regex(
    r"(?:\b(?:def|class|func|function|fn|struct|interface|trait)\s{1,3}|\bpublic (?:static )?\w+ )(\w{1,80})"
)
_PARTS = lazy_regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAME = lazy_regex(r"[^\W\d]\w{3,80}")
_PLAIN = lazy_regex(r"\w+")


@read_once
def features_in(text: str) -> frozenset[str]:
    """Return the features that a text names."""
    return frozenset(match.lastgroup or "" for match in _NAMED.finditer(text))


def named(clause: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the features that a clause names, and where, in its order."""
    return ((match.lastgroup or "", match) for match in _NAMED.finditer(clause))


def code_of(text: str) -> tuple[str, str]:
    """Return the code of an answer, and the rest of it."""
    code = "\n".join(FENCE.findall(text)) if "```" in text else ""
    lines = (FENCE.sub("\n", text) if code else text).split("\n")
    bare = [line for line in lines if CODE_LINE.match(line)]
    # "with this change: it works. Next, run it." begins as a line of Python does.
    prose = (line for line in lines if not CODE_LINE.match(line) or _SENTENCES.search(line))
    return "\n".join([code, *bare]).strip("\n"), "\n".join(prose)


def code_features(task: str, code: str) -> Iterator[str]:
    """Yield the features and optional parameters that are new in an answer's code."""
    lines = code.split("\n")
    is_diff = any(line[:1] == "-" for line in lines) and any(line[:1] == "+" for line in lines)
    known = task
    if is_diff:
        known += "\n" + "\n".join(line for line in lines if line[:1] != "+")
        code = "\n".join(line[1:] for line in lines if line[:1] == "+")
    has_code = is_diff or _SIGNATURE.search(task) is not None or "```" in task
    found: dict[str, str] = {}
    for match in _CODE_FEATURES.finditer(code):
        name = match.lastgroup or ""
        if name not in found and name not in features_in(known) and name not in in_code(known):
            found[name] = name
    # Code that is not shown may have had one of them before.
    if len(found) >= (1 if has_code else 2):
        yield from found
    if has_code:
        before = {match[1] for match in _SIGNATURE.finditer(known)}
        for match in _SIGNATURE.finditer(code):
            if match[1] in before or is_diff:
                yield from (name for name in _DEFAULT.findall(match[2]) if name not in known)


def other_code(task: str, code: str, text: str) -> Iterator[str]:
    """Yield what an answer's code does besides what the task names: hunks, statements and definitions of their own.

    A hunk that shares a name with one that the task names belongs to it, and so does a definition that is used.
    """
    lower = task.lower()
    lines = code.split("\n")
    if any(line[:1] == "-" for line in lines) and any(line[:1] == "+" for line in lines):
        yield from _other_hunks(lower, lines)
        return
    acts = list(_STATEMENT.finditer(text))
    theirs = [_PLAIN.findall(act["what"].lower()) for act in acts]
    if len(acts) > 1:  # a single statement is the one that was asked for
        for act, words in zip(acts, theirs, strict=True):
            kind = words[0] if len(words) > 1 else act["act"].lower()
            if kind not in lower and (act["act"].lower() not in lower) and kind != "table":
                yield kind
            elif kind == "table" and act["act"].lower() == "drop" and words[-1] not in lower:
                yield act["what"].lower()
    defined = _DEFINED.findall(code)
    if len(defined) > 1 and any(name.lower().strip("_") in lower for name in defined):
        used = _PLAIN.findall(code)
        yield from (name for name in defined if used.count(name) == 1 and not _shares(lower, name))


def _shares(lower: str, name: str) -> bool:
    """Tell whether a task has a part of a name in snake or camel case."""
    parts = [part for part in _PARTS.findall(name) if len(part) > 2]
    return any(part.lower() in lower for part in parts) or name.startswith(("test", "Test", "__", "main"))


def _other_hunks(lower: str, lines: list[str]) -> Iterator[str]:
    """Yield what is defined or first named in the hunks of a diff that have nothing to do with the task."""
    hunks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith(("@@", "diff ", "--- ")):
            hunks.append([])
        elif line[:1] in ("+", "-") and not line.startswith("+++"):
            hunks[-1].append(line[1:])
    named = [frozenset(_NAME.findall("\n".join(hunk))) - COMMON for hunk in hunks if hunk]
    theirs = [any(name.lower() in lower for name in names) for names in named]
    if len(named) < 2 or not any(theirs):
        return
    known = frozenset().union(*(names for names, its in zip(named, theirs, strict=True) if its))
    for hunk, names, its in zip([hunk for hunk in hunks if hunk], named, theirs, strict=True):
        if not its and names and known.isdisjoint(names):
            text = "\n".join(hunk)
            yield next(iter(_DEFINED.findall(text)), next(name for name in _NAME.findall(text) if name in names))


def in_code(known: str) -> set[str]:
    """Return the features that code shows."""
    return {match.lastgroup or "" for match in _CODE_FEATURES.finditer(known)}
