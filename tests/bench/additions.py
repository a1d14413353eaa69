"""Counts of flagged answers: those that add what nobody asked for, and right ones.

Run: ``python tests/bench/additions.py``. ``tests/data/scope_cases_2.jsonl`` was written without sight of the rules. At
first sight 9 of its 50 additions and 2 of its 50 right answers were flagged. Then the even ones of each kind (the first
is 0) were read and mended with; of the odd ones only the counts were looked at, again and again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coherence.policy.scope import scope_drift
from coherence.providers.minilm import default_embedder

CASES = Path(__file__).resolve().parents[1] / "data" / "scope_cases_2.jsonl"


def is_flagged(case: dict[str, Any], *, embedded: bool) -> bool:
    """Return whether an answer is flagged, with the shipped embedder or by its words alone."""
    embed = default_embedder().embed
    cosine = float(embed(case["task"]) @ embed(case["answer"])) if embedded else None
    return scope_drift(case["task"], case["answer"], cosine=cosine).drifted


def main() -> None:
    cases: Sequence[dict[str, Any]] = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    for kind in ("addition", "right"):
        chosen = [case for case in cases if case["kind"] == kind]
        for embedded in (True, False):
            found = [is_flagged(case, embedded=embedded) for case in chosen]
            halves = ", ".join(f"{sum(half)} of {len(half)}" for half in (found, found[::2], found[1::2]))
            how = "with the shipped embedder" if embedded else "by words alone"
            sys.stdout.write(f"{kind}, {how}, flagged: {halves} (all, even, odd)\n")


if __name__ == "__main__":
    main()
