"""The line of an error's output that says what went wrong."""

from __future__ import annotations

import re
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.lessons.clean import strip_prefixes
from coherence.lessons.line_scores import EXCEPTION, FRAME, NAMED, NOTHING, STACK_FRAME, WRAPPING, rated, weighed

REPORTED = 3
"""Lines before one that only reports a failure, among which is the failure itself."""


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
    start = max((at for at, line in enumerate(lines) if _TRACEBACK in line), default=None)
    if start is None:
        return ""
    column = lines[start].index("Traceback")
    prefix = lines[start][:column]
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
    root = re.split(r"Caused by: | ---> ", causes[-1])[-1].strip() if causes else ""
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
            if best == NAMED:
                break
    message = _RULER.sub("", chosen) or chosen
    joined = _joined(lines, at, message)
    reported = _reported(lines, at) if best == WRAPPING else ""
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
    if message.endswith((":", " (")) and message.count(" ") < 8:
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
