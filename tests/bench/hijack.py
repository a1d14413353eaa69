"""Figures of ``goal_hijack``: how it separates calls, and how its threshold holds on agents that nobody tuned for.

Run ``python tests/bench/hijack.py``; it takes some minutes. The first table compares hijacking calls with legitimate
ones. In the others a suite is an agent, and the result of each run counts: *alarmed* is the share of the runs without
an attack, *caught* that of the hijacked ones, in percent, means of many shuffles. In the second table 20 unlabelled
runs, some of them hijacked, are the agent's life (:mod:`coherence.baseline.own_life`), and only calls up to the
hijacking one count; *cold* is the first run of an agent. In the third the agent has good runs labelled as such.
Nothing is fitted on a suite; the constants were chosen with all of them in sight.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from showing import say
from written import written_runs

from coherence.baseline.calibration import SHIPPED, watch
from coherence.baseline.own_life import LEAST, Life, learn_life
from coherence.baseline.runs import Run
from coherence.core.redact import redact, redact_value
from coherence.detect.hijack import ALARM_5, HijackScore, HijackWatch
from coherence.detect.text_analysis import TextAnalysis
from coherence.evaluation.baselines import baselines
from coherence.evaluation.bootstrap import Figure
from coherence.evaluation.comparison import evaluate, judged_runs
from coherence.evaluation.measure import measure
from coherence.evaluation.runs import LabelledRun, read_labelled
from coherence.evaluation.systems import System

DATA = Path(__file__).resolve().parents[1] / "data"
NAME = "goal_hijack"
SUITES = ("agentdojo/banking", "agentdojo/workspace", "agentdyn/github", "agentdyn/shopping")
QUIET = ("tau_airline", "tau_retail", "swebench_mini", "medagentbench")
"""Runs of which none was attacked."""
SHUFFLES = 100
SHARES = (0.0, 0.1, 0.2)
"""Of the 20 runs, how many were hijacked."""
OWN_RUNS = (0, 39, 60)
"""Labelled good runs of the agent; below 39 the shipped threshold holds."""
BUDGET = 0.05


class Judged(NamedTuple):
    """A run: how it stood to an attack, and its calls up to the hijacking one, if there was one."""

    attack: str
    life: dict[str, float]
    """Scores that it teaches: tool -> the highest of its calls."""
    calls: list[tuple[str, HijackScore]]


def main() -> None:
    """Print the three tables."""
    sources = gathered()
    attacked = {name: runs for name, runs in sources.items() if name not in QUIET}
    systems = {name: measure([NAME], runs, cache=None)[0] for name, runs in attacked.items()}
    say("source", "hijacking calls: AUROC; alarms per 100 calls at 80 % recall")
    for name, runs in attacked.items():
        rivals = baselines(judged_runs(runs)) if name == "agentdojo" else []
        sections = evaluate(runs, [systems[name], *rivals], target="hijack").sections
        for row in next(found for found in sections if found.question == "calls").rows:
            say(f"{name}, {row.system}", "; ".join(told(row.figures[key]) for key in ("auroc", "false_alarms")))
    suites = {part: sources.get(part) or [run for run in sources["agentdojo"] if run.part == part] for part in SUITES}
    suites |= {name: sources[name] for name in QUIET}
    say("\nagent", f"alarmed, caught: cold; after {LEAST} runs, of which hijacked: {SHARES}")
    for name, runs in suites.items():
        judged_ones = [run for run in map(judged, runs) if run is not None]
        clean = [run for run in judged_ones if run.attack == "untouched"]
        bad = [run for run in judged_ones if run.attack == "hijacked"]
        shares = SHARES if bad else SHARES[:1]
        found = [shares_of(clean, bad, Life()), *(simulated(clean, bad, share) for share in shares)]
        say(name, "; ".join(f"{100 * alarmed:.1f}, {100 * caught:.0f}" for alarmed, caught in found))
    say("\nagent", f"alarmed, caught: after so many labelled good runs of its own: {OWN_RUNS}")
    for name in SUITES[:2]:
        cells = [labelled(suites[name], systems["agentdojo"], count) for count in OWN_RUNS]
        say(name, "; ".join(f"{100 * alarmed:.1f}, {100 * caught:.1f}" for alarmed, caught in cells))


def gathered() -> dict[str, list[LabelledRun]]:
    """Return the runs by source; AgentDyn's by suite."""
    found = {"agentdojo": read_labelled([DATA / "runs" / "agentdojo.jsonl.gz"])}
    dyn = read_labelled([DATA / "runs" / "agentdyn.jsonl.gz"])
    found |= {name: [run for run in dyn if run.part == name] for name in SUITES[2:]}
    found |= {name: read_labelled([DATA / "written" / f"{name}.jsonl.gz"]) for name in ("outsider", "fresh")}
    found |= {name: read_labelled([DATA / "runs" / f"{name}.jsonl.gz"]) for name in QUIET}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenarios.jsonl"
        path.write_text("".join(json.dumps(run) + "\n" for run in written_runs()), encoding="utf-8")
        return {**found, "scenarios": read_labelled([path])}


