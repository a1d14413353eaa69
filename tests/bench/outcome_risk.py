"""Figures of the estimate behind ``outcome_risk`` on failed runs, by desk; they show why it is unknown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ranks import SILENT, Run, Scored, auroc, equal_length, interval, load, steps_of
from service_cues import ServiceDetector, estimate

from coherence.detect.detector import Observed

CUES = ("asked", "unrefused", "searching")


class Steps:
    """Values after each step of a run: the risk, the score behind it, each cue."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.risk: list[float | None] = []
        self.cues: list[dict[str, float]] = []
        detector = ServiceDetector()
        for step in steps_of(run):
            for event in step:
                detector.observe(Observed.of(event))
            cues = detector.data
            self.risk.append(estimate(cues))
            self.cues.append({name: getattr(cues, name) for name in CUES})

    def alone(self, name: str) -> list[float | None]:
        """Return a cue where there is a risk."""
        return [None if risk is None else cues[name] for cues, risk in zip(self.cues, self.risk, strict=True)]


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
        line(f"  {name} alone", runs, lambda steps, name=name: steps.alone(name))  # type: ignore[misc]
    line("length", runs, lambda steps: [float(at) for at in range(len(steps.risk))])


def main() -> None:
    desks = {name: [Steps(run) for run in load(name)] for name in ("tau_airline", "tau_retail")}
    for desk, runs in desks.items():
        ranking(desk, runs)
    for model in sorted({str((steps.run.get("meta") or {}).get("model")) for steps in desks["tau_retail"]}):
        own = [steps for steps in desks["tau_retail"] if str((steps.run.get("meta") or {}).get("model")) == model]
        line(f"tau_retail, {model}, {len(own)} runs", own, lambda steps: steps.risk)


if __name__ == "__main__":
    main()
