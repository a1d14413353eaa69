"""The line of an error's output that says what went wrong, by how much each line says about the cause."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.lessons.clean import ErrorLine, strip_prefixes
from coherence.lessons.error_words import EXCEPTION_NAME, TELLING, VAGUE, WRAPPERS

REPORTED = 3
"""Lines before one that only reports a failure, among which is the failure itself."""

MAX_SCORED = 120
"""Lines that are weighed; of more, those that hold a telling word come first."""

NAMED, SAID, TOLD, VAGUELY, WRAPPING, NOTHING, USUAL, FRAME = 5, 4, 3, 2, 1, 0, -1, -2
"""Scores of a line: an exception's name, or an error level with a place; a telling word; an error level alone; a vague
word such as "failed"; a wrapper, which says only that something failed; nothing; a low log level; a stack frame."""


class Headline(NamedTuple):
    """The line that says what went wrong."""

    message: str
    """The line without prefixes; a message that a tool spreads over two lines is joined."""
    reported: str = ""
    """The line right before a message that only says that something failed; may be empty."""


def find_headline(lines: list[str]) -> Headline:
    r"""Return the line that says what went wrong.

    It stands last in Python (after the last traceback) and Java (the last ``Caused by:``); in everything else it is the
    first of the most telling lines.

    Parameters
    ----------
    lines : list of str
        The result of `clean_lines`.

    Examples
    --------
    >>> find_headline(["make: *** [all] Error 2", "x.c:3:5: error: unknown type name 'u8'"]).message
    "unknown type name 'u8'"
    """
    message = _of_python(lines) or _of_causes(lines) or _of_rust(lines)
    return Headline(message) if message else _most_telling(lines)


def _of_python(lines: list[str]) -> str:
    start = max((at for at, line in enumerate(lines) if _TRACEBACK in line), default=None)  # the last of a chain
    if start is None:
        return ""
    column = lines[start].index("Traceback")
    prefix = lines[start][:column]  # a logger or container writes it before every line
    for at in range(start + 1, len(lines)):
        line = lines[at]
        body = line[column:] if line[:column] == prefix else line
        if not body or body[0] in " \t":
            continue
        message = body if _EXCEPTION_LINE.match(body) else strip_prefixes(body).text
        if _EXCEPTION_LINE.match(message) and not message.startswith("File "):
            following = _next(lines, at) if _is_bare(message) else ""
            return f"{message.rstrip(':')}: {following}" if following else message
    return ""


def _of_causes(lines: list[str]) -> str:
    causes = [line for line in lines if "Caused by: " in line or " ---> " in line]
    root = re.split(r"Caused by: | ---> ", causes[-1])[-1].strip() if causes else ""  # the innermost cause
    return root if EXCEPTION.match(root) else ""


def _of_rust(lines: list[str]) -> str:
    for at, line in enumerate(lines):
        found = _PANICKED.search(line) if "panicked at" in line else None
        if found:
            return f"panic: {found[1] or (_next(lines, at) if found[0].endswith(':') else '')}"
    return ""


def _most_telling(lines: list[str]) -> Headline:
    best, chosen, at = FRAME - 1, "", 0
    for number in weighed(lines):
        text, strength = rated(lines[number])
        if strength > best:
            best, chosen, at = strength, text, number
            if best == NAMED:  # nothing is more telling, and of equals the first counts
                break
    message = _RULER.sub("", chosen) or chosen
    joined = _joined(lines, at, message)
    reported = _reported(lines, at) if best == WRAPPING else ""  # any other line says itself what failed
    return Headline(f"{message.rstrip(': (')}: {joined}" if joined else message, reported)


def _reported(lines: list[str], at: int) -> str:
    """Return the line before one that only says that something failed: it may say what failed."""
    for line in reversed(lines[max(at - REPORTED, 0) : at]):
        text, strength = rated(line)
        if strength == NOTHING and " " in text:
            return text
    return ""


def _joined(lines: list[str], at: int, message: str) -> str:
    """Return what belongs to a message but stands in a later line."""
    if message.endswith((":", " (")) and message.count(" ") < 8:  # a longer line says enough without the next
        return _next(lines, at)
    if "cannot find symbol" in message:
        for line in lines[at + 1 : at + 5]:
            found = _SYMBOL.search(line)
            if found:
                return found[1]
    return ""


def _is_bare(message: str) -> bool:
    return message.endswith(":") or _BARE.fullmatch(message) is not None


def _next(lines: list[str], at: int) -> str:
    """Return the text of the next line, or nothing if it is a frame or there is none."""
    text = strip_prefixes(lines[at + 1]).text if at + 1 < len(lines) else ""
    return "" if STACK_FRAME.match(text) or text.startswith(("During handling", "The above exc")) else text


_TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION_LINE = lazy_regex(r"[A-Za-z_][\w.]{0,200}(?:\[[^\]]{1,40}\])?(?::(?:\s|$)|$)")
_PANICKED = lazy_regex(r"thread '[^']{0,80}'(?: \(\d+\))? panicked at (?:'(.{1,400})', )?([^\s:']{1,300}):\d+:\d+:?")
_SYMBOL = lazy_regex(r"symbol:\s+(.{1,160})")
_BARE = lazy_regex(r"[\w.]+")
_RULER = lazy_regex(r"([@=*#~_-])\1{7,}")


@lru_cache(512)
def rated(written: str) -> tuple[str, int]:
    """Return a line without its prefixes, and its score, from `FRAME` to `NAMED`.

    Examples
    --------
    >>> rated("npm ERR! Missing script: build"), rated("make: *** [all] Error 2")
    (('Missing script: build', 4), ('make: *** [all] Error 2', 1))
    """
    line = strip_prefixes(written)
    return line.text, _score(written, line)


def weighed(lines: list[str]) -> list[int]:
    """Return the numbers of the lines that are weighed: all, or those that hold a telling word."""
    if len(lines) <= MAX_SCORED:
        return list(range(len(lines)))
    found = [at for at, line in enumerate(lines) if _holds(line.lower(), (*TELLING, "error", "exception", "fail"))]
    half = MAX_SCORED // 2
    return found[:half] + found[half:][-half:] or [0]  # tools say the cause first or last


def _holds(low: str, parts: tuple[str, ...]) -> bool:
    return any(map(low.__contains__, parts))


def _score(written: str, line: ErrorLine) -> int:
    text = line.text
    is_place_alone = line.place and text.isdigit()
    if is_place_alone or STACK_FRAME.match(text) or SOURCE.match(written):
        return FRAME
    low = text.lower()
    if _WRAPPER.match(text) or _holds(low, WRAPPERS) or (line.place and " " not in text):
        return WRAPPING
    telling = (_holds(low, TELLING) and _TELLING.search(low) is not None) or _REASON.search(text) is not None
    if line.warning and not line.error:
        return WRAPPING if telling and not line.place else USUAL  # a compiler's warning stops no build
    named = EXCEPTION.match(text)
    if named:
        return SAID if "Warning" in named[0] else NAMED  # an error beside it is the cause
    if line.error and line.place:
        return NAMED
    if telling:
        return SAID
    if line.error:
        return TOLD
    return VAGUELY if "BackOff" in text or (_holds(low, VAGUE) and _VAGUE.search(low)) else NOTHING


EXCEPTION = lazy_regex(
    rf"{EXCEPTION_NAME}"
    r"(?:\s?\[\w{1,60}\]|\s\(\w{1,60}\))?(?::\s|:?$|\s-\s|\s\($)|(?:[a-z_]\w{0,60}\.){1,8}[A-Z]\w{1,80}:\s"
    r"|[A-Z]{1,6}\d{3,6}:\s|error(?:\[[A-Z]\d{2,5}\]|\s[A-Z]{1,6}\d{2,6})\s?:|(?:panic|fatal error):\s"
    r"|Error\s\[\w{1,60}\]:|(?:Syntax|Type|Reference|Range|Key|Value)Error\b"
)
STACK_FRAME = lazy_regex(
    r"at \S{1,300}(?:\(| \(|:\d+)|at (?:async |new )?[\w.$<>\[\] ]{1,120} \(|File \"|\.\.\. \d+ (?:more|common)"
    r"|goroutine \d|#\d+ |from \S{1,300}:\d+:in |(?:\S{1,300}:\d+:)?in [`'][^`'\n]{1,120}'$|\^+$|~+\^|[-=_*~.]{5,}"
    r"|\S{1,200}:\d+ \+0x|Require stack|node:internal|throw |raise |\d+:\s+0x|stack backtrace|note: run with"
)
SOURCE = lazy_regex(r"\s*+(?:(?:>\s*+)?\d{1,6}\s*+\||\|)\s|\s+(?:throw|raise|return|if|import|from|assert)\b")
_WRAPPER = lazy_regex(
    r"FAIL(?:ED)?\b|in \S+(?: [\d:,-]+)?$|Completed \d|\S+@\S+ \w+: |(?:file|path|cwd|command|errno|syscall"
    r"|code|signal) \S+$|collecting \S+|--- FAIL|code [A-Z]\w+$|errno:? -?\d+|syscall:? |\d+ (?:errors?"
    r"|failed)\b|Found \d+ errors?|=+ |[^{]{0,200}=>$|\d{1,2}\. |Failures?(?:/Error)?:|ERRORS?!*$"
    r"|[Ss]ee (?:also )?https?:"
    r"|(?:Build|BUILD|Task|Job|Step|Tests?|Deploy\w{0,9}|deploy\w{0,9}|Pipeline|Stage|Finished|failed)\b.{0,60}\b"
    r"(?:FAILED|FAILURE|failed|with \d+)\W*$"
)
_TELLING = lazy_regex("(?<![\\w/.=-])(?:" + "|".join(map(re.escape, TELLING)) + ")(?![=/_])(?!-\\w)")
_VAGUE = lazy_regex(r"(?<![\w/.=-])(?:" + "|".join(map(re.escape, VAGUE)) + r")(?:s|d|ed|ing|ure|ures)?(?![\w=/-])")
_REASON = lazy_regex(
    r"\b[Nn]o (?:\w+ ){1,3}(?:to|in|for|of|matching|found|available|was|were|provided|specified|named|with)\b"
    r"|(?<![\w/.-])(?:Failed|Err|BackOff|OOM|Insufficient|Unhealthy|Invalid)[A-Z][a-z]\w+(?![\w./(])"
    r"|(?<![\w/.-])[A-Z]\w{1,40}(?<=[a-zM])(?:Killed|Failed|Denied|NotFound|NotReady|Exceeded|Refused"
    r"|Expired|Unavailable|Unhealthy|Lost|Evicted|Rejected|Conflict|Mismatch)(?![\w./(])"
)
"""The absence of something, or a reason in one word, as Kubernetes and clouds give it."""
