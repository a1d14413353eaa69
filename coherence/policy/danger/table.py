"""The table of what is dangerous: the rows of ``dangers.toml``, with the checks that they name."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from coherence.policy.danger.danger import DRY, Asking, Danger


def _read() -> Iterator[Danger]:
    data = tomllib.loads(Path(__file__).with_name("dangers.toml").read_text("utf-8"))
    words: dict[str, str] = data.pop("words")
    askings = msgspec.convert(data.pop("asking"), dict[str, Asking])
    for name, asking in askings.items():
        acts, things = (" ".join(_expanded(text, words)) for text in (asking.acts, asking.things))
        askings[name] = msgspec.structs.replace(asking, acts=acts, things=things)
    read: dict[str, Callable[[Any], Any]] = {
        **dict.fromkeys(("says", "call", "enforced", "weighs", "always"), lambda value: value),
        **dict.fromkeys(("test", "targets"), _named),
        "programs": lambda text: tuple(_expanded(text, words)),
        "verbs": lambda text: tuple(text.split(", ")),
        "flags": lambda text: tuple(text.split()),
        "unless": lambda text: (*DRY, *text.split()),
        "asking": askings.__getitem__,
    }
    for kind, rows in data.items():
        for name, row in rows.items():
            fields = {field: read[field](value) for field, value in row.items()}
            if fields.pop("always", False):
                fields["unless"] = ()
            enforced = fields.setdefault("enforced", "asking" in fields)
            yield Danger(name=name, kind=kind, **{"weighs": not enforced, **fields})


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
    """Return the check or the words of a module of this package."""
    module, _, own = name.partition(".")
    return getattr(import_module(f"{__package__}.{module}"), own)


DEFAULT: tuple[Danger, ...] = tuple(_read())
"""Every row, in the order in which they are asked; drop one by its ``name``, add your own at either end.

Rows that are ``enforced`` refuse a call by themselves, unless somebody asks for exactly that."""
