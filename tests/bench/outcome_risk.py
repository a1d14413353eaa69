"""Figures of the estimate behind ``outcome_risk`` on failed runs, by desk; they show why it is unknown."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from ranks import SILENT, Floats, Run, Scored, auroc, equal_length, folds, interval, load, steps_of
from service_cues import MIDDLE, SLOPE, ServiceDetector, estimate

from coherence.detect.detector import Observed

CUES = ("asked", "unrefused", "searching")


class Steps:
    """Values after each step of a run: the risk, the score behind it, each cue."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.risk: list[float | None] = []
        self.cues: list[dict[str, float]] = []
        self.reasons: list[str] = []
        detector = ServiceDetector()
        for step in steps_of(run):
            for event in step:
                detector.observe(Observed.of(event))
            cues = detector.data
            self.risk.append(estimate(cues))
            self.reasons.append(cues.other_kind())
            self.cues.append({name: getattr(cues, name) for name in CUES})

    def given(self, names: Sequence[str], forced: bool) -> list[float | None]:
        """Return the mean of the cues where there is a risk, or everywhere."""
        return [
            sum(cues[name] for name in names) / len(names) if forced or risk is not None else None
            for cues, risk in zip(self.cues, self.risk, strict=True)
        ]


def rows(
    runs: Sequence[Steps], score: Callable[[Steps], list[float | None]], *, half: bool = False, highest: bool = False
) -> list[Scored]:
    found = []
    for steps in runs:
        values = score(steps)
        values = values[: len(values) // 2] if half else values
        known = [SILENT if value is None else value for value in values]
        value = (max(known) if highest else known[-1]) if known else SILENT
        bad = not steps.run["labels"]["success"]
        found.append(Scored(value, bad, len(steps.run["steps"]), steps.run["group"]))
    return found


def line(name: str, runs: Sequence[Steps], score: Callable[[Steps], list[float | None]], highest: bool = False) -> None:
    full, half = rows(runs, score, highest=highest), rows(runs, score, half=True, highest=highest)
    cells = []
    for found, figure in ((full, auroc), (full, equal_length), (half, auroc), (half, equal_length)):
        low, high = interval(found, figure, 200)
        cells.append(f"{figure(found):.3f} [{low:.2f}, {high:.2f}]")
    say(f"{name:<34} " + "  ".join(f"{cell:<18}" for cell in cells))


def say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def ranking(desk: str, runs: list[Steps]) -> None:
    ended = sum(steps.risk[-1] is not None for steps in runs)
    tasks = len({steps.run["group"] for steps in runs})
    say(f"\n{desk}: {len(runs)} runs of {tasks} tasks, given at the end of {ended}; [95 %: tasks resampled]")
    say(f"{'':<34} {'AUROC':<18}  {'equal length':<18}  {'first half':<18}  {'first half, equal':<18}")
    line("the estimate, last value", runs, lambda steps: steps.risk)
    line("the estimate, highest value", runs, lambda steps: steps.risk, highest=True)
    for name in CUES:
        line(f"  {name} alone", runs, lambda steps, name=name: steps.given([name], False))  # type: ignore[misc]
    for name in CUES:
        rest = [other for other in CUES if other != name]
        line(f"  without {name}", runs, lambda steps, rest=rest: steps.given(rest, False))  # type: ignore[misc]
    line("  the same, given for every run", runs, lambda steps: steps.given(CUES, True))
    line("length", runs, lambda steps: [float(at) for at in range(len(steps.risk))])
    found = rows(runs, lambda steps: steps.risk)
    known = [steps for steps in runs if steps.risk[-1] is not None]
    line(f"only the {len(known)} runs with a risk", known, lambda steps: steps.risk)
    alike = [[row for row in found if row.task == task] for task in {row.task: 0 for row in found}]
    within = [auroc(part) for part in alike]
    mixed = [figure for figure in within if figure == figure]
    say(f"within a task that both failed and succeeded ({len(mixed)}), mean AUROC: {np.mean(mixed):.2f}")
    for seed in range(2):
        fold = folds([steps.run["group"] for steps in runs], seed)
        parts = [[steps for steps, place in zip(runs, fold, strict=True) if place == at] for at in range(5)]
        spread = " ".join(f"{auroc(rows(part, lambda steps: steps.risk)):.2f}" for part in parts)
        say(f"AUROC in each of five folds by task: {spread}")


def logistic(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Fit slope and shift of a logistic curve by Newton's method."""
    design, found = np.column_stack((np.ones_like(x), x)), np.zeros(2)
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ found))
        bend = (design * (weight * p * (1 - p))[:, None]).T @ design + 1e-6 * np.eye(2)
        found = found - np.linalg.solve(bend, design.T @ (weight * (p - y)))
    return found


