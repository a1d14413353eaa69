"""Prose that a call writes for people: notes, reports, mails, answers; not code, not data for a program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from coherence.core.lazy import lazy_regex
from coherence.core.readings import Claim
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.fingerprints import PATHS, SHELLS, command_of, name_words

MAX_PROSE = 4_000
"""Characters of one call that are read, half from each end."""

LEAST_WORDS = 3
"""Words of a text that says something."""


LEAST_DIGITS = 4
"""Digits of an id that is the number of something."""


LEAST_NUMBERED = 2
"""Digits of one that is written as #12: it numbers what somebody has numbered."""

WRITING = word_set(
    "write create append submit complete finish finished done send reply respond post note comment answer report email "
    "mail message publish save store record log final edit fill insert"
)
"""Words in the names of tools that write for people."""

PROSE_KEYS = word_set(
    "content contents body text message result answer summary note notes comment report response final_answer output "
    "file_text reply details"
)
"""Arguments that hold what is written."""

DATA_KEYS = word_set("data rows row cells values table records record entries entry items fields sheet columns")
"""Arguments that hold a table or a record of what is written."""

MAX_ROWS = 200
"""Lines of a table that are read."""

PROSE_ENDINGS = word_set("md markdown txt text doc docx odt rtf pdf csv tsv xlsx xls eml adoc org log html htm")
"""Endings of files that people read; one without an ending is such a file, too."""

_TRYING = lazy_regex(
    r"(?:^|[/_. -])(?:tests?|specs?|examples?|samples?|fixtures?|mocks?|demos?|dummy|templates?|drafts?)(?:[/_. -]|$)",
    re.IGNORECASE,
)
"""Names of files that hold what somebody makes up on purpose."""

MANY_TICKS = 150
"""Characters a backtick from which a text is about code: names and numbers in it are those of things to come."""

_CODE = lazy_regex(
    r"^\s{0,40}(?:def |class |import |from \w+ import |function |const |let |var |#include|return\b|if \(|for \()"
    r"|^\s{0,40}<\w+[ >]"
    r"|[;{}]\s{0,9}$",
    re.MULTILINE,
)
_INTO = r"[\w./~-]{1,200}"
_HEREDOC = lazy_regex(r"<<-?\s{0,2}['\"]?(?P<mark>\w{1,20})['\"]?")
_TARGET = lazy_regex(rf">{{1,2}}\s{{0,3}}({_INTO})|\btee (?:-a )?({_INTO})")
_ECHO = lazy_regex(
    r"\b(?:echo|printf) (?:-\w )?(?P<quote>['\"])(?P<said>[^'\"\n]{3,2000})(?P=quote)\s{0,3}>{1,2}\s{0,3}"
    rf"(?P<into>{_INTO})"
)


def prose_of(tool: str, arguments: Any) -> str:
    """Return what a call writes for people; empty if it writes nothing, or code.

    Examples
    --------
    >>> prose_of("send_email", {"to": "a@x.org", "body": "The total is 40 euros."})
    'The total is 40 euros.'
    >>> prose_of("write_file", {"path": "pay.py", "content": "total = 40  # the sum of it"})
    ''
    """
    words = name_words(tool)
    if not SHELLS.isdisjoint(words):
        found = list(_of_command(command_of(tuple(words), arguments) or ""))
    elif WRITING.isdisjoint(words) or not isinstance(arguments, dict):
        return ""
    else:
        found = list(_of_fields(arguments))
    return ends("\n".join(found), MAX_PROSE, "\n\n")


def _of_fields(arguments: dict[str, Any]) -> Iterator[str]:
    for key, value in islice(arguments.items(), 40):
        if key.lower() in DATA_KEYS and isinstance(value, dict | list):
            yield "\n".join(islice(_rows(value), MAX_ROWS))
    if any(not _is_prose_file(value) for key, value in arguments.items() if key in PATHS and isinstance(value, str)):
        return
    for key, value in islice(arguments.items(), 40):
        if key.lower() in PROSE_KEYS and isinstance(value, str):
            text = ends(value, MAX_PROSE, "\n\n")
            if len(text.split(None, LEAST_WORDS)) >= LEAST_WORDS and not _is_code(text):
                yield text


def _rows(value: Any) -> Iterator[str]:
    """Yield the rows of a table, or the fields of a record, one a line."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        name = f"{key}: " if isinstance(value, dict) else ""
        if isinstance(each, list) and not any(isinstance(cell, dict | list) for cell in each):
            yield name + "; ".join(str(cell) for cell in each if cell is not None)
        elif isinstance(each, dict | list):
            yield from _rows(each) if _depth(each) < MAX_DEPTH else ()
        elif each is not None and not isinstance(each, bool):
            yield f"{name}{each}"


MAX_DEPTH = 4


def _depth(value: Any) -> int:
    """Return how deep lists and objects lie in each other, at most five."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            each
            for item in level[:MAX_ROWS]
            for each in islice(item.values() if isinstance(item, dict) else item, MAX_ROWS)
            if isinstance(each, dict | list)
        ]
    return depth


def _of_command(command: str) -> Iterator[str]:
    if ">" not in command:
        return
    text = command[: 2 * MAX_PROSE]
    for found in islice(_HEREDOC.finditer(text), 4):
        begin = text.find("\n", found.end()) + 1
        line = text[text.rfind("\n", 0, found.start()) + 1 : begin]
        into = _TARGET.search(line)
        end = text.find(f"\n{found['mark']}", begin)
        body = text[begin : end if end >= 0 else len(text)] if begin else ""
        if into is not None and _is_prose_file(into[1] or into[2]) and not _is_code(body):
            yield body
    for found in islice(_ECHO.finditer(text), 4):
        if _is_prose_file(found["into"]):
            yield found["said"]


def _is_prose_file(path: str) -> bool:
    name = path[-200:].rpartition("/")[2].lower()
    ending = name.rpartition(".")[2] if "." in name else "txt"
    return ending in PROSE_ENDINGS and _TRYING.search(path[-200:]) is None


def _is_code(text: str) -> bool:
    """Tell whether a fifth of the lines are code, or the text is about code."""
    return 5 * len(_CODE.findall(text)) >= text.count("\n") + 1 or text.count("`") * MANY_TICKS > len(text)


def tells_a_fact(claim: Claim) -> bool:
    """Tell whether a value in what is written can only be known: new files, functions and short codes are made up."""
    if claim.kind in ("function", "path", "name"):
        return False
    if claim.kind != "id":
        return True
    return sum(map(str.isdigit, claim.text)) >= (LEAST_NUMBERED if claim.text.isdigit() else LEAST_DIGITS)