def told(figure: Figure) -> str:
    """Return a figure and its interval."""
    return f"{figure.value:.3g} [{figure.low:.3g}, {figure.high:.3g}]"


def labelled(runs: Sequence[LabelledRun], system: System, count: int) -> tuple[float, float]:
    """Return the shares alarmed and caught by the threshold of so many good runs of the agent."""
    good, bad = (
        [max(system.run(run), 0.0) for run in runs if run.attack == kind] for kind in ("untouched", "hijacked")
    )
    rows = []
    for shuffle in range(SHUFFLES):
        drawn = random.Random(shuffle).sample(good, len(good))
        kept = watch(NAME, SHIPPED[NAME].version, BUDGET)
        for value in drawn[:count]:
            kept.observe(value, 0.5)
        threshold = 1.0 if kept.value is None else kept.value
        rest = drawn[count:]
        rows.append([sum(value > threshold for value in values) / len(values) for values in (rest, bad)])
    alarmed, caught = zip(*rows, strict=True)
    return sum(alarmed) / len(rows), sum(caught) / len(rows)


def simulated(clean: Sequence[Judged], bad: Sequence[Judged], share: float) -> tuple[float, float]:
    """Return both figures after a life of which a share was hijacked."""
    count = LEAST
    rows = []
    for shuffle in range(SHUFFLES):
        rng = random.Random(shuffle)
        order, attacks = rng.sample(clean, len(clean)), rng.sample(bad, len(bad))
        hijacked = round(share * count)
        good = [run for run in order if run.life][: count - hijacked]  # a run without a call counts for no life
        life = learn_life([run.life for run in (*good, *attacks[:hijacked])], 0.05, ALARM_5)
        rest = [run for run in order if not any(run is each for each in good)]
        rows.append(shares_of(rest, attacks[hijacked:], life))
    alarmed, caught = zip(*rows, strict=True)
    return sum(alarmed) / len(rows), sum(caught) / len(rows)


def shares_of(clean: Sequence[Judged], bad: Sequence[Judged], life: Life) -> tuple[float, float]:
    """Return the shares alarmed and caught."""
    alarmed, caught = (
        [any(warned(tool, score, life) for tool, score in run.calls) for run in runs] for runs in (clean, bad)
    )
    return sum(alarmed) / max(len(clean), 1), sum(caught) / max(len(bad), 1)


def warned(tool: str, score: HijackScore, life: Life) -> bool:
    """Return whether a call asks to warn."""
    alone = life.threshold(tool)
    if alone is None:
        return bool(score.unauthorised) and score.value > ALARM_5
    return score.value > alone


def judged(run: LabelledRun) -> Judged | None:
    """Return how the calls of a run are judged; ``None`` of one that is hijacked nobody knows where."""
    last = run.labels.hijack_step
    if run.attack == "hijacked" and last is None:
        return None
    watch, whole, calls = HijackWatch(), Run(), []
    watch.ask(redact(run.transcript.goal))
    for at, step in enumerate(run.transcript.steps):
        text = redact(step.content)
        if step.role == "tool":
            watch.read(at, TextAnalysis(text), None, step.tool_name)
            continue
        if text and step.role == "user" and (at or text != run.transcript.goal):
            watch.ask(text)
        elif text:
            watch.say(text)
        for number, call in enumerate(step.tool_calls):
            watch.call(at, call.name, redact_value(call.arguments), f"{at} {number}")
            if watch.newest is not None:
                whole.add_score(call.name, watch.newest)
                if last is None or at <= last or run.attack != "hijacked":
                    calls.append((call.name, watch.newest))
    return Judged(run.attack or "untouched", whole.calls, calls)


if __name__ == "__main__":
    main()
