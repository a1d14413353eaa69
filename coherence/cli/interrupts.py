"""Ends of commands that run until somebody ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM end a block as Ctrl-C does, and SIGINT too in a job that a shell has in the background."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
