"""Every regular expression that the package holds, and how its code uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType
from typing import Any

import coherence
from coherence.core import lazy

ROOT = Path(coherence.__file__).parent

Search = Callable[[str], object]
"""Runs a pattern over a text as the package's code does."""

_WAYS = "match|fullmatch|search|findall|finditer|subn?|split"
_OTHERS = ("coherence.cli.demo_data", "coherence.providers.models", "coherence.__main__")
_NEED_AN_EXTRA = ("coherence.providers.sentence_transformer",)


@cache
def patterns() -> dict[str, Search]:
    """Return, by module and name, a search with each regular expression of the package, in a fixed order."""
    found: dict[int, tuple[Any, list[str]]] = {}
    for module in sorted(_modules()):
        for name, value in sorted(vars(import_module(module)).items()):
            if not name.startswith("__"):
                for label, pattern in _held(f"{module.removeprefix('coherence.')}.{name}", value, set()):
                    found.setdefault(id(pattern), (pattern, []))[1].append(label)
    return {labels[0]: _search(labels, pattern) for pattern, labels in found.values()}


def _modules() -> Iterator[str]:
    for module in walk_packages(coherence.__path__, "coherence."):
        is_adapter = module.name.startswith("coherence.frameworks.") and not module.name.endswith((".agents", ".trace"))
        if not is_adapter and not module.name.startswith((*_OTHERS, *_NEED_AN_EXTRA)):
            yield module.name


def _held(name: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the patterns in a value: in its items, its attributes, and what a function has bound."""
    if isinstance(value, re.Pattern | lazy._LazyRegex):
        yield name, value
        return
    if isinstance(value, lazy._TwinRegex):
        yield f"{name} whole", value._whole
        yield f"{name} plain", value._plain
        return
    if isinstance(value, str | bytes | int | float | None) or id(value) in seen:
        return
    seen.add(id(value))
    for key, part in _parts(value):
        yield from _held(f"{name} {key}", part, seen)


def _parts(value: Any) -> Iterator[tuple[object, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple | list):
        yield from enumerate(value)
    elif isinstance(value, partial):
        yield from enumerate((value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, FunctionType):
        yield from enumerate(value.__defaults__ or ())
        for at, cell in enumerate(value.__closure__ or ()):
            yield at, cell.cell_contents
    elif hasattr(value, "__wrapped__"):
        yield "wrapped", value.__wrapped__
    elif (value if isinstance(value, type) else type(value)).__module__.startswith("coherence"):
        fields = getattr(value, "__struct_fields__", ()) if not isinstance(value, type) else ()
        yield from ((field, getattr(value, field, None)) for field in fields)
        yield from vars(value).items() if hasattr(value, "__dict__") else ()


@cache
def _uses() -> dict[tuple[str, str], set[str]]:
    """Return the methods that the source calls on each name, by module, and by "" for the whole package."""
    uses: dict[tuple[str, str], set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        module, source = ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text()
        for name, way in re.findall(r"\b(\w++)\)?\.(match|fullmatch|search|findall|finditer|subn?|split)\b", source):
            for place in ("", module):
                uses.setdefault((place, name), set()).add(way)
        for name, table in re.findall(r"\bfor (\w+)(?:, \w+)* in (\w+):", source):
            uses.setdefault((module, table), set()).update(uses.get((module, name), ()))
    return uses


def _search(labels: list[str], pattern: Any) -> Search:
    """Return how a pattern is used: one that is only tried at a place is tried there."""
    ways: set[str] = set()
    for label in labels:
        module, _, name = label.partition(" ")[0].rpartition(".")
        ways |= _uses().get((module if name.startswith("_") else "", name), set())
    if ways == {"match"}:
        return lambda text: pattern.match(text)
    if ways and ways <= {"match", "fullmatch"}:
        return lambda text: (pattern.match(text), pattern.fullmatch(text))
    if isinstance(pattern.pattern, bytes):
        return lambda text: sum(1 for _ in pattern.finditer(text.encode()))
    return lambda text: sum(1 for _ in pattern.finditer(text))  # which searches first
