"""What is loaded or made on first use: names of a package, regular expressions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose public names are loaded on first use.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping
        Public name -> the module that defines it.

    Examples
    --------
    In the package's ``__init__.py``::

        __getattr__, __dir__ = lazy_names(__name__, {"Monitor": "coherence.monitor.monitor"})
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names


class _LazyRegex:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and pickle look for methods that no pattern has
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in _OF_A_PATTERN})
        return vars(self)[name]


_OF_A_PATTERN = (
    *("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"),
    *("pattern", "flags", "groups", "groupindex"),
)


def lazy_regex(source: str, flags: int = 0) -> re.Pattern[str]:
    r"""Return a regular expression that is compiled when it is first used.

    A process pays for those that it uses: all of the package's take longer to compile than its modules to load.

    Raises
    ------
    re.error
        At its first use, if the expression is malformed.

    Examples
    --------
    >>> number = lazy_regex(r"\d+")
    >>> number.findall("3 of 12")
    ['3', '12']
    """
    return cast("re.Pattern[str]", _LazyRegex(source, flags))
