"""The verdicts of the guard on simulated patches: harmless ones, harmful ones, decays, and what a call costs.

Run ``python tests/bench/guard_verdicts.py``; it takes about three minutes. Every number comes from fixed seeds. A
baseline is a :class:`~coherence.guard.baseline.Recent` of the given calls with a burst of five failures behind it,
which :meth:`~coherence.guard.baseline.Recent.freeze` leaves out. Latency is lognormal with a sigma from 0.3 to 1,
another one for each patch; where cost and index are measured too, cost is lognormal (sigma 0.5) and index normal
(0.8, 0.1). Medians and 90th percentiles are those of the calls to a rollback; 301 stands for none.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from coherence.guard.baseline import Baseline, CallOutcome, Recent
from coherence.guard.classic import Tally, rolled_back
from coherence.guard.degradation import DecayWatch
from coherence.guard.verdict import Trial, Verdict

TRIALS = 1000
BASELINES = (0.6, 0.7, 0.8, 0.9, 0.95)
BURST = 5
CLASSIC_CALLS = 300


class World(NamedTuple):
    """Kind of calls."""

    success: float
    sigma: float = 0.5
    slower: float = 1.0
    dearer: float = 1.0
    lower: float = 0.0
    all_metrics: bool = False

    def call(self, chance: random.Random) -> CallOutcome:
        """Return one call."""
        success = chance.random() < self.success
        latency_s = self.slower * chance.lognormvariate(1.0, self.sigma)
        if not self.all_metrics:
            return CallOutcome(success, latency_s)
        index = min(max(chance.gauss(0.8 - self.lower, 0.1), 0.0), 1.0)
        return CallOutcome(success, latency_s, self.dearer * chance.lognormvariate(-4.0, 0.5), index)


def before(world: World, calls: int, chance: random.Random) -> Baseline:
    """Return the baseline of so many calls, behind which a burst of failures is left out."""
    recent = Recent()
    for _ in range(calls):
        recent.observe(world.call(chance))
    for _ in range(BURST):
        recent.observe(CallOutcome(False, 1.0))
    return recent.freeze(failures=BURST)


class Ended(NamedTuple):
    """End of one trial, and its number of patched calls."""

    verdict: Verdict
    calls: int


def trial(baseline: Baseline, patched: World, chance: random.Random) -> Ended:
    """Try a patch until there is a verdict."""
    state = Trial.begin(baseline)
    while True:
        verdict = state.observe(patched.call(chance))
        if verdict.kind != "keep_looking":
            return Ended(verdict, state.calls)


def trials(
    seed: int,
    patched: Callable[[World], World],
    success: float,
    *,
    calls: int = 500,
    count: int = TRIALS,
    all_metrics: bool = False,
    sigma: float | None = None,
) -> Iterator[Ended]:
    """Yield how many trials end, each with a baseline of its own."""
    chance = random.Random(seed)
    for _ in range(count):
        world = World(success, sigma or chance.uniform(0.3, 1.0), all_metrics=all_metrics)
        yield trial(before(world, calls, chance), patched(world), chance)


def canaries(
    seed: int, patched: Callable[[World], World], success: float, *, hour: float | None = None, calls: int = 500
) -> Iterator[Ended]:
    """Yield how many trials end in which a fifth of the calls is patched.

    In a bad ``hour``, patched calls 21 to 60, all calls succeed so much more seldom.
    """
    chance = random.Random(seed)
    for _ in range(TRIALS):
        good = World(success, chance.uniform(0.3, 1.0))
        state = Trial.begin(before(good, calls, chance))
        while True:
            fallen = hour if hour is not None and 20 < state.calls + 1 <= 60 else 0.0
            now = good._replace(success=max(success - fallen, 0.0))
            for _ in range(4):
                state.compare(now.call(chance))
            verdict = state.observe(patched(now).call(chance))
            if verdict.kind != "keep_looking":
                yield Ended(verdict, state.calls)
                break


def classic(seed: int, success: float, count: int = TRIALS) -> float:
    """Return the share of harmless patches that the classic rules roll back within 300 calls."""
    chance = random.Random(seed)
    found = 0
    for _ in range(count):
        world = World(success, chance.uniform(0.3, 1.0))
        was, now = Tally(), Tally()
        for _ in range(200):
            was.observe(world.call(chance))
        for _ in range(CLASSIC_CALLS):
            now.observe(world.call(chance))
            if rolled_back(was.metrics, now):
                found += 1
                break
    return found / count


def decay(
    seed: int, good: float, bad: float, count: int = TRIALS, *, confirmed: int = 100, all_metrics: bool = False
) -> tuple[list[int], int]:
    """Return the calls from a decay after 400 good calls to the alert, and how many alerts came before it."""
    chance = random.Random(seed)
    delays, early = [], 0
    for _ in range(count):
        world = World(good, all_metrics=all_metrics)
        recent = Recent()
        for _ in range(confirmed):
            recent.observe(world.call(chance))
        watch = DecayWatch.begin(recent.freeze())
        early += sum(bool(watch.observe(world.call(chance))) for _ in range(400 - confirmed))
        world = world._replace(success=bad)
        calls = 1
        while not watch.observe(world.call(chance)):
            calls += 1
        delays.append(calls)
    return delays, early


def calls_to_false_alert(
    seed: int, success: float, watches: int = 40, calls: int = 10_000, *, all_metrics: bool = False
) -> float:
    """Return calls by alerts where nothing decays; each watch is begun from 100 calls of its own."""
    chance = random.Random(seed)
    alerts = 0
    for _ in range(watches):
        world = World(success, all_metrics=all_metrics)
        recent = Recent()
        for _ in range(100):
            recent.observe(world.call(chance))
        watch = DecayWatch.begin(recent.freeze())
        alerts += sum(bool(watch.observe(world.call(chance))) for _ in range(calls))
    return watches * calls / max(alerts, 1)


def told(name: str, ended: list[Ended]) -> str:
    """Return one line about some trials."""
    back = sorted(end.calls for end in ended if end.verdict.kind == "roll_back")
    why = Counter(end.verdict.metric for end in ended if end.verdict.metric)
    unseen = [301] * (len(ended) - len(back))
    all_calls = sorted(back + unseen)
    middle, late = all_calls[len(all_calls) // 2], all_calls[9 * len(all_calls) // 10]
    kept = statistics.median([end.calls for end in ended if end.verdict.kind == "promote"] or [0])
    early = sum(end.verdict.evidence is not None for end in ended if end.verdict.kind == "promote")
    return (
        f"{name:46} rolled back {len(back) / len(ended):6.1%}  median {middle:3} p90 {late:3}  promoted "
        f"{1 - len(back) / len(ended):6.1%} (median {kept:.0f} calls, shown {early / len(ended):.0%})  {dict(why)}"
    )


def cost_us(all_metrics: bool) -> tuple[float, float, float]:
    """Return the microseconds of a call of Recent, Trial and DecayWatch, each the best of twenty."""
    chance = random.Random(1)
    world = World(0.9, all_metrics=all_metrics)
    calls = [world.call(chance) for _ in range(299)]
    vague = before(world, 4, chance)  # so that nothing is decided
    known = before(world, 500, chance)  # so that nothing is learned
    best = [9e9] * 3
    for _ in range(20):
        takes = Recent().observe, Trial.begin(vague).observe, DecayWatch.begin(known).observe
        for place, take in enumerate(takes):
            begin = time.perf_counter()
            for call in calls:
                take(call)
            best[place] = min(best[place], (time.perf_counter() - begin) / len(calls) * 1e6)
    return best[0], best[1], best[2]


def main() -> None:
    """Print every figure."""
    for calls in (500, 200, 50, 10, 0):
        for success in BASELINES:
            print(
                told(
                    f"harmless, {success}, baseline of {calls}",
                    list(trials(1, lambda world: world, success, calls=calls)),
                )
            )
    for success in BASELINES:
        ended = list(trials(2, lambda world: world, success, all_metrics=True))
        print(told(f"harmless, {success}, all metrics", ended))
    for success in BASELINES:
        print(f"classic rules, harmless, {success}: {classic(3, success):.1%} rolled back within {CLASSIC_CALLS} calls")
    for calls in (500, 200):
        for success in BASELINES:
            print(
                told(
                    f"-15 points from {success}, baseline of {calls}",
                    list(trials(4, lambda world: world._replace(success=world.success - 0.15), success, calls=calls)),
                )
            )
        print(
            told(
                f"-15 points from 0.9, all metrics, of {calls}",
                list(
                    trials(
                        5,
                        lambda world: world._replace(success=world.success - 0.15),
                        0.9,
                        calls=calls,
                        all_metrics=True,
                    )
                ),
            )
        )
    for success in BASELINES:
        ended = list(trials(12, lambda world: world._replace(success=world.success - 0.1), success))
        print(told(f"-10 points from {success}, the margin", ended))
    for calls in (500, 0):
        print(told(f"canary: harmless, 0.9, of {calls}", list(canaries(13, lambda world: world, 0.9, calls=calls))))
        harm = list(canaries(14, lambda world: world._replace(success=world.success - 0.15), 0.9, calls=calls))
        print(told(f"canary: -15 points from 0.9, of {calls}", harm))
    for fallen in (0.2, 0.4, 0.9):
        hour = list(canaries(15, lambda world: world, 0.9, hour=fallen))
        print(told(f"canary: harmless, 0.9, bad hour of {0.9 - fallen:.1f}", hour))
    for success in (0.6, 0.9):
        dead = list(canaries(16, lambda world: world._replace(success=0.0), success))
        print(told(f"canary: total failure from {success}", dead))
    for success in BASELINES:
        ended = list(trials(6, lambda world: world._replace(success=0.0), success))
        within = sum(end.calls <= 5 for end in ended) / len(ended)
        print(told(f"total failure from {success}", ended), f"within 5: {within:.1%}")
    for sigma in (0.3, 0.5, 1.0):
        print(
            told(
                f"latency doubled, sigma {sigma}",
                list(trials(7, lambda world: world._replace(slower=2.0), 0.9, all_metrics=True, sigma=sigma)),
            )
        )
    print(told("cost +50 %", list(trials(8, lambda world: world._replace(dearer=1.5), 0.9, all_metrics=True))))
    print(told("index -0.1", list(trials(9, lambda world: world._replace(lower=0.1), 0.9, all_metrics=True))))
    for all_metrics in (False, True):
        for good, bad in ((0.9, 0.5), (0.9, 0.45), (0.8, 0.4), (0.6, 0.3), (0.95, 0.5)):
            delays, early = decay(10, good, bad, all_metrics=all_metrics)
            delays.sort()
            within = sum(delay <= 15 for delay in delays) / len(delays)
            print(
                f"decay {good} -> {bad} after 400 good calls, {'all metrics' if all_metrics else 'success, latency'}: "
                f"median {delays[len(delays) // 2]} p90 {delays[9 * len(delays) // 10]} within 15: {within:.0%}; "
                f"alerts before it {early} in {300 * TRIALS:,} calls"
            )
        for success in (0.6, 0.9, 0.95):
            calls_each = calls_to_false_alert(11, success, all_metrics=all_metrics)
            print(f"calls to a false alert at {success}: {calls_each:,.0f}")
    for all_metrics in (False, True):
        recent, one, watch = cost_us(all_metrics)
        print(
            f"a call: Recent {recent:.2f}, Trial {one:.2f}, DecayWatch {watch:.2f} us "
            f"({'all metrics' if all_metrics else 'success and latency'})"
        )


if __name__ == "__main__":
    main()
