"""Whether a search takes time in proportion to its text, not to its square."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

SMALL, TIMES = 2_000, 16
"""Characters of the smaller text, and how many times as many the larger one has."""

LEAST_S = 0.004
"""A search that is over sooner is quick enough, whatever its growth; timers and pauses reach this much."""


def spent(ask: Callable[[str], object], text: str) -> float:
    """Return CPU seconds, the best of three."""
    best = float("inf")
    for _ in range(3):
        begun = time.process_time()
        ask(text)
        best = min(best, time.process_time() - begun)
    return best


def check_growth(ask: Callable[[str], object], pieces: Iterable[str]) -> None:
    """Assert that no repetition of a piece takes more than its share of a longer text."""
    for piece in pieces:
        for end in ("", "!", "\n"):
            long = piece * (SMALL * TIMES // len(piece)) + end
            whole = spent(ask, long)
            if whole > LEAST_S:
                part = spent(ask, piece * (SMALL // len(piece)) + end)
                # a square would make it 256 times; 16 ** 1.3 = 37
                assert whole < TIMES**1.3 * max(part, LEAST_S / TIMES), (piece, end, part, whole)
