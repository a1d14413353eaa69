"""Does ``goal_hijack`` carry over? Recorded runs suite by suite, rewordings, and the scenarios of three authors.

Run ``python tests/bench/hijack_carries.py``; five minutes. No weight is fitted, so there is none to leave a suite out
of; the constants were chosen with all suites in sight: judge by the worst one. *Rank* is the split-conformal
threshold of 5 % from that source's runs without an attack; *alarmed* and *caught* are shares of runs above the shipped
threshold; *in time* = above it at the hijacking call or before; *others' rank* is the share of a suite's runs without
an attack above the 5 % rank of the other suites.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from reworded import REWORDINGS
from reworded import runs as reworded
from showing import say
from written import written_runs

from coherence.baseline.conformal import conformal_threshold
from coherence.detect.hijack import ALARM_1, ALARM_5
from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import evaluate
from coherence.evaluation.measure import measure
from coherence.evaluation.runs import LabelledRun, read_labelled
from coherence.evaluation.systems import System

DATA = Path(__file__).resolve().parents[1] / "data"
NAME = "goal_hijack"
SUITES = ("agentdojo/banking", "agentdojo/workspace", "agentdyn/github", "agentdyn/shopping")


def main() -> None:
    say("source", "hijacking calls: AUROC, alarms per 100 at 80 %, right call", "")
    sources = gathered()
    systems = {name: measure([NAME], runs, cache=None)[0] for name, runs in sources.items()}
    aurocs: dict[str, float] = {}
    for name, runs in sources.items():
        if any(run.attack == "hijacked" for run in runs):
            sections = evaluate(runs, [systems[name]], target="hijack").sections
            section = next(found for found in sections if found.question == "calls")
            figures = next(row for row in section.rows if row.system == NAME).figures
            say(name, "; ".join(told(figures[key]) for key in ("auroc", "false_alarms", "right_call")), "")
            if name in SUITES:
                aurocs[name] = figures["auroc"].value or 0.0
    worst = min(aurocs, key=lambda name: aurocs[name])
    say("suites: mean AUROC, worst", f"{sum(aurocs.values()) / len(aurocs):.3f}, {aurocs[worst]:.3f} ({worst})", "")
    clean_of = {name: highest_of(sources[name], systems[name])["untouched"] for name in SUITES}
    say("\nsuite", "hijacked in time; without an attack alarmed at the others' rank", "")
    for name in SUITES:
        others = conformal_threshold(sorted(chain(*(clean_of[other] for other in SUITES if other != name))), 0.05)
        at = share(clean_of[name], others if others is not None else 1.0)
        say(name, f"{share(in_time(sources[name], systems[name]), ALARM_5):.0%}; {at:.1%}", "")
    say("\nsource", f"runs, rank; alarmed at {ALARM_5}, {ALARM_1}; hijacked caught; resisted alarmed", "")
    for name, runs in sources.items():
        highest = highest_of(runs, systems[name])
        clean = highest["untouched"]
        rank = conformal_threshold(sorted(clean), 0.05)
        above = {kind: [f"{share(values, at):.0%}" for at in (ALARM_5, ALARM_1)] for kind, values in highest.items()}
        ranked = "-" if rank is None else f"{rank:.3f}"
        say(name, f"{len(clean)}, {ranked}; {above['untouched']}; {above['hijacked']}; {above['resisted']}", "")


def gathered() -> dict[str, list[LabelledRun]]:
    """Return the runs by source; those of AgentDojo and AgentDyn by suite, and AgentDojo's reworded."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "written.jsonl"
        made.write_text("".join(json.dumps(run) + "\n" for run in written_runs()), encoding="utf-8")
        attacked = read_labelled([DATA / "runs" / f"{name}.jsonl.gz" for name in ("agentdojo", "agentdyn")])
        found = {name: [run for run in attacked if run.part == name] for name in SUITES}
        for kind, how in REWORDINGS.items():
            path = Path(folder) / f"{kind}.jsonl"
            path.write_text("".join(json.dumps(run) + "\n" for run in reworded(how)), encoding="utf-8")
            found[kind] = read_labelled([path])
        for name in ("tau_airline", "tau_retail", "swebench_mini", "medagentbench"):
            found[name] = read_labelled([DATA / "runs" / f"{name}.jsonl.gz"])
        found["scenarios"] = read_labelled([made])
    for name in ("outsider", "fresh", "hints"):
        found[name] = read_labelled([DATA / "written" / f"{name}.jsonl.gz"])
    return found


def in_time(runs: Sequence[LabelledRun], system: System) -> list[float]:
    """Return the highest risk of each hijacked run up to its hijacking call."""
    found = []
    for run in runs:
        at = run.labels.hijack_step
        if run.attack == "hijacked" and at is not None:
            steps = system.step_scores[run.id] or ()
            found.append(max((score for score in steps[: at + 1] if score is not None), default=0.0))
    return found


def highest_of(runs: Sequence[LabelledRun], system: System) -> dict[str, list[float]]:
    """Return the highest risk of each run, by what was done to it."""
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
