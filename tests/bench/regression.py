"""Costs of this version over those of an earlier one, measured in turns within this run; fails where one has risen.

Run ``make bench-compare``, or ``python tests/bench/regression.py [--base COMMIT] [--pairs 5] [--json FILE]``. A cost is
the processor time of all threads over that of ``json.dumps`` of the same text in the same process, so that neither
other work nor the machine's pace counts. A cost has risen where it is more than a tenth higher in every pair: what is
left of noise goes both ways. Where a cost seems to have risen, as many pairs again are measured, twice if need be:
among ten costs, one is often high by chance in three pairs. The base is the commit in the file ``base_commit`` beside
this one; it is moved when a cost rises for a reason. Exit status 1 if a cost has risen, 0 also where the base is not in
this clone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from showing import say

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
BASE = HERE.with_name("base_commit")

RISEN = 1.1
"""Cost over that of the base above which a pair counts."""

PAIRS = 5
ROUNDS = 3
"""Times that the pairs are measured while some cost seems to have risen."""

TIMES = 5
"""Times that each cost is measured in a process; the least counts."""


def text(length: int, seed: int) -> str:
    """Return a text like a tool's output, of which no two are equal."""
    many = range(length // 40 + 1)
    lines = [f"src/app_{seed}_{at}.py:{at}: {at % 7} of {seed + at} tests passed in 0.{at:02} s" for at in many]
    return "\n".join(lines)[:length]


def costs() -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Yield what is measured: its name, how many there are of it, and what does them all."""
    from coherence import Monitor
    from coherence.compat import LLMEvent, Regulator
    from coherence.core.redact import redact
    from coherence.lessons import LessonStore
    from coherence.providers import HashingEmbedder
    from coherence.providers.readers import read_transcripts
    from coherence.report.score import score_transcript

    made = iter(range(1_000_000))

    def record(length: int, count: int) -> None:
        with tempfile.TemporaryDirectory() as folder, Monitor(store=f"{folder}/a.db", embedder=False, goal="x") as m:
            for _ in range(count):
                m.tool_result(
                    text(length, next(made)), call=m.tool_call("Bash", {"command": f"pytest -q {next(made)}"})
                )

    def decide(tell: Callable[[Monitor], object], count: int) -> None:
        with Monitor(embedder=HashingEmbedder(64), goal="mend the tests", config={"tick": "manual"}) as m:
            for _ in range(count):
                tell(m)
                m.decide()

    def check(count: int) -> None:
        with Monitor(embedder=False, goal="mend the tests") as m:
            for _ in range(count):
                m.check("Bash", {"command": f"cd src && grep -rn 'x{next(made)}' . | head -20 > out.txt"})

    def make(count: int) -> None:
        for _ in range(count):
            Monitor(embedder=False).close()

    def turn(count: int) -> None:
        regulator = Regulator.for_user("user", embedder=False)
        for _ in range(count):
            regulator.on_event(LLMEvent.turn_start(text(31, next(made))))
            regulator.on_event(LLMEvent.turn_complete(text(100, next(made))))
            regulator.on_event(LLMEvent.cost(100, 20, 500))
            regulator.decide()

    def query(count: int) -> None:
        with tempfile.TemporaryDirectory() as folder, LessonStore(f"{folder}/l.db", embedder=False) as lessons:
            for number in range(count):
                said = f"ModuleNotFoundError: No module named 'part_{number}'"
                lessons.record(pattern="a", error_text=said, fix_text=f"pip install part_{number}")
                lessons.query(said)

    runs = [run for path in sorted((ROOT / "examples" / "data").glob("*.jsonl*")) for run in read_transcripts(path)[:1]]
    yield "an event of 120 characters, with a store", 240, lambda: record(120, 120)
    yield "an event of 6,000 characters, with a store", 40, lambda: record(6_000, 20)
    yield "decide() after usage", 150, lambda: decide(lambda m: m.usage(tokens_in=10, tokens_out=5), 150)
    yield "decide() after a message", 60, lambda: decide(lambda m: m.message("assistant", text(200, next(made))), 60)
    yield "a turn of 100 characters by words alone", 60, lambda: turn(60)
    yield "check() of a command", 100, lambda: check(100)
    yield (
        "a recorded step scored by words alone",
        sum(len(run.steps) for run in runs),
        lambda: [score_transcript(run, embedder=False) for run in runs],
    )
    yield "1,000 characters redacted", 300, lambda: [redact(text(6_000, next(made))) for _ in range(50)]
    yield "a monitor made and closed", 20, lambda: make(20)
    yield "a lesson recorded and looked up", 60, lambda: query(60)


def measured() -> dict[str, float]:
    """Return each cost in units of ``json.dumps`` of a text of 1,000 characters."""
    return {name: _cost(do) / count for name, count, do in costs()}


def _cost(do: Callable[[], object]) -> float:
    """Return the least cost, each time over the units just before and after: the machine's pace changes in seconds."""
    found, unit = [], _unit()
    for _ in range(TIMES):
        began = time.process_time()
        do()
        took, before, unit = time.process_time() - began, unit, _unit()
        found.append(2 * took / (before + unit))
    return min(found)


def _unit() -> float:
    said = text(1_000, 0)
    began = time.process_time()
    for _ in range(5_000):
        json.dumps(said)
    return (time.process_time() - began) / 5_000


def _on_one_core() -> None:
    """Keep all threads of this process on one core: two that wait for one lock spend time that no work needs."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@contextmanager
def checked_out(commit: str) -> Iterator[Path | None]:
    """Give a folder with the files of a commit, ``None`` if this clone has no such commit."""
    with tempfile.TemporaryDirectory() as name:
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
        if packed.returncode:
            yield None
            return
        subprocess.run(["tar", "-x", "-C", name], input=packed.stdout, check=True)
        yield Path(name)


def measure(tree: Path) -> dict[str, float]:
    """Return the costs of a version, in a process of its own."""
    command = [sys.executable, str(HERE), "--measure", str(tree)]
    said = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(said.stdout)
    return found


def _ratios(found: list[tuple[dict[str, float], dict[str, float]]], name: str) -> list[float]:
    """Return a cost over that of the base, in each pair; NaN where the base has no such cost."""
    return [now[name] / before.get(name, float("nan")) for before, now in found]


def main(base: str, pairs: int, written: Path | None) -> int:
    """Print every cost beside that of the base; return how many have risen."""
    with checked_out(base) as tree:
        if tree is None:
            say(f"no cost is compared: commit {base} is not in this clone")
            return 0
        found: list[tuple[dict[str, float], dict[str, float]]] = []
        for _ in range(ROUNDS):
            found += [(measure(tree), measure(ROOT)) for _ in range(pairs)]
            if not any(min(_ratios(found, name)) > RISEN for name in found[0][1]):
                break
    say("processor time, all threads, over json.dumps of 1,000 characters", "now", "before", "now over before")
    rows, risen = {}, 0
    for name in found[0][1]:
        before, now = ([each[at].get(name, float("nan")) for each in found] for at in (0, 1))
        ratios = _ratios(found, name)
        has_risen = min(ratios) > RISEN
        risen += has_risen
        rows[name] = {"now": statistics.median(now), "before": statistics.median(before), "ratios": ratios}
        told = (
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}){'  RISEN' if has_risen else ''}"
        )
        say(name, f"{statistics.median(now):.1f}", f"{statistics.median(before):.1f}", told)
    if written is not None:
        written.write_text(json.dumps({"base": base, "costs": rows}, indent=1) + "\n", encoding="utf-8")
    return risen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default=BASE.read_text(encoding="utf-8").strip())
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--json", type=Path, help="file that gets all figures")
    parser.add_argument("--measure", type=Path, help="print the costs of the version in a folder, as JSON")
    asked = parser.parse_args()
    if asked.measure is not None:
        import coherence

        assert Path(coherence.__file__).is_relative_to(asked.measure), coherence.__file__
        _on_one_core()
        print(json.dumps(measured()))
    else:
        sys.exit(main(asked.base, asked.pairs, asked.json) > 0)
