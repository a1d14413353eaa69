"""Cost of a guard: overhead a call by stored traces, durability and state of the patch, and how long a start takes.

Run ``python tests/bench/guard_cost.py [--traces 100000] [--folder /dev/shm]``. Medians; the callable does nothing.
Stores lie in memory if there is a folder for it: ``full`` waits for the disk, and what a disk takes is its own affair.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from showing import row

from coherence.guard import Guard
from coherence.guard.bounds import Bound, Bounds
from coherence.guard.traces import Trace
from coherence.guard.trigger import Override

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, if there is one."""
CALL_US = {"batched": 60.0, "full": 300.0}
START_MS = 50.0


class Fixed:
    """A configuration that takes patches and restores, and a strategy that proposes the same each time."""

    serves_both = False

    def __init__(self, patch: dict[str, Any] | None) -> None:
        self.patch = patch
        self.configs: dict[str, dict[str, Any]] = {}

    def get_config(self, *, agent_id: str) -> dict[str, Any]:
        return dict(self.configs.get(agent_id, {"level": 1}))

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> bool:
        self.configs[agent_id] = self.get_config(agent_id=agent_id) | config_patch
        return True

    def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> None:
        self.configs[agent_id] = dict(backup_config)

    def analyze(
        self, *, agent_id: str, traces: Sequence[Trace], before_metrics: Mapping[str, float | None]
    ) -> dict[str, Any] | None:
        return self.patch


def timed(guard: Guard, fn: Callable[[], object], calls: int) -> list[float]:
    took = []
    for _ in range(calls):
        begin = time.perf_counter()
        with suppress(ValueError):
            guard.run(fn, agent="a", task="answer")
        took.append(time.perf_counter() - begin)
    return took


def fine() -> None:
    pass


def fail() -> None:
    raise ValueError("no")


def shown(name: str, took: list[float], durability: Literal["batched", "full"]) -> None:
    worst = sorted(took)[int(len(took) * 0.99)]
    median = statistics.median(took)
    row(f"{durability}, {name}; p99 {worst * 1e6:,.0f} us", median * 1e6, CALL_US[durability], " us")


def measure(path: Path, durability: Literal["batched", "full"], calls: int, level: int) -> None:
    begin = time.perf_counter()
    with Guard(store=path, durability=durability) as guard:
        guard.run(fine, agent="a")
        opened = time.perf_counter() - begin
        stored = f"{guard.status('a').calls - 1:,} stored"
        row(f"{durability}, start and first call, {stored}", opened * 1e3, START_MS, " ms")
        shown(f"a call that succeeds, {stored}", timed(guard, fine, calls), durability)
        shown(f"fails, {stored}", timed(guard, fail, calls), durability)
    few = {"a": Override(failures=1000, cooldown_h=0)}
    with Guard(store=path, durability=durability, strategy=Fixed(None), thresholds=few) as guard:
        shown("fails, with a strategy", timed(guard, fail, calls), durability)
    once = {"a": Override(failures=1, cooldown_h=0)}
    fixed = Fixed({"level": level})
    bounds = Bounds({"level": Bound(least=0, most=9)})
    with Guard(
        store=path, durability=durability, strategy=fixed, config_adapter=fixed, bounds=bounds, thresholds=once,
        canary_slice=10_000,
    ) as guard:  # fmt: skip
        timed(guard, fail, 1)
        assert guard.status("a").phase == "serving"
        shown("succeeds, a patch is on trial", timed(guard, fine, 250), durability)
        guard.rollback("a")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--folder", default=MEMORY)
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args(arguments)
    logging.disable()
    try:
        print_all(options)
    finally:
        logging.disable(logging.NOTSET)


def print_all(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for durability in ("batched", "full"):
            path = Path(folder) / f"{durability}.db"
            measure(path, durability, options.calls, 2)
            with Guard(store=path) as guard:
                for _ in range(options.traces // 5_000):
                    timed(guard, fine, 5_000)
                    guard.flush()
            measure(path, durability, options.calls, 3)  # another patch: the one before it was rolled back


if __name__ == "__main__":
    main(sys.argv[1:])
