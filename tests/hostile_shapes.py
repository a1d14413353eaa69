"""Texts that cost a careless program much more than their length: 114 shapes, each a function of the length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

Shape: TypeAlias = Callable[[int], str]
"""Gives the text of a shape that has so many characters."""


def repeated(piece: str, length: int, *, before: str = "", after: str = "") -> str:
    """Return a text of one piece, again and again, between a beginning and an end."""
    room = max(length - len(before) - len(after), 0)
    return (before + (piece * (room // len(piece) + 1))[:room] + after)[:length]


def nested(opening: str, closing: str, length: int, *, core: str = "") -> str:
    """Return brackets inside brackets."""
    depth = max(length - len(core), 0) // (len(opening) + len(closing))
    return opening * depth + core + closing * depth


def counted(piece: str, length: int) -> str:
    """Return a text of pieces that differ in a number: nothing in it is there twice."""
    parts: list[str] = []
    left = length
    while left > 0:
        parts.append(piece.format(len(parts)))
        left -= len(parts[-1])
    return "".join(parts)[:length]


_CHARACTERS = {
    "a letter": "a",
    "capitals": "A",
    "digits": "0",
    "blanks": " ",
    "tabs": "\t",
    "newlines": "\n",
    "no-break spaces": "\xa0",
    "dots": ".",
    "commas": ",",
    "colons": ":",
    "semicolons": ";",
    "hyphens": "-",
    "underscores": "_",
    "slashes": "/",
    "backslashes": "\\",
    "pipes": "|",
    "ampersands": "&",
    "dollars": "$",
    "percents": "%",
    "ats": "@",
    "hashes": "#",
    "stars": "*",
    "equals": "=",
    "tildes": "~",
    "exclamations": "!",
    "single quotes": "'",
    "double quotes": '"',
    "backticks": "`",
    "opening brackets": "(",
    "opening squares": "[",
    "opening braces": "{",
    "opening angles": "<",
    "closing angles": ">",
    "closing brackets": ")",
    "combining marks": "e\u0301\u0302\u0303",
    "zero width": "\u200b\u200d",
    "CJK": "漢字",
    "right to left": "שלום ",
    "dotted capital I": "İ",
    "emoji": "👩\u200d💻",
    "control characters": "\x00\x07\x1b",
}

_REPEATS = {
    "words": "word ",
    "a a a": "a ",
    "aB aB": "aB",
    "a1 a1": "a1",
    "a-a": "a-",
    "a_a": "a_",
    "a.a": "a.",
    "a/a": "a/",
    "a:a": "a:",
    "a=a": "a=",
    "a, a": "a, ",
    "a and a": "Ana and ",
    "names": "Ana Berg, ",
    "not not": "not ",
    "did not": "did not fail and ",
    "denials": "no, not one of them was never lost; ",
    "numbers": "1 ",
    "thousands": "1,000",
    "versions": "1.2.3-",
    "dates almost": "2024-01-0",
    "dates": "On 3 May 2024, ",
    "times": "12:30:",
    "money": "$5.00 and €3,",
    "units": "5 mg of 10 km ",
    "fractions": "1/2 of 3",
    "ANSI escapes": "\x1b[31m",
    "ANSI unfinished": "\x1b[1;",
    "URLs almost": "https://",
    "URLs": "https://a.b/c?d=e&",
    "e-mail almost": "a@",
    "e-mail": "a@b.c, ",
    "paths": "/a/b.py:1: ",
    "Windows paths": "C:\\a\\",
    "base64": "QUJDREVGR0g",
    "citations": "“A study of things” (Smith et al., 2020). ",
    "titles": "The paper “Attention Is All You Need” by ",
    "papers": "arXiv:2310.06825v2 Mistral 7B, Jiang et al., ",
    "DOIs": "10.1000/abc.",
    "quotations": '"a", ',
    "quotes in quotes": "'\"",
    "markdown links": "[a](",
    "markdown bold": "**a** ",
    "markdown lists": "- a\n",
    "fences": "```a\n",
    "tables": "| a | b |\n",
    "table rules": "|---",
    "XML": "<a>",
    "XML attributes": '<a b="',
    "templates": "{{a}} {% ",
    "JSON fields": '"a": {"b": [',
    "JSON errors": '{"error": "',
    "SQL": "DELETE FROM a WHERE b = 'c' AND ",
    "calls": "a(b)",
    "calls in calls": "a(b(",
    "assignments": "a = b; ",
    "tracebacks": '  File "a.py", line 1, in a\n',
    "errors": "ValueError: a: error: ",
    "exit codes": "exit code 1 ",
    "secrets almost": "password=sk-",
    "shell pipes": "a|",
    "shell substitutions": "$(a",
    "shell documents": "<<EOF",
    "shell lists": "rm -rf a && ",
}

_NUMBERED = {
    "different words": "w{0} ",
    "different numbers": "{0}, ",
    "different sentences": "The value of key{0} is {0}. ",
    "different names": "Ana{0} Berg{0} met ",
    "different paths": "/a/{0}/b.py ",
    "different identifiers": "ID-{0:05} and ",
    "different rows": "| k{0} | {0} |\n",
}
_NESTED = {"nested lists": ("[", "]"), "nested objects": ('{"a":', "}"), "nested brackets": ("(", ")")}

SHAPES: dict[str, Shape] = {
    **{name: partial(repeated, piece) for name, piece in (_CHARACTERS | _REPEATS).items()},
    **{name: partial(counted, piece) for name, piece in _NUMBERED.items()},
    **{name: partial(nested, *ends) for name, ends in _NESTED.items()},
}
"""By name."""
