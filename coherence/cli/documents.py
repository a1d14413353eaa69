"""JSON that commands print, each document with the name and version of its schema.

The schemas lie in ``schemas/``, one file a document, named by the command's words with dots between them. A name is a
promise: its keys stay and keep their meaning; a document with other keys has the next number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import click

from coherence.cli.columns import print_columns

_SHARED = "definitions.json"
"""The file of what several schemas have in common."""

SAME = {"demo": "score"}
"""Command -> the command whose document it prints."""


def print_document(schema: str, value: Any) -> None:
    """Print a document as JSON for programs and people.

    Parameters
    ----------
    schema : str
        Name and version, such as ``coherence.score/1``.
    value : dict, list of dict, or None
        The document. An array keeps its form: each of its records names the schema.
    """
    sys.stdout.write(json.dumps(versioned(schema, value), indent=2) + "\n")


def versioned(schema: str, value: Any) -> Any:
    """Return a document that names its schema.

    Examples
    --------
    >>> versioned("coherence.sessions/1", [{"agent": "a"}])
    [{'schema': 'coherence.sessions/1', 'agent': 'a'}]
    """
    if isinstance(value, list):
        return [versioned(schema, each) for each in value]
    return value if value is None else {"schema": schema, **value}


def print_schemas(name: str | None) -> None:
    """Print the schema of a document, or the list of all; an unknown name becomes a usage error."""
    names = schema_names()
    if name is None:
        print_columns([("name", "schema", "of"), *(_row(each) for each in names)])
    elif name in names:
        sys.stdout.write(json.dumps(read_schema(name), indent=2) + "\n")
    else:
        raise click.BadParameter(f"there is no {name!r}, but {', '.join(names)}", param_hint="NAME")


def _row(name: str) -> tuple[str, str, str]:
    schema = _read(f"{name}.json")
    return name, schema["title"], schema["description"].partition(": ")[0].rstrip(".")


def schema_names() -> list[str]:
    """Return the names of all documents, sorted."""
    names = (path.name for path in _folder().iterdir() if path.name.endswith(".json") and path.name != _SHARED)
    return sorted(name.removesuffix(".json") for name in names)


def read_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, with everything that it refers to inside.

    Raises
    ------
    KeyError
        If there is no such document.
    """
    if name not in schema_names():
        raise KeyError(name)
    schema, shared = _read(f"{name}.json"), _read(_SHARED)["$defs"]
    inside = schema.setdefault("$defs", {})
    # shared definitions refer to others
    while missing := sorted(set(_references(schema)) - inside.keys()):
        inside.update({each: shared[each] for each in missing})
    if not inside:
        del schema["$defs"]
    return schema


def _read(file: str) -> dict[str, Any]:
    text = _folder().joinpath(file).read_text(encoding="utf-8")
    plain: dict[str, Any] = json.loads(text.replace(f'"{_SHARED}#/', '"#/'))
    return plain


def _references(part: Any) -> Iterator[str]:
    """Yield the names of the definitions that a part of a schema refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _references(each)


def _folder() -> Traversable:
    return files("coherence.cli").joinpath("schemas")
