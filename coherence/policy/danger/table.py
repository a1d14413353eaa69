"""The table of what is dangerous: the rows of ``dangers.toml``, with the checks that they name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from coherence.policy.danger.danger import DRY, Asking, Danger


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A row as ``dangers.toml`` writes it, where every field is explained."""

    says: str
    programs: str = ""
    verbs: str = ""
    flags: str = ""
    unless: str = ""
    always: bool = False
    call: bool = False
    test: str = ""
    targets: str = ""
    asking: str = ""
    enforced: bool = False
    weighs: bool = False


def _read() -> Iterator[Danger]:
    data = tomllib.loads(Path(__file__).with_name("dangers.toml").read_text("utf-8"))
    words: dict[str, str] = data.pop("words")
    askings = msgspec.convert(data.pop("asking"), dict[str, Asking])
    for name, asking in askings.items():
        acts, things = (" ".join(_expanded(text, words)) for text in (asking.acts, asking.things))
        askings[name] = msgspec.structs.replace(asking, acts=acts, things=things)
    for kind, rows in msgspec.convert(data, dict[str, dict[str, _Entry]]).items():
        for name, entry in rows.items():
            yield _row(name, kind, entry, words, askings[entry.asking] if entry.asking else None)


def _row(name: str, kind: str, entry: _Entry, words: dict[str, str], asking: Asking | None) -> Danger:
    enforced = entry.enforced or asking is not None
    return Danger(
        name=name,
        kind=kind,
        says=entry.says,
        call=entry.call,
        programs=tuple(_expanded(entry.programs, words)),
        verbs=tuple(filter(None, entry.verbs.split(", "))),
        flags=tuple(entry.flags.split()),
        unless=() if entry.always else (*DRY, *entry.unless.split()),
        test=_named(entry.test),
        targets=_named(entry.targets),
        asking=asking,
        enforced=enforced,
        weighs=entry.weighs or not enforced,
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
    """Return the check or the words of a module of this package; None where a row names none."""
    if not name:
        return None
    module, _, own = name.partition(".")
    return getattr(import_module(f"{__package__}.{module}"), own)


DEFAULT: tuple[Danger, ...] = tuple(_read())
"""Every row, in the order in which they are asked; drop one by its ``name``, add your own at either end.

Rows that are ``enforced`` refuse a call by themselves, unless somebody asks for exactly that."""
