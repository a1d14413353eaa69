"""Reading settings from TOML, with errors that name the entry."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from coherence.core.readings import FrozenDict


def read_table(kind: Any, value: Any) -> Any:
    """Decode a table; a bad entry is named, which msgspec does not do."""
    if get_origin(kind) is not FrozenDict:
        raise TypeError(f"cannot decode {kind}")
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table, not {value!r}")
    table = {}
    for key, item in value.items():
        try:
            table[key] = msgspec.convert(item, get_args(kind)[1], strict=True)
        except msgspec.ValidationError as error:
            raise ValueError(f"{key!r}: {error}") from error
    return FrozenDict(table)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file; a ValueError names what is wrong with it."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ValueError(f"config {path}: {error.strerror or error}; expected the path of a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"config {path}: not TOML: {error}") from error
