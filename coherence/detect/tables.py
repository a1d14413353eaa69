"""Tables of words and expressions that rules are made of: the TOML files beside this module, one reader for all."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from coherence.core.lazy import lazy_regex, one_of


@cache
def table(name: str) -> dict[str, Any]:
    """Return what a file beside this module holds; not to be changed.

    Examples
    --------
    >>> table("acts")["stems"]["commit"]
    'commit committ committe'
    """
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


def words_by_name(tables: dict[str, str]) -> dict[str, frozenset[str]]:
    """Return the words of each entry of a table.

    Examples
    --------
    >>> sorted(words_by_name({"send": "mail post"})["send"])
    ['mail', 'post']
    """
    return {name: frozenset(words.split()) for name, words in tables.items()}


def names_by_word(tables: dict[str, str]) -> dict[str, str]:
    """Return for each word the entry of a table that holds it; the last one where several do.

    Examples
    --------
    >>> names_by_word({"send": "mail post", "book": "reserve"})["post"]
    'send'
    """
    return {word: name for name, words in tables.items() for word in words.split()}


def expressions(tables: dict[str, str], flags: int = re.IGNORECASE) -> dict[str, re.Pattern[str]]:
    """Return the regular expressions of a table, each compiled at its first use."""
    return {name: lazy_regex(expression(lines), flags) for name, lines in tables.items()}


def expression(lines: str) -> str:
    """Return a regular expression whose alternatives stand on several lines."""
    return lines.replace("\n", "")


def announcing(fields: dict[str, str]) -> re.Pattern[str]:
    """Return an expression for one of some words, told from their first letters, or for one of a text without spaces.

    Examples
    --------
    >>> announcing({"words": "also|as (?:well|much)|plus", "dense": "也"}).findall("Also this, as well as 也")
    ['Also', 'as well', '也']
    """
    words = one_of(_ALTERNATIVE.findall(expression(fields["words"])))
    return lazy_regex(rf"\b(?:{words})\b|{fields['dense']}", re.IGNORECASE)


_ALTERNATIVE = re.compile(r"(?:[^|()\[\]]|\[[^\]]{0,200}\]|\((?:[^()]|\([^()]*\))*\))+")
"""One of the alternatives of an expression, with groups of groups at most."""
