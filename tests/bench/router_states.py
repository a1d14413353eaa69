"""In which states of the router recorded runs end, by file; nothing is embedded.

python tests/bench/router_states.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from coherence.guard.router import StateRouter, measures_of
from coherence.monitor.tick_result import TickResult
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript

RUNS = Path(__file__).resolve().parents[1] / "data" / "runs"
MOST = 40
"""Runs of a file."""


def main() -> None:
    """Score the runs and count the states of their last readings."""
    total = Counter[str]()
    for path in sorted(RUNS.glob("*.jsonl.gz")):
        found = Counter[str]()
        for transcript in read_transcripts(path, "runs")[:MOST]:
            run = score_transcript(transcript, embedder=False)
            verdict = TickResult(run.appraisals[-1], run.decisions[-1], run.readings[-1])
            found[StateRouter().diagnose(traces=[], before_metrics=measures_of(verdict)).code] += 1
        print(path.name, dict(sorted(found.items())))
        total += found
    print(f"of {total.total()} runs {total['111111']} end in 111111")


if __name__ == "__main__":
    main()
