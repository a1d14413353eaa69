"""The lines of an error's output that say what went wrong."""

from __future__ import annotations

import re
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.lessons.clean import ErrorLine, strip_prefixes
from coherence.lessons.line_scores import (
    EXCEPTION,
    FRAME,
    NAMED,
    NOTHING,
    SOURCE,
    STACK_FRAME,
    WRAPPING,
    rated,
    weighed,
)

REPORTED = 3
"""Lines before one that only reports a failure, among which is what failed."""


class Headline(NamedTuple):
    """What went wrong, in a line, and what else helps to know it."""

    message: str
    """The line without prefixes; what a tool spreads over two lines is joined."""
    second: str
    """Another telling line, such as a hint or the outer error; may be empty."""
    details: tuple[str, ...] = ()
    """Indented lines right after the message, at most four, which may name what the message leaves out."""
    literals: str = ""
    """Quoted file names and addresses in the line of source that failed; may be empty."""
    reported: str = ""
    """What stands right before a message that only says that something failed; may be empty."""


def find_headline(lines: list[str]) -> Headline:
    r"""Return the line that says what went wrong.

    What stands last is the message in Python (after the last traceback), pytest (the last block of ``E`` lines) and
    Java (the last ``Caused by:``); in everything else the first of the most telling lines is.

    Parameters
    ----------
    lines : list of str
        What `clean_lines` returns.

    Examples
    --------
    >>> find_headline(["make: *** [all] Error 2", "x.c:3:5: error: unknown type name 'u8'"]).message
    "unknown type name 'u8'"
    """
    for rule in (_of_python, _of_pytest, _of_causes, _of_rust):
        found = rule(lines)
        if found is not None:
            return found
    return _most_telling(lines)


def _of_python(lines: list[str]) -> Headline | None:
    starts = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return None
    ends = [(at, line) for start in starts[-2:] for at, line in [_end_of_traceback(lines, start)] if line]
    if not ends:
        return None
    at, message = ends[-1]
    earlier = ends[0][1] if len(ends) > 1 and ends[0][1] != message else ""
    following = _continued(lines, at) if not earlier or _is_bare(message) else ""
    if _counts(message):
        message = _with_first(lines, at, message)
    elif _is_bare(message) and following:
        message, following = f"{message.rstrip(':')}: {following}", ""
    literals = " ".join(_FILE_LITERAL.findall(_failed_source(lines, at)))
    return Headline(message, earlier or following or _hint(lines, at), literals=literals)


def _failed_source(lines: list[str], at: int) -> str:
    """Return the line of source that a traceback of Python, which ends at a line, shows last."""
    for before in range(at - 1, max(at - 5, 0), -1):
        if 'File "' in lines[before]:
            return lines[before + 1] if before + 1 < at else ""
    return ""


def _with_first(lines: list[str], at: int, message: str) -> str:
    """Return a message that counts errors, with the first of them, which stands in the next two lines."""
    marked = lines[at][:1] == "E" and lines[at][1:2] == " "
    field, *said = [line[marked:].strip() for line in lines[at + 1 : at + 3]] or [""]
    return " ".join([f"{message}:", f"'{field}'" if _FIELD_PATH.fullmatch(field) else field, *said])


def _end_of_traceback(lines: list[str], start: int) -> tuple[int, str]:
    column = lines[start].index("Traceback")
    if column and "Group Traceback" in lines[start]:
        column = max(lines[start].index("Exception Group"), 0)
    prefix = lines[start][:column].replace("+", "|")
    for at in range(start + 1, min(start + 400, len(lines))):
        line = lines[at]
        body = line[column:] if line[:column].replace("+", "|") == prefix else line
        if not body or body[0] in " \t":
            continue
        stripped = strip_prefixes(body).text if not _EXCEPTION_LINE.match(body) else body
        if _EXCEPTION_LINE.match(stripped) and not stripped.startswith("File "):
            return at, stripped
        if "Traceback (most recent call last)" in line:
            break
    return start, ""


def _of_pytest(lines: list[str]) -> Headline | None:
    marked = [at for at, line in enumerate(lines) if line.startswith("E  ") and len(line) > 4]
    if not marked:
        return None
    first = marked[-1]
    while first - 1 in marked[-60:]:
        first -= 1
    block = [lines[at][1:].strip() for at in marked if at >= first]
    named = next((line for line in block if EXCEPTION.match(line) and not line.startswith("File ")), block[0])
    rest = [line for line in block if line != named and not line.startswith(("+", "-", "?", "File ", "^"))]
    message = named
    if _counts(named):
        message = _with_first(lines, next(at for at in marked if at >= first and named in lines[at]), named)
    if named.startswith("assert "):
        message = f"AssertionError: {named}"
    return Headline(message, rest[0] if rest else "")


def _of_causes(lines: list[str]) -> Headline | None:
    causes = [line for line in lines if "Caused by: " in line or " ---> " in line]
    if not causes:
        return None
    root = re.split(r"Caused by: | ---> ", causes[-1])[-1].strip()
    if not EXCEPTION.match(root):
        return None
    outer = next(
        (line for line in lines if "Caused by: " not in line and EXCEPTION.match(strip_prefixes(line).text)), ""
    )
    return Headline(root, strip_prefixes(outer).text if outer else "")


