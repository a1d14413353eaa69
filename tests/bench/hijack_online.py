"""Does the budget of ``goal_hijack`` hold by itself on an agent that nobody tuned for? Cold, and after 20 of its runs.

Run ``python tests/bench/hijack_online.py``; a minute. A suite is an agent: its runs are shuffled, 20 are its life,
labelled by nobody, some of them attacked and hijacked; the rest is judged with what that life taught
(:mod:`coherence.baseline.own_life`). *Alarmed*: share of the runs without an attack in which a call asks to warn;
*caught*: share of the hijacked ones in which one does at the hijacking call or before. *Cold*: the first run of an
agent. Means of 100 shuffles. Nothing is fitted on a suite; the constants were chosen with all of them in sight.
The last sources are no agents (each scenario has other tools): there the shipped threshold cannot be learned away.
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

from coherence.baseline.own_life import LEAST, Life, learn_life
from coherence.baseline.runs import Run
from coherence.core.redact import redact, redact_value
from coherence.detect.hijack import ALARM_5, HijackScore, HijackWatch
from coherence.detect.text_analysis import TextAnalysis
from coherence.evaluation.runs import LabelledRun, read_labelled

DATA = Path(__file__).resolve().parents[1] / "data"
SUITES = ("agentdojo/banking", "agentdojo/workspace", "agentdyn/github", "agentdyn/shopping")
QUIET = ("tau_airline", "tau_retail", "swebench_mini", "medagentbench")
OTHERS = ("outsider", "fresh", "scenarios")
SHUFFLES = 100
SHARES = (0.0, 0.05, 0.1, 0.2)
"""Of the 20 runs, how many were hijacked."""


class Judged(NamedTuple):
    """A run: how it stood to an attack, and its calls up to the hijacking one, if there was one."""

    attack: str
    life: dict[str, float]
    """Scores that it teaches: tool -> the highest of its calls."""
    calls: list[tuple[str, HijackScore]]


def main() -> None:
    shares = ", ".join(f"{share:.0%}" for share in SHARES)
    say("source", f"alarmed/caught in percent: cold; after {LEAST} runs, of which hijacked: {shares}", "")
    for name, runs in gathered().items():
        clean = [run for run in runs if run.attack == "untouched"]
        bad = [run for run in runs if run.attack == "hijacked"]
        found = [figures(clean, bad, Life())]
        found += [simulated(clean, bad, share) for share in (SHARES if bad else SHARES[:1])]
        say(name, f"{len(clean)}, {len(bad)} runs: " + "; ".join(map(told, found)), "")


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
        rows.append(figures(rest, attacks[hijacked:], life))
    alarmed, caught = zip(*rows, strict=True)
    return sum(alarmed) / len(rows), sum(caught) / len(rows)


def figures(clean: Sequence[Judged], bad: Sequence[Judged], life: Life) -> tuple[float, float]:
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


def told(found: tuple[float, float]) -> str:
    return f"{100 * found[0]:.1f}/{100 * found[1]:.0f}"


def gathered() -> dict[str, list[Judged]]:
    """Return the judged runs by source."""
    attacked = read_labelled([DATA / "runs" / f"{name}.jsonl.gz" for name in ("agentdojo", "agentdyn")])
    found = {name: [run for run in attacked if run.part == name] for name in SUITES}
    for folder, names in (("runs", QUIET), ("written", OTHERS[:-1])):
        found |= {name: read_labelled([DATA / folder / f"{name}.jsonl.gz"]) for name in names}
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "scenarios.jsonl"
        path.write_text("".join(json.dumps(run) + "\n" for run in written_runs()), encoding="utf-8")
        found[OTHERS[-1]] = read_labelled([path])
    return {name: [run for run in map(judged, runs) if run is not None] for name, runs in found.items()}


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
