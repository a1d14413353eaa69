"""Families of errors, and reading them from a file of JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lessons.errors.frames import LANGUAGES
from lessons.errors.noise import KINDS

SLOT = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z][a-z_]*[2-9]?)(?::(?P<language>[a-z]+))?(?::(?P<count>[0-9]+))?\}|[{}]")


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of trouble, in the words of the tool that reports it and of people who met it.

    `errors` and `long` are templates of what the tool prints, `fix` or `fixes` what made it go away, `descriptions`
    what somebody says who does not quote the error. `key` names the slots that make one lesson of the family another
    lesson; `pools` has their values, and those of any slot that is no common noise. Without a fix it is never a lesson.
    """

    family: str
    language: str
    tool: str
    errors: list[str]
    source: str
    pattern: str = ""
    long: str = ""
    fix: str = ""
    fixes: dict[str, str] = {}
    key: list[str] = []
    pools: dict[str, list[str]] = {}
    descriptions: list[str] = []


def slots(template: str) -> Iterator[re.Match[str]]:
    """The named slots of a template, in order."""
    return (found for found in SLOT.finditer(template) if found["name"])


def problems(family: Family) -> list[str]:
    """Return the faults of a family in words; empty if it can be rendered."""
    wrong = []
    templates = [*family.errors, family.long, family.fix, *family.fixes.values(), *family.descriptions]
    for template in templates:
        for found in SLOT.finditer(template):
            if found[0] in ("{", "}"):
                wrong.append(f"single brace in {template!r}")
            elif found["name"] == "frames":
                if found["language"] not in LANGUAGES:
                    wrong.append(f"no frames of this language: {found[0]}")
            elif found["name"] and found["language"]:
                wrong.append(f"only frames have a language: {found[0]}")
            elif found["name"] and found["name"] not in family.pools and found["name"].rstrip("23456789") not in KINDS:
                wrong.append(f"no pool for {found[0]}")
    for name in family.key:
        if name not in family.pools:
            wrong.append(f"no pool for the key {name}")
        wrong += [
            f"key {name} is missing in {text!r}"
            for text in (*family.errors, family.long)
            if text and f"{{{name}}}" not in text
        ]
    wrong += [
        f"pool {name} names a value twice" for name, values in family.pools.items() if len(set(values)) < len(values)
    ]
    if family.fixes and (not family.key or not set(family.fixes) <= set(family.pools.get(family.key[0], []))):
        wrong.append("fixes must name values of the first key")
    return wrong


def load_families(path: Path | str) -> list[Family]:
    """Read families, one JSON object a line.

    Raises
    ------
    ValueError
        If a line is not a family (`msgspec.ValidationError` is one), or one that cannot be rendered; names the line.
    """
    families = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), start=1):
        try:
            family = msgspec.json.decode(line, type=Family)
        except msgspec.DecodeError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        if wrong := problems(family):
            raise ValueError(f"{path}:{number}: {family.family}: {'; '.join(wrong)}")
        families.append(family)
    return families
