"""Rate at which the rules about claims warn in good runs, and in planted ones from the onset on.

Run: ``python tests/bench/claims.py``; ``python tests/bench/claims.py unseen`` instead judges pairs of right and wrong
statements whose writers never saw the rules (``tests/data/claims``).
A run counts where a rule asks to warn at any step; of a planted pair, both runs from the step on at which one derails.
Names of files (``tau_retail``) as arguments choose some.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from coherence import EmbeddingCache
from coherence.evaluation.own_runs import observe
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.readers import read_transcripts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from unseen_twins import Judged, judge_twin, read_twins  # stands beside the tests

RUNS = Path(__file__).resolve().parents[1] / "data" / "runs"
RULES = ("contradicted_claim", "broken_constraint", "ungrounded_writing", "ungrounded_answer")
KINDS = ("false_success", "contradicts_evidence", "constraint_broken", "written_fabrication", "fabricated_value")
Warned = dict[str, list[int]]


def measured(file: Path) -> list[tuple[dict[str, Any], Warned]]:
    """Return the labels of each run, and the steps at which each rule asks to warn."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    cache, found = EmbeddingCache(HashingEmbedder(64)), []
    for document, transcript in zip(documents, read_transcripts(file, None), strict=True):
        asked = [dict(step.asked) for step in observe(transcript, cache)]
        warned = {rule: [at for at, kinds in enumerate(asked) if kinds.get(rule) == "warn"] for rule in RULES}
        found.append(({**document["labels"], "id": document["id"]}, warned))
    return found


def is_good(labels: dict[str, Any]) -> bool:
    return not (labels.get("derailed") or labels.get("hijacked") or labels.get("success") is False)


def unseen() -> None:
    """Show how many wrong and right statements are flagged, by half: the rules were mended with the even lines."""
    for name in ("answers", "answers_2", "answers_3", "claims", "claims_2", "claims_3"):
        judged = [each for line, twin in enumerate(read_twins(name)) for each in judge_twin(line, twin)]
        for half, parts in (("all", {0, 1}), ("even lines", {0}), ("odd lines", {1})):
            chosen = [each for each in judged if each.line % 2 in parts]
            for strength, asked in ((1, "guide or warn"), (2, "warn")):
                shares = ", ".join(_share(chosen, strength, wrong=wrong) for wrong in (True, False))
                sys.stdout.write(f"{name}, {half}, {asked}: {shares}\n")
        written = [each for each in judged if each.written]
        if written:
            shares = ", ".join(_share(written, 1, wrong=wrong) for wrong in (True, False))
            sys.stdout.write(f"{name}, written: {shares}\n")


def _share(judged: list[Judged], strength: int, *, wrong: bool) -> str:
    chosen = [each for each in judged if each.wrong is wrong]
    count = sum(each.strength >= strength for each in chosen)
    return f"{'wrong' if wrong else 'right'} ones flagged {count} of {len(chosen)} ({100 * count / len(chosen):.0f} %)"


def main(names: list[str]) -> None:
    if names == ["unseen"]:
        unseen()
        return
    files = [RUNS / f"{name}.jsonl.gz" for name in names] or sorted(RUNS.glob("*.jsonl.gz"))
    for file in files:
        runs = measured(file)
        good = [warned for labels, warned in runs if is_good(labels)]
        shares = (f"{rule} {sum(bool(warned[rule]) for warned in good)}" for rule in RULES)
        sys.stdout.write(f"{file.name.partition('.')[0]}: of {len(good)} good runs warned: {', '.join(shares)}\n")
        by_id = {labels["id"]: warned for labels, warned in runs}
        for kind in KINDS:
            planted = [labels for labels, _ in runs if labels.get("derailed") and labels.get("kind") == kind]
            for which in ("id", "twin") if planted else ():
                late = [[max(by_id[each[which]][rule], default=-1) for each in planted] for rule in RULES]
                onsets = [each["onset_step"] for each in planted]
                counts = (
                    f"{rule} {sum(last >= onset for last, onset in zip(lasts, onsets, strict=True))}"
                    for rule, lasts in zip(RULES, late, strict=True)
                )
                sys.stdout.write(f"  {kind}, {which}, of {len(planted)}: {', '.join(counts)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
