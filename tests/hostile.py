"""Objects of strangers that do the worst while they are read, for tests of every room."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pytest

from coherence.core import strangers

MAX_S = 30.0
"""Seconds after which what hangs ends by itself: a test that waits for it has failed, and must not hang for ever."""

_ends = [threading.Event()]


def let_go() -> None:
    """End what hangs or spins, and what never ends, and what hangs again after that, until nothing of it runs."""
    until = time.monotonic() + MAX_S / 4
    while True:
        old = _ends[0]
        _ends[0] = threading.Event()
        old.set()
        if time.monotonic() > until or not any(breaker.running for _, breaker in list(strangers._hung.values())):
            return
        time.sleep(0.005)


class Interrupts(BaseException):
    """Exception that no ``except Exception`` takes, like an interrupt by the keyboard."""


def hang() -> Any:
    _ends[0].wait(MAX_S)


def spin() -> Any:
    end, until = _ends[0], time.monotonic() + MAX_S
    while not end.is_set() and time.monotonic() < until:
        pass


def raising(kind: type[BaseException], *args: object) -> Callable[[], Any]:
    def act() -> Any:
        raise kind(*args)

    return act


def recurse() -> Any:
    return recurse()


RAISES: dict[str, Callable[[], Any]] = {
    "raises": raising(RuntimeError, "no"),
    "exits": raising(SystemExit, 3),
    "interrupts": raising(Interrupts),
    "interrupts by the keyboard": raising(KeyboardInterrupt),
    "ends a generator": raising(GeneratorExit),
    "recurses": recurse,
    "runs out of memory": raising(MemoryError),
    "returns no str": lambda: 5,
}
HANGS: dict[str, Callable[[], Any]] = {"hangs": hang, "spins": spin}


def speaking(act: Callable[[], Any]) -> object:
    """Return an object of a class of its own whose texts are made by ``act``."""

    class Speaking:
        def __str__(self) -> str:
            return act()  # type: ignore[no-any-return]

        __repr__ = __str__

    return Speaking()


def failing(act: Callable[[], Any]) -> Exception:
    """Return an exception of a class of its own whose texts are made by ``act``."""

    class Failing(Exception):
        def __str__(self) -> str:
            return act()  # type: ignore[no-any-return]

        __repr__ = __str__

    return Failing()


def touchy(act: Callable[[], Any]) -> object:
    """Return an object that does something whatever is asked of it, its own class included."""

    class Touchy:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            return act()

        def __getattr__(self, name: str) -> Any:
            return act()

        def __bool__(self) -> bool:
            return act()  # type: ignore[no-any-return]

        def __hash__(self) -> int:
            return act()  # type: ignore[no-any-return]

        def __eq__(self, other: object) -> bool:
            return act()  # type: ignore[no-any-return]

        def __iter__(self) -> Any:
            return act()

        def __len__(self) -> int:
            return act()  # type: ignore[no-any-return]

        def __str__(self) -> str:
            return act()  # type: ignore[no-any-return]

        __repr__ = __str__

    return Touchy()


def lying_text(text: str, act: Callable[[], Any], *, is_key: bool = False) -> str:
    """Return a subclass of str whose methods do something else than those of a str; a key has an honest hash."""

    class Lying(str):
        def _lie(self, *args: Any, **kwargs: Any) -> Any:
            return act()

        __str__ = __repr__ = __len__ = __eq__ = __ne__ = __hash__ = __getitem__ = __iter__ = __contains__ = _lie
        __add__ = __format__ = __bool__ = encode = lower = upper = strip = split = replace = isascii = _lie

    if is_key:
        Lying.__hash__ = str.__hash__  # type: ignore[method-assign, assignment]
    return Lying(text)


def lying_number(kind: Any, value: float, act: Callable[[], Any]) -> Any:
    """Return a subclass of int or float whose methods do something."""

    def lie(self: Any, *args: Any) -> Any:
        return act()

    names = "__int__ __float__ __index__ __le__ __lt__ __ge__ __gt__ __eq__ __hash__ __repr__ __str__ __bool__".split()
    return type("Lying", (kind,), dict.fromkeys(names, lie))(value)


def lying_table(base: Any, act: Callable[[], Any], given: Any) -> Any:
    """Return a subclass of dict, list or tuple whose reading does something."""

    def lie(self: Any, *args: Any) -> Any:
        return act()

    names = "__iter__ __len__ __getitem__ __bool__ __contains__ items keys values get __repr__ __str__".split()
    return type("Lying", (base,), dict.fromkeys(names, lie))(given)


class Endless(Sequence[float]):
    """A sequence that never ends, and changes while it is read."""

    def __init__(self) -> None:
        self.at = 0

    def __len__(self) -> int:
        return self.at

    def __getitem__(self, key: Any) -> Any:
        return -0.5

    def __iter__(self) -> Iterator[float]:
        end = _ends[0]
        while not end.is_set():
            self.at += 1
            yield -0.5


def cases(acts: Mapping[str, Callable[..., Any]], slow: Collection[str] = ("spins",)) -> list[Any]:
    """Return parameters of a test, one for each act; what takes long, or keeps a core busy, is for the slow proofs."""
    return [pytest.param(act, id=name, marks=pytest.mark.slow if name in slow else ()) for name, act in acts.items()]
