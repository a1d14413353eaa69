"""The meaning of a word of shell syntax once quotes, escapes and known variables are gone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_regex

if TYPE_CHECKING:
    from tree_sitter import Node

SPLIT = "\0"
"""Stands where an unquoted variable's value is split into words; scripts lose their NULs before they are read."""

_EXPANSION = lazy_regex(r"\$\{?(\w+)(?:\[[@*\d]+\])?\}?")
_ESCAPED = lazy_regex(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES = lazy_regex(r'\\([$`"\\\n])')
_ANSI_C = lazy_regex(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_C_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_AT_RUN_TIME = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)


MAX_SUBSTITUTION = 2_000
"""Bytes of a substitution that stay in the word: nested ones would take quadratic time, and are read by themselves."""

MAX_PARTS = 1_000
"""Parts of one word that are read: texts and variables side by side."""


def text_of(node: Node, source: bytes, most: int | None = None) -> str:
    """Return a node's source text, or the first ``most`` bytes of it."""
    end = node.end_byte if most is None else min(node.end_byte, node.start_byte + most)
    return source[node.start_byte : end].decode("utf-8", "replace")


def word(node: Node, source: bytes, known: Mapping[str, str]) -> tuple[str, bool]:
    """Return a word's value, and whether a part of it is known only at run time (that part stays as written)."""
    kind = node.type
    if kind == "word":
        text = text_of(node, source)
        return (_ESCAPED.sub(_escaped, text) if "\\" in text else text), False
    if kind == "command_name" and node.named_children:
        return word(node.named_children[0], source, known)
    if kind in ("string", "translated_string"):
        return _in_quotes(node, source, known)
    if kind == "concatenation":
        parts = [word(child, source, known) for child in node.children[:MAX_PARTS]]
        unknown = len(node.children) > MAX_PARTS or any(dynamic for _, dynamic in parts)
        return "".join(part for part, _ in parts), unknown
    if kind in _AT_RUN_TIME:
        text = text_of(node, source, MAX_SUBSTITUTION)
        found = _EXPANSION.fullmatch(text)
        value = known.get(found[1]) if found else None
        return (text, True) if value is None else (SPLIT.join(re.split(r"\s", value)), False)
    if kind == "array":
        return " ".join(word(child, source, known)[0] for child in node.named_children), False
    text = text_of(node, source)
    if kind == "raw_string":
        return text[1:-1], False
    if kind == "ansi_c_string":
        return _ANSI_C.sub(_ansi_c, text[2:-1]), False
    return (_ESCAPED.sub(_escaped, text) if "\\" in text else text), False


def _in_quotes(node: Node, source: bytes, known: Mapping[str, str]) -> tuple[str, bool]:
    """Read the inside of double quotes, from what lies between its expansions: blanks belong to no child node."""
    parts: list[str] = []
    dynamic = node.named_child_count > MAX_PARTS
    at = node.start_byte + (2 if node.type == "translated_string" else 1)
    for child in node.named_children[:MAX_PARTS]:
        if child.type not in _AT_RUN_TIME:
            continue
        parts.append(_plain(source[at : child.start_byte]))
        value, unknown = word(child, source, known)
        parts.append(value.replace(SPLIT, " "))
        dynamic = dynamic or unknown
        at = child.end_byte
    return "".join([*parts, _plain(source[at : node.end_byte - 1])]), dynamic


def _plain(source: bytes) -> str:
    text = source.decode("utf-8", "replace")
    return _ESCAPED_IN_QUOTES.sub(_escaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi_c(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if 0 < number < 0x110000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8) % 256 or 32)
    return _ANSI_C_LETTERS.get(code, code)
