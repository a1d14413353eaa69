"""Memory of answers about texts: each is worked out once while its text is kept, however many detectors ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from sys import getsizeof
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_BYTES = 500_000
"""Bytes of the texts that are kept, those of the newest hundred events or so; what is known of them may take 20 times
as much."""


class _Kept(dict[str, dict[Any, Any]]):
    """Text -> question -> answer, of the newest texts of all agents."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __missing__(self, text: str) -> dict[Any, Any]:
        """Keep a text."""
        size = getsizeof(text)
        if self.size + size > MAX_BYTES:
            # All at once: a text that is still asked about is read again, once in half a megabyte of others.
            self.clear()
            self.size = 0
        self.size += size
        self[text] = answers = dict[Any, Any]()
        return answers


_KEPT = _Kept()


def read_once(read: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
    """Let a function of a text answer from memory while the text is kept; its answer is not to be changed.

    Texts are kept for all agents together: half a megabyte of the newest, or the newest alone if it is longer.

    Parameters
    ----------
    read : callable
        Depends on the text and on options given by name alone.

    Examples
    --------
    >>> @read_once
    ... def shouted(text):
    ...     print("reading")
    ...     return text.isupper()
    >>> shouted("WHY?"), shouted("WHY?")
    reading
    (True, True)
    """

    def answer(text: str, /, *args: P.args, **options: P.kwargs) -> T:
        answers = _KEPT[text]
        question: Any = (read, *options.items()) if options else read
        if question not in answers:
            answers[question] = read(text, *args, **options)
        found: T = answers[question]
        return found

    update_wrapper(answer, read)
    return answer