def _of_rust(lines: list[str]) -> Headline | None:
    for at, line in enumerate(lines):
        found = _PANICKED.search(line) if "panicked at" in line else None
        if found:
            follows = found[0].endswith(":") and at + 1 < len(lines)
            message = f"panic: {found[1] or (strip_prefixes(lines[at + 1]).text if follows else '')}"
            outer = _quoting(lines, at)
            return Headline(outer, message) if outer else Headline(message, "")
    return None


def _quoting(lines: list[str], at: int) -> str:
    """Return the error of the program that quotes a line among the output of another one, or nothing."""
    if not any(_OUTPUT_OF.search(line) for line in lines[max(at - 40, 0) : at]):
        return ""
    before = (strip_prefixes(line) for line in lines[max(at - 60, 0) : at])
    return next((line.text for line in before if line.error and _QUOTED.search(line.text)), "")


def _most_telling(lines: list[str]) -> Headline:
    best = FRAME - 1
    chosen, at = ErrorLine(lines[0].strip() if lines else "", False, False, ""), 0
    for number in weighed(lines):
        line, strength = rated(lines[number])
        if strength > best:
            best, chosen, at = strength, line, number
            if best == NAMED:
                break
    message = _RULER.sub("", chosen.text) or chosen.text
    joined = _joined(lines, at, message)
    if _counts(message):
        message = _with_first(lines, at, message)
    elif joined:
        message = f"{message.rstrip(': (')}: {joined}"
    reported = _reported(lines, at) if best == WRAPPING else ""
    return Headline(message, _hint(lines, at), _details(lines, at), reported=reported)


def _reported(lines: list[str], at: int) -> str:
    """Return what a line that only says that something failed comes after: what failed said it right before."""
    for line in reversed(lines[max(at - REPORTED, 0) : at]):
        told, strength = rated(line)
        if strength == NOTHING and " " in told.text:
            return told.text
    return ""


def _joined(lines: list[str], at: int, message: str) -> str:
    """Return what belongs to a message but stands in a later line."""
    if message.endswith((":", " (")) and message.count(" ") < 8 and at + 1 < len(lines):
        return strip_prefixes(lines[at + 1]).text
    if "cannot find symbol" in message:
        for line in lines[at + 1 : at + 5]:
            found = _SYMBOL.search(line)
            if found:
                return found[1]
    return ""


def _details(lines: list[str], at: int) -> tuple[str, ...]:
    found: list[str] = []
    margin = _MARGIN.match(lines[at])
    least = margin.end() if margin else 0
    boxed = margin is not None and not margin[0].isspace() and margin[0] != ""
    for line in lines[at + 1 : at + 9]:
        indented = _MARGIN.match(line)
        if indented is None or (boxed and not indented[0].strip()):
            break
        text = line[indented.end() :]
        if indented.end() <= least and not boxed and not _SENTENCE.match(text):
            break
        if (
            text
            and not STACK_FRAME.match(text)
            and not _WHERE.match(text)
            and not SOURCE.match(line)
            and len(found) < 4
        ):
            found.append(text)
    return tuple(found)


def _hint(lines: list[str], at: int) -> str:
    for line in lines[at + 1 : at + 12]:
        found = _HINT.search(line)
        if found:
            return line[found.start() :].strip()
    return ""


def _counts(message: str) -> bool:
    """Return whether a message only counts errors, or names a status."""
    return ("validation error" in message or "(Request ID" in message) and _COUNTED.search(message) is not None


def _is_bare(message: str) -> bool:
    return message.endswith(":") or _BARE.fullmatch(message) is not None


def _continued(lines: list[str], at: int) -> str:
    for line in lines[at + 1 : at + 5]:
        line = line.strip()
        if "During handling" in line or "The above exc" in line or "Traceback (" in line:
            break
        if len(line) > 3 and not STACK_FRAME.match(line):
            return line
    return ""


_EXCEPTION_LINE = lazy_regex(r"[A-Za-z_][\w.]{0,200}(?:\[[^\]]{1,40}\])?(?::(?:\s|$)|$)")
_PANICKED = lazy_regex(r"thread '[^']{0,80}'(?: \(\d+\))? panicked at (?:'(.{1,400})', )?([^\s:']{1,300}):\d+:\d+:?")
_FILE_LITERAL = lazy_regex(r"'[^'\s]{0,100}[\w-][./][\w-][^'\s]{0,100}'|\"[^\"\s]{0,100}[\w-][./][\w-][^\"\s]{0,100}\"")
_OUTPUT_OF = lazy_regex(r"-{2,4} std(?:err|out)$")
_QUOTED = lazy_regex(r"[\"'`]\S")
_HINT = lazy_regex(r"\b(?:hint|help|Did you mean|DETAIL|HINT|Hint|Note|try running|Suggestion|Possible)\b")
_SYMBOL = lazy_regex(r"symbol:\s+(.{1,160})")
_COUNTED = lazy_regex(
    r"\d validation errors? for \S{1,100}$|\b[45]\d\d (?:Client|Server) Error\.? \(Request ID.{1,100}$"
)
_BARE = lazy_regex(r"[\w.]+")
_WHERE = lazy_regex(r"(?:on|in|at) \S{1,200} line \d|\d{1,6}: ")
_RULER = lazy_regex(r"([@=*#~_-])\1{7,}")
_SENTENCE = lazy_regex(r"[A-Z][a-z]{0,20} [a-z][^\n]{0,200}[\"'`]\S{1,80}[\"'`]")
_MARGIN = lazy_regex(r"[\s│|]{0,60}")
_FIELD_PATH = lazy_regex(r"[A-Za-z_][\w.\[\]-]{0,80}")
