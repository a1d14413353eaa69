"""A check that a search takes time in proportion to its text, not to its square."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

SMALL, TIMES = 1_000, 8
"""Characters of the smaller text, and how many times as many the larger one has."""

LEAST_S = 0.002
"""A search that is over sooner is quick enough, whatever its growth; timers and pauses reach this much."""


def spent(
    ask: Callable[[str], object],
    text: str,
    times: int = 3,
    *,
    enough: float = 0.0,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """Return CPU seconds, the best of some times; one that takes no more than ``enough`` is the last.

    Those of this thread: another one that an earlier test has left busy comes in only where a text takes more than the
    5 ms after which the interpreter is given away, which would look like a growth.
    """
    best = float("inf")
    for _ in range(times):
        begun = clock()
        ask(text)
        best = min(best, clock() - begun)
        if best <= enough:
            break
    return best


def check_growth(ask: Callable[[str], object], pieces: Iterable[str]) -> None:
    """Assert that no repetition of a piece takes more than its share of a longer text."""
    for piece in pieces:
        for end in ("", "!", "\n"):
            long, short = (piece * (size // len(piece)) + end for size in (SMALL * TIMES, SMALL))
            whole = part = float("inf")
            for times in (1, 3, 9, 27):  # a pause of the machine is no growth: what looks like one is timed again
                for _ in range(times):  # in turns: what slows the machine for a while slows both
                    whole, part = min(whole, spent(ask, long, 1)), min(part, spent(ask, short, 1))
                # a square would make it 64 times; 8 ** 1.3 = 15
                if whole <= LEAST_S or whole < TIMES**1.3 * part:
                    break
            else:
                part = max(part, LEAST_S / TIMES)
                assert whole < TIMES**1.3 * part, (piece, end, part, whole)
