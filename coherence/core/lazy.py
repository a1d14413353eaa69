"""Names of a package and regular expressions that are loaded or made on first use."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
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
        # The next look-up finds it without coming here.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names


def one_of(words: Iterable[str], first: str = "(?-i:[{}{}])") -> str:
    r"""Return the source of an expression for one of some words, in any case, the longest first.

    It tells from the first letter where none of them stands, several times sooner than all the words in a row.

    Parameters
    ----------
    words : iterable of str
        Words in lower case, or expressions that begin with a letter of their own.
    first : str
        Form in which the first letter is sought, small and large.

    Examples
    --------
    >>> re.findall(rf"\b(?:{one_of(['one', 'ones', 'two'])})\b", "One, ones, TWO; too", re.I)
    ['One', 'ones', 'TWO']
    """
    ends: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        ends.setdefault(word[0], []).append(word[1:])
    # Without the flag: a set of letters is looked at before an alternative is tried, a letter in any case is not.
    return "|".join(f"{first.format(each, each.upper())}(?:{'|'.join(ends[each])})" for each in ends)


class _LazyRegex:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_A_PATTERN:  # copy and pickle look for methods that no pattern has
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in _OF_A_PATTERN})
        return vars(self)[name]


_OF_A_PATTERN = (
    *("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"),
    *("pattern", "flags", "groups", "groupindex"),
)


class _TwinRegex:
    """A regular expression and one that finds the same in ASCII text, each compiled when it is first used."""

    def __init__(self, source: str, flags: int, plain: str) -> None:
        self._whole, self._plain = lazy_regex(source, flags), lazy_regex(plain, flags | re.ASCII)

    def _for(self, text: str) -> re.Pattern[str]:
        return self._plain if text.isascii() else self._whole

    def search(self, text: str, *place: int) -> re.Match[str] | None:
        return self._for(text).search(text, *place)

    def findall(self, text: str, *place: int) -> list[Any]:
        return self._for(text).findall(text, *place)

    def finditer(self, text: str, *place: int) -> Iterator[re.Match[str]]:
        return self._for(text).finditer(text, *place)

    def split(self, text: str) -> list[Any]:
        return self._for(text).split(text)


def twin_regex(source: str, flags: int = 0, plain: str = "") -> re.Pattern[str]:
    r"""Return a lazy regular expression to search for, find all of, or split by, faster in text that is ASCII.

    Parameters
    ----------
    source : str
        The expression. White space is to be written as ``\s\x1c-\x1f`` in brackets: what ``re.ASCII`` knows of it is
        less.
    flags : int
        As those of :func:`re.compile`.
    plain : str
        What finds the same in ASCII text. Default: ``source``.

    Raises
    ------
    ValueError
        If the expression would not find the same.

    Examples
    --------
    >>> word = twin_regex(r"\w+")
    >>> word.findall("naïve, not plain")
    ['naïve', 'not', 'plain']
    """
    if _DIFFERS.search(plain or source):
        raise ValueError(f"re.ASCII would find something else by {source!r}")
    return cast("re.Pattern[str]", _TwinRegex(source, flags, plain or source))


_DIFFERS = re.compile(r"\\S|\\s(?!\\x1c-\\x1f)|[ıſ\u212a]")
"""White space, and letters that are i, s and k in another case."""


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
