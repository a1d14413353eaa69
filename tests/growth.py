"""A check that a search takes time in proportion to its text, not to its square."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

SMALL, TIMES = 1_000, 8
"""Characters of the smaller text, and how many times as many the larger one has."""

LEAST_S = 0.002
"""A search that is over sooner is quick enough, whatever its growth; timers and pauses reach this much."""


def spent(ask: Callable[[str], object], text: str, times: int = 3) -> float:
    """Return CPU seconds, the best of some times."""
    best = float("inf")
    for _ in range(times):
        begun = time.process_time()
        ask(text)
        best = min(best, time.process_time() - begun)
    return best


def check_growth(ask: Callable[[str], object], pieces: Iterable[str]) -> None:
    """Assert that no repetition of a piece takes more than its share of a longer text."""
    for piece in pieces:
        for end in ("", "!", "\n"):
            long, short = (piece * (size // len(piece)) + end for size in (SMALL * TIMES, SMALL))
            for times in (1, 3, 9):  # a pause of the machine is no growth: what looks like one is timed again
                whole = spent(ask, long, times)
                # a square would make it 64 times; 8 ** 1.3 = 15
                if whole <= LEAST_S or whole < TIMES**1.3 * spent(ask, short, times):
                    break
            else:
                part = max(spent(ask, short), LEAST_S / TIMES)
                assert whole < TIMES**1.3 * part, (piece, end, part, whole)
