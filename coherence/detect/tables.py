"""Tables of words and expressions that rules are made of: the TOML files beside this module, one reader for all."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


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


def expression(lines: str) -> str:
    """Return a regular expression whose alternatives stand on several lines."""
    return lines.replace("\n", "")
