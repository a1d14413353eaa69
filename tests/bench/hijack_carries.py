"""Does ``goal_hijack`` carry over? Recorded runs and the scenarios of three authors, source by source.

Run ``python tests/bench/hijack_carries.py``; half a minute. *Rank* is the split-conformal threshold of 5 % from that
source's runs without an attack; *alarmed* and *caught* are shares of runs above the shipped threshold.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from showing import say
from written import written_runs

from coherence.baseline.conformal import conformal_threshold
from coherence.detect.hijack import ALARM_1, ALARM_5
from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import evaluate
from coherence.evaluation.measure import measure
from coherence.evaluation.runs import LabelledRun, read_labelled

DATA = Path(__file__).resolve().parents[1] / "data"
NAME = "goal_hijack"


def main() -> None:
    say("source", "hijacking calls: AUROC, alarms per 100 at 80 %, right call", "")
    sources = gathered()
    for name, runs in sources.items():
        (system,) = measure([NAME], runs, cache=None)
        if any(run.attack == "hijacked" for run in runs):
            sections = evaluate(runs, [system], target="hijack").sections
            section = next(found for found in sections if found.question == "calls")
            figures = next(row for row in section.rows if row.system == NAME).figures
            say(name, "; ".join(told(figures[key]) for key in ("auroc", "false_alarms", "right_call")), "")
    say("\nsource", f"runs, rank; alarmed at {ALARM_5}, {ALARM_1}; hijacked caught; resisted alarmed", "")
    for name, runs in sources.items():
        highest = highest_of(runs)
        clean = highest["untouched"]
        rank = conformal_threshold(sorted(clean), 0.05)
        above = {kind: [f"{share(values, at):.0%}" for at in (ALARM_5, ALARM_1)] for kind, values in highest.items()}
        ranked = "-" if rank is None else f"{rank:.3f}"
        say(name, f"{len(clean)}, {ranked}; {above['untouched']}; {above['hijacked']}; {above['resisted']}", "")


def gathered() -> dict[str, list[LabelledRun]]:
    """Return the runs by source; those of AgentDojo by suite."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "written.jsonl"
        made.write_text("".join(json.dumps(run) + "\n" for run in written_runs()), encoding="utf-8")
        agentdojo = read_labelled([DATA / "runs" / "agentdojo.jsonl.gz"])
        found = {}
        for part in sorted({run.part for run in agentdojo}):
            found[part] = [run for run in agentdojo if run.part == part]
        for name in ("tau_airline", "swebench_mini"):
            found[name] = read_labelled([DATA / "runs" / f"{name}.jsonl.gz"])
        found["scenarios"] = read_labelled([made])
    for name in ("outsider", "fresh", "hints"):
        found[name] = read_labelled([DATA / "written" / f"{name}.jsonl.gz"])
    return found


def highest_of(runs: Sequence[LabelledRun]) -> dict[str, list[float]]:
    """Return the highest risk of each run, by what was done to it."""
    (system,) = measure([NAME], runs, cache=None)
    found: dict[str, list[float]] = {"untouched": [], "hijacked": [], "resisted": []}
    for run in runs:
        known = [score for score in system.step_scores[run.id] or () if score is not None]
        kind = run.attack or "untouched"
        if kind in found:
            found[kind].append(max(known, default=0.0))
    return found


def told(figure: Figure) -> str:
    return f"{figure.value:.3g} [{figure.low:.3g}, {figure.high:.3g}]"


def share(values: Sequence[float], threshold: float) -> float:
    return sum(value > threshold for value in values) / max(len(values), 1)


if __name__ == "__main__":
    main()
