"""Names of a package that are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


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
