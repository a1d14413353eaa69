"""Agents at the guard's defaults: no calls before it, its own thresholds, and outages of what the agents depend on.

Run ``python tests/bench/guard_days.py [--lives 200]``. A life is one agent under a whole ``Guard``, called at even
intervals; each fifth failure asks for a patch, the first of which is accepted and followed to its end. An outage begins
with the first call, or after 500 calls without a strategy, and ends by the clock. Latency is lognormal with a sigma of
0.3 to 1. Fixed seeds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Literal, NamedTuple

from guard_life import LIVES_A_GUARD, MOST, Canary, Host, Life, guarded
from guard_verdicts import World
from showing import say

LIVES = 200
EVERY_S = {"5 minutes": 300.0, "10 s": 10.0, "6 hours": 21_600.0}
DAY_S = 86_400.0
MAX_WAIT = 20_000
"""Calls after which an agent that has not asked for a patch is given up."""

Kind = Literal["harmless", "-15 points", "total failure", "cure"]
KINDS: tuple[Kind, ...] = ("harmless", "-15 points", "total failure")


class Outage(NamedTuple):
    """A time in which fewer calls succeed."""

    success: float
    hours: float
    calls_before: int = 0


class Day(NamedTuple):
    """End of a patch."""

    baseline: int
    how: str
    patched: int
    calls: int
    """All calls since it was accepted."""
    days: float


class Weather:
    """Kind of calls at present."""

    def __init__(self, host: Host, usual: World, outage: Outage | None) -> None:
        self.host, self.usual, self.outage = host, usual, outage
        self.until_s = 0.0

    def now(self) -> World:
        if self.outage is not None and self.host.wall_s < self.until_s:
            return self.usual._replace(success=self.outage.success)
        return self.usual

    def patched(self, kind: Kind) -> World:
        now = self.now()
        worse = {"harmless": now.success, "-15 points": max(now.success - 0.15, 0.0), "total failure": 0.0}
        return now._replace(success=worse.get(kind, 0.95))


def live(life: Life, weather: Weather, kind: Kind, every_s: float) -> Day | None:
    """Live until the first patch has ended; None = none was called for."""
    host, outage, waits = life.host, weather.outage, MAX_WAIT

    def call() -> bool:
        host.wall_s += every_s - 1.0  # a call moves the clock on by the rest
        return life.call(weather.now(), patched=weather.patched(kind))

    host.proposes, host.ended = False, ""
    for _ in range(outage.calls_before if outage else 0):
        call()
    if outage is not None:
        weather.until_s = host.wall_s + 3600.0 * outage.hours
    host.proposes = True
    while life.guard.status(life.name).phase == "idle":
        call()
        waits -= 1
        if not waits:
            return None
    trial = life.guard._runner.view(life.name).account.patching.trial
    begun, served, begun_s = life.calls, 0, host.wall_s
    while not host.ended and life.calls - begun < MOST:
        served += call()
    how = {"": "open", "confirmed": "promoted"}.get(host.ended, "rolled back")
    baseline = 0 if trial is None else trial.trial.baseline.calls
    return Day(baseline, how, served, life.calls - begun, (host.wall_s - begun_s) / DAY_S)


def days(
    seed: int, success: float, kind: Kind, every_s: float, canary: Canary, outage: Outage | None, lives: int
) -> list[Day]:
    """Return how the first patches of so many agents end."""
    chance, found = random.Random(seed), []
    for begin in range(0, lives, LIVES_A_GUARD):
        with guarded(canary) as (guard, host):
            for number in range(min(LIVES_A_GUARD, lives - begin)):
                weather = Weather(host, World(success, chance.uniform(0.3, 1.0)), outage)
                day = live(Life(guard, host, f"agent {number}", chance), weather, kind, every_s)
                found += [] if day is None else [day]
    return found


def told(found: Sequence[Day]) -> tuple[str, str]:
    """Return the baseline, the share rolled back, and the price until the end: medians and 90th percentiles."""

    def both(values: list[float], form: str) -> str:
        values = sorted(values)
        return f"{statistics.median(values):{form}} ({values[9 * len(values) // 10]:{form}})"

    if not found:
        return "no patch was called for", ""
    back = sum(day.how == "rolled back" for day in found) / len(found)
    still = sum(day.how == "open" for day in found)
    price = f"patched {both([day.patched for day in found], '.0f')}, all {both([day.calls for day in found], '.0f')}"
    baseline = statistics.median(day.baseline for day in found)
    return (
        f"{back:.0%} back, {still} open",
        f"baseline {baseline:.0f}; {price}, days {both([day.days for day in found], '.2f')}",
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=LIVES, help="of each line")
    lives = parser.parse_args(arguments).lives
    canaries: tuple[Canary, ...] = ("hash", "slices")
    outages = [Outage(rate, hours, calls) for calls in (0, 500) for rate, hours in ((0.0, 1), (0.3, 1), (0.3, 24))]
    with ProcessPoolExecutor() as pool:
        lines = {}
        for canary in canaries:
            for success in (0.8, 0.9, 0.95, 0.98):
                for kind in KINDS:
                    name = f"{success}, every 5 minutes, {canary}: {kind}"
                    lines[name] = pool.submit(days, 1, success, kind, 300.0, canary, None, lives)
            for every, every_s in list(EVERY_S.items())[1:]:
                for kind in KINDS:
                    name = f"0.9, every {every}, {canary}: {kind}"
                    lines[name] = pool.submit(days, 2, 0.9, kind, every_s, canary, None, lives)
            for outage in outages:
                for kind in ("cure", "harmless"):
                    when = f"{outage.hours:.0f} h at {outage.success}, {outage.calls_before} calls before"
                    name = f"outage of {when}, {canary}: {kind}"
                    lines[name] = pool.submit(days, 3, 0.9, kind, 300.0, canary, outage, lives)
        say(f"agents at the defaults: {lives} lives a line; median (90 %)", "first patch", "")
        for name, future in lines.items():
            share, rest = told(future.result())
            say(name, share, "")
            say(f"  {rest}", "", "")


if __name__ == "__main__":
    main(sys.argv[1:])
