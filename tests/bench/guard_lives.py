"""Promises of the guard, shown through a whole ``Guard``: store, adapter, trail, threads and canaries included.

Run ``python tests/bench/guard_lives.py [--lives 1000]``. A life is one agent: 500 calls, a burst of five failures, a
patch, and its calls until the verdict; a confirmed patch goes on being watched. What is simulated is what calls do and
how long they take, by the same :class:`guard_verdicts.World` as the bench of the statistics alone, and both clocks.
Fixed seeds. Calls that fail have no cost here: nothing returns it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import msgspec
from guard_life import OFTEN, SHARE, Canary, Life, Lived, each, guarded
from guard_verdicts import BASELINES, World
from showing import row, say

from coherence.guard.patch_events import Policy

LIVES = 1000
LONG = 10_000
"""Calls of a steady life."""

Change: TypeAlias = Callable[[World], World]


def same(world: World) -> World:
    """A harmless patch."""
    return world


def trials(
    seed: int,
    success: float,
    change: Change = same,
    *,
    lives: int = LIVES,
    canary: Canary = "hash",
    policy: Policy = "sequential",
    share: float = SHARE,
    all_metrics: bool = False,
    sigma: float | None = None,
) -> list[Lived]:
    """Return how patches end that change an agent so, each agent with another spread of latency."""
    found = []
    for life, chance in each(seed, lives, canary, policy, share):
        world = World(success, sigma or chance.uniform(0.3, 1.0), all_metrics=all_metrics)
        life.until_patch(world)
        found.append(life.trial(world, change(world)))
    return found


class Decays(NamedTuple):
    """Calls from decays to their alerts, and alerts before."""

    delays: list[int]
    early: int


def decays(seed: int, good: float, bad: float | None, *, lives: int = LIVES, calls: int = 400) -> Decays:
    """Return the calls to the alert after so many good calls of a confirmed patch; ``None`` = every second fails."""
    delays, early = [], 0
    for life, chance in each(seed, lives):
        world = World(0.9, chance.uniform(0.3, 1.0))
        life.until_patch(world)
        healthy = world._replace(success=good)
        if life.trial(world, healthy).how != "promoted":
            continue
        host, host.decays = life.host, 0
        for _ in range(calls):
            life.call(healthy)
        early, host.decays, delay = early + host.decays, 0, 0
        while not host.decays and delay < LONG:  # an alert may have come right before: it is told once
            life.call(healthy._replace(success=bad or 0.0), success=delay % 2 == 0 if bad is None else None)
            delay += 1
        delays.append(delay)
    return Decays(sorted(delays), early)


def false_alerts(seed: int, success: float, lives: int) -> int:
    """Return alerts in steady lives of 10,000 calls after the confirmation."""
    alerts = 0
    for life, chance in each(seed, lives):
        world = World(success, chance.uniform(0.3, 1.0))
        life.until_patch(world)
        if life.trial(world, world).how == "promoted":
            life.host.decays = 0
            for _ in range(LONG):
                life.call(world)
            alerts += life.host.decays
    return alerts


def decisions(seed: int, calls: int, back_at: int | None, canary: Canary = "hash") -> list[Any]:
    """Return all decisions of one life of patches, harmful and then harmless; the clock is set back before a call.

    A call a minute, and two hours off after every 100; quiet times of three hours. How long the call took before which
    the clock is set back cannot be known, and counts as nothing: a quiet time that ends amid calls ends one call later.
    """
    chance = random.Random(seed)
    with guarded(canary) as (guard, host):
        host.proposes = True
        life = Life(guard, host, OFTEN, chance)
        good, bad = World(0.8), World(0.0)
        for number in range(calls):
            host.wall_s += 59.0 + 7200.0 * ((number % 100 == 0) - (number == back_at))
            life.call(good, patched=bad if number < calls // 3 else good)
        past = guard.history(OFTEN, 10_000, slices=True)
    return [(each.seq, {**msgspec.to_builtins(each.decision), "owner": ""}) for each in past]


def clock_set_back(seed: int, calls: int, times: int, canary: Canary = "hash") -> tuple[int, int, int]:
    """Return in how many of so many lives the decisions are those of the life without, and how many those are."""
    straight = decisions(seed, calls, None, canary)
    places = [(number + 1) * calls // (times + 1) // 100 * 100 + 80 for number in range(times)]
    return sum(decisions(seed, calls, place, canary) == straight for place in places), times, len(straight)


def shares(found: Sequence[Lived]) -> str:
    """Return how trials ended, in words."""
    counts = Counter(lived.how for lived in found)
    promoted = [lived.patched for lived in found if lived.how == "promoted"] or [0]
    ends = sorted(lived.calls for lived in found)
    return (
        f"promoted {counts['promoted'] / len(found):.1%} ({statistics.median(promoted):.0f} patched calls), "
        f"open {counts['open']}; all calls: {ends[len(ends) // 2]}, most {ends[-1]}"
    )


def late(found: Sequence[Lived], part: float) -> int:
    """Return the patched calls within which a part of the trials has rolled back; 301 = they have not."""
    return sorted(lived.patched if lived.how == "rolled back" else 301 for lived in found)[int(part * len(found))]


def middle(found: Sequence[Lived]) -> str:
    """Return the calls to the end of trials, the unpatched ones included: median and 90th percentile."""
    calls = sorted(lived.calls for lived in found)
    return f"{calls[len(calls) // 2]}, {calls[9 * len(calls) // 10]}"


def rate(found: Sequence[Lived]) -> float:
    """Return the share that was rolled back, in percent."""
    return 100.0 * sum(lived.how == "rolled back" for lived in found) / len(found)


def fewer(world: World) -> World:
    """Succeed less often, by 15 points."""
    return world._replace(success=world.success - 0.15)


def none(world: World) -> World:
    """Never succeed."""
    return world._replace(success=0.0)


def slow(world: World) -> World:
    """Take twice as long."""
    return world._replace(slower=2.0)


def dear(world: World) -> World:
    """Cost twice as much."""
    return world._replace(dearer=2.0)


def low(world: World) -> World:
    """Have a lower index."""
    return world._replace(lower=0.2)


HARMS: tuple[tuple[str, Change, float | None], ...] = (
    ("latency doubled, sigma 0.3", slow, 0.3),
    ("latency doubled, sigma 1", slow, 1.0),
    ("cost doubled", dear, None),
    ("index lower by 0.2", low, None),
)
DECAYS: tuple[tuple[str, float, float | None], ...] = (
    ("0.9 -> 0.45, drawn", 0.9, 0.45),
    ("0.9 -> 0.5, drawn", 0.9, 0.5),
    ("400 successes, then ok, bad, ok, bad, ...", 1.0, None),
    ("400 successes, then half, drawn", 1.0, 0.5),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Print every figure; lines are lived side by side on all cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=LIVES, help="of each line of harmless patches")
    lives = parser.parse_args(arguments).lives
    few, long = max(lives // 2, 1), max(lives // 50, 1)
    kinds: tuple[Canary, ...] = ("hash", "slices")
    with ProcessPoolExecutor() as pool:
        harmless = {at: pool.submit(trials, 1, at, lives=lives) for at in BASELINES}
        sliced = {at: pool.submit(trials, 2, at, lives=few, canary="slices") for at in BASELINES}
        classic = {at: pool.submit(trials, 3, at, lives=few, policy="classic") for at in BASELINES}
        harmful = {way: pool.submit(trials, 4, 0.9, fewer, lives=few, canary=way) for way in kinds}
        failing = {
            (way, at): pool.submit(trials, 6, at, none, lives=few, canary=way) for way in kinds for at in (0.6, 0.9)
        }
        others = {
            name: pool.submit(trials, 7, 0.9, change, lives=few, all_metrics=True, sigma=sigma)
            for name, change, sigma in HARMS
        }
        decayed = {name: pool.submit(decays, 10, good, bad, lives=few) for name, good, bad in DECAYS}
        steady = {at: pool.submit(false_alerts, 11, at, long) for at in (0.6, 0.9)}
        back = {canary: pool.submit(clock_set_back, 12, 2000, 10, canary) for canary in kinds}

        say(f"the guard: {lives:,} lives a line of harmless patches, others {few:,}", "measured", "target")
        for at, future in harmless.items():
            row(f"harmless patches rolled back, {at}", rate(future.result()), 5, " %")
            say("  " + shares(future.result()), "", "")
        for at, future in sliced.items():
            row(f"harmless patches rolled back, {at}, by slices", rate(future.result()), 5, " %")
            say("  " + shares(future.result()), "", "")
        for at, future in classic.items():
            say(f"  the same by the classic policy, {at}", f"{rate(future.result()):.1f} %", "")
        for canary, future in harmful.items():
            found = future.result()
            row(f"15 points less from 0.9, {canary}: patched calls, median", late(found, 0.5), 60, "")
            row("  90 % within", late(found, 0.9), 150, "")
            say("  all calls, median and 90 %", middle(found), "")
        for (canary, at), future in failing.items():
            found = future.result()
            within = 100.0 * sum(lived.patched <= 5 for lived in found) / len(found)
            row(f"total failure from {at}, {canary}: within 5", within, 95, " %", least=True)
            say(f"  median {late(found, 0.5)}, 90 % within {late(found, 0.9)}; all calls", middle(found), "")
        for name, future in others.items():
            told = f"{late(future.result(), 0.5)}, {late(future.result(), 0.9)}"
            say(f"{name}: patched calls, median and 90 %", told, "")
        for name, watched in decayed.items():
            delays = watched.result().delays
            row(f"decay, {name}: calls to the alert, median", statistics.median(delays), 15, "")
            within = 100.0 * sum(delay <= 15 for delay in delays) / len(delays)
            told = f"{within:.0f} %, {delays[9 * len(delays) // 10]}, {watched.result().early}"
            say("  within 15, 90 % within, alerts before", told, "")
        for at, alerts in steady.items():
            say(f"false alerts in steady lives, {at}", f"{alerts.result()} in {long * LONG:,}", "1 in 10,000")
        for canary, moved in back.items():
            equal, times, count = moved.result()
            say(
                f"clock set back two hours, {canary}: same {count} decisions",
                f"{equal} of {times}",
                f"{times} of {times}",
            )


if __name__ == "__main__":
    main(sys.argv[1:])
