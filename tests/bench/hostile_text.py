"""Worst time of each public function on hostile texts: 114 shapes of 16 kB, 100 kB and 10 MB; asserts nothing.

Run ``python tests/bench/hostile_text.py``, which takes a quarter of an hour, or with ``--quick`` for the smallest size.
CPU time is counted, so that other work on the machine does not, and nothing is embedded. What takes longer than its
bound is timed again, as a pause of the machine may be in it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hostile_apis import Api, apis
from hostile_shapes import SHAPES
from showing import row, say

BOUNDS = {16_000: 50, 100_000: 250, 10_000_000: 1_000}
"""Length -> milliseconds that a function may take."""

AGAIN = 2


def took_ms(ask: Api, text: str, bound: float) -> float:
    """Return the CPU time of a call, the least of some where the first is over the bound."""
    least = float("inf")
    for _ in range(1 + AGAIN):
        begun = time.process_time()
        ask(text)
        least = min(least, (time.process_time() - begun) * 1e3)
        if least <= bound:
            break
    return least


def worst(length: int) -> dict[str, tuple[float, str]]:
    """Return, by function, the longest time and the shape that took it."""
    found: dict[str, tuple[float, str]] = {}
    with apis() as made:
        for ask in made.values():
            ask("warm up")
        for shape, text in ((name, make(length)) for name, make in SHAPES.items()):
            for name, ask in made.items():
                found[name] = max(found.get(name, (0.0, "")), (took_ms(ask, text, BOUNDS[length]), shape))
    return found


def main(lengths: Sequence[int] = tuple(BOUNDS)) -> None:
    """Print the worst times beside their bounds."""
    for length in lengths:
        say(f"worst of {len(SHAPES)} hostile texts of {length:,} characters", "measured", "target")
        for name, (ms, shape) in worst(length).items():
            row(f"{name}: {shape}", ms, BOUNDS[length], " ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="texts of 16,000 characters only")
    main(tuple(BOUNDS)[:1] if parser.parse_args().quick else tuple(BOUNDS))
