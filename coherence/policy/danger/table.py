"""The table of what is dangerous: the rows of ``dangers.toml``, with the checks that they name."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from coherence.policy.danger.danger import DRY, Asking, Danger, DangerousCall, DangerousCommand


def _read() -> Iterator[Danger]:
    data = tomllib.loads(Path(__file__).with_name("dangers.toml").read_text("utf-8"))
    words: dict[str, str] = data.pop("words")
    askings = {name: _asking(row, words) for name, row in data.pop("asking").items()}
    for kind, rows in data.items():
        for name, row in rows.items():
            yield _row(name, kind, row, words, askings)


def _row(name: str, kind: str, row: dict[str, Any], words: dict[str, str], askings: dict[str, Asking]) -> Danger:
    finds = _named(row["finds"]) if "finds" in row else None
    common = {
        "name": name,
        "kind": kind,
        "says": row["says"],
        "test": _any(finds) if finds else _named(row["test"]) if "test" in row else None,
        "targets": finds or (_named(row["targets"]) if "targets" in row else None),
        "asking": askings[row["asking"]] if "asking" in row else None,
        "enforced": row.get("enforced", "asking" in row),
        "weighs": row.get("weighs", "asking" not in row and "enforced" not in row),
    }
    if row.get("call", False):
        return DangerousCall(**common)
    return DangerousCommand(
        **common,
        programs=tuple(_expanded(row.get("programs", ""), words)),
        verbs=tuple(filter(None, row.get("verbs", "").split(", "))),
        flags=tuple(row.get("flags", "").split()),
        unless=() if row.get("always") else (*DRY, *row.get("unless", "").split()),
    )


def _any(finds: Callable[[Any], Iterable[str]]) -> Callable[[Any], bool]:
    return lambda given: any(True for _ in finds(given))


def _asking(row: dict[str, Any], words: dict[str, str]) -> Asking:
    return Asking(
        acts=" ".join(_expanded(row["acts"], words)),
        things=" ".join(_expanded(row["things"], words)),
        named=row.get("named", ""),
        addresses=row.get("addresses", False),
        enough=row.get("enough", True),
    )


def _expanded(text: str, words: dict[str, str]) -> Iterator[str]:
    """Yield the words of a text: ``@name`` stands for those under ``words``, ``@module.NAME`` for those of code."""
    for word in text.split():
        if word[0] != "@":
            yield word
        elif "." in word:
            yield from sorted(_named(word[1:]))
        else:
            yield from _expanded(words[word[1:]], words)


def _named(name: str) -> Any:
    module, _, own = name.partition(".")
    return getattr(import_module(f"{__package__}.{module}"), own)


DEFAULT: tuple[Danger, ...] = tuple(_read())
"""Every row, in the order in which they are asked; drop one by its ``name``, add your own at either end.

Rows that are ``enforced`` refuse a call by themselves, unless somebody asks for exactly that."""