def calibration(runs: list[Steps]) -> None:
    known = [(steps, [value for value in steps.given(CUES, False) if value is not None]) for steps in runs]
    x = np.array([value for _, values in known for value in values])
    y = np.array([float(not steps.run["labels"]["success"]) for steps, values in known for _ in values])
    weight = np.array([1 / len(values) for _, values in known for _ in values])
    tasks = [steps.run["group"] for steps, values in known for _ in values]
    shift, slope = logistic(x, y, weight)
    say(
        f"\nmap from score to risk, all steps, each run weighs the same: slope {slope:.2f}, middle {-shift / slope:.3f}"
    )
    say(f"shipped: slope {SLOPE}, middle {MIDDLE}")
    for seed in range(3):
        fold = folds(tasks, seed)
        p, base, maps = np.zeros_like(x), np.zeros_like(x), []
        for at in range(5):
            train, test = fold != at, fold == at
            shift, slope = logistic(x[train], y[train], weight[train])
            maps.append(f"{slope:.1f}/{-shift / slope:.2f}")
            p[test] = 1 / (1 + np.exp(-shift - slope * x[test]))
            base[test] = np.average(y[train], weights=weight[train])
        ours, theirs = (np.average((guess - y) ** 2, weights=weight) for guess in (p, base))
        say(f"folds by task {seed}: Brier {ours:.3f}, base rate {theirs:.3f}; slope/middle by fold {', '.join(maps)}")
    risk = 1 / (1 + np.exp(-SLOPE * (x - MIDDLE)))
    for low, high in ((0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1)):
        inside = (risk >= low) & (risk < high)
        told, came = (np.average(values[inside], weights=weight[inside]) for values in (risk, y))
        say(f"risk {low:.1f} to {high:.1f}: told {told:.2f}, failed {came:.2f} (in-sample, {inside.sum()} steps)")


def elsewhere() -> None:
    say("\nother agents: runs with a risk; the same cues if they were given nevertheless")
    for name in ("swebench_mini", "agentdojo"):
        runs = [Steps(run) for run in load(name) if not run["labels"].get("attacked")]
        some = sum(any(risk is not None for risk in steps.risk) for steps in runs)
        reason = runs[0].reasons[-1]
        say(f"{name}: {some} of {len(runs)}; {reason}")
        line("  forced", runs, lambda steps: steps.given(CUES, True))
    runs = [Steps(run) for run in load("whowhen")]
    say(f"whowhen (all failed): {sum(any(risk is not None for risk in steps.risk) for steps in runs)} of {len(runs)}")


def cost() -> None:
    took: list[float] = []
    for name in ("tau_airline", "agentdojo"):
        for run in load(name):
            detector = ServiceDetector()
            for event in (event for step in steps_of(run) for event in step):
                observed = Observed.of(event)
                started = time.perf_counter()
                detector.observe(observed)
                took.append(time.perf_counter() - started)
    mean, p99 = 1e3 * float(np.mean(took)), 1e3 * float(np.percentile(took, 99))
    say(f"\ncost of an event: mean {mean:.3f} ms, p99 {p99:.3f} ms, of {len(took)}")


def main() -> None:
    desks = {name: [Steps(run) for run in load(name)] for name in ("tau_airline", "tau_retail")}
    for desk, runs in desks.items():
        ranking(desk, runs)
    for model in sorted({str((steps.run.get("meta") or {}).get("model")) for steps in desks["tau_retail"]}):
        own = [steps for steps in desks["tau_retail"] if str((steps.run.get("meta") or {}).get("model")) == model]
        line(f"tau_retail, {model}, {len(own)} runs", own, lambda steps: steps.risk)
    calibration(desks["tau_airline"])
    elsewhere()
    cost()


if __name__ == "__main__":
    main()
