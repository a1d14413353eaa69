"""Rate at which ``grounding`` flags answers of good runs, and catches answers with one changed value.

Run: ``python tests/bench/grounding.py``. Answers are the agent's messages without a tool call, in runs that the
benchmark calls a success and that were not hijacked. Each answer without a flag is then corrupted once a kind, by a
fixed rule, and judged again.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.events import Event, Goal, Message, ToolCall, ToolResult
from coherence.core.readings import Claim
from coherence.detect.answer_text import without_thinking
from coherence.detect.arithmetic import rounded
from coherence.detect.detector import Observed
from coherence.detect.extractors import BUILT_IN, DEFAULT, extract
from coherence.detect.grounding import judge
from coherence.detect.grounding_state import GroundingAccount, GroundingDetector
from coherence.detect.sources import lookup
from coherence.detect.values import fold

RUNS = Path(__file__).resolve().parents[1] / "data" / "runs"
CHOSEN = [BUILT_IN[name] for name in DEFAULT]
KINDS = ("id", "email", "url", "path", "date", "time", "amount", "number", "quote")
Run = dict[str, Any]


def show(name: str, value: str = "") -> None:
    sys.stdout.write(f"{name:<44} {value}\n")


def load(name: str) -> list[Run]:
    with gzip.open(RUNS / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def answers(run: Run, spent: list[float]) -> Iterator[tuple[GroundingAccount, str, bool]]:
    """Yield the account before each message without a call, the message, and whether it is the last one."""
    detector = GroundingDetector(DEFAULT)
    for text in (run.get("system"), run["goal"]):
        detector.observe(Observed.of(Goal(text or "")))
    steps = run["steps"]
    plain = [
        step["i"] for step in steps if step["role"] == "assistant" and step["content"] and not step.get("tool_calls")
    ]
    for step in steps:
        seq, text = step["i"] + 1, step["content"] or ""
        if step["i"] in plain:
            yield detector.data, text, step["i"] == plain[-1]
        begun = time.process_time()
        events: list[Event] = [Message(step["role"], text)]
        if step["role"] == "tool":
            events = [ToolResult(step.get("tool_result") or text, error=bool(step.get("is_error")))]
        for call in step.get("tool_calls") or ():
            events.append(ToolCall(call["name"], msgspec.Raw(msgspec.json.encode(call["arguments"])), f"{seq}"))
        for event in events:
            detector.observe(Observed.of(event, seq))
        spent.append(time.process_time() - begun)


def changed(claim: Claim, rng: random.Random) -> str | None:
    """Return a value with one character changed, of a quotation two words of three; ``None`` if it has none to."""
    if claim.kind == "quote":
        words = claim.text.split()
        for at in rng.sample(range(len(words)), -(-2 * len(words) // 3)):
            words[at] = rng.choice(("granite", "violet", "harbour", "seldom", "quarrel"))
        return " ".join(words)
    places = [at for at, char in enumerate(claim.text) if char.isdigit()]
    if claim.kind in ("email", "url", "path"):
        places = [at for at, char in enumerate(claim.text) if char.isalnum()][3:]
    if claim.kind == "date" and claim.text[:4].isdigit():
        places = [at for at in places if at >= 5]
    if not places:
        return None
    at = rng.choice(places)
    others = [
        char
        for char in ("0123456789" if claim.text[at].isdigit() else "abcdefghijklmnop")
        if char != claim.text[at].lower()
    ]
    return f"{claim.text[:at]}{rng.choice(others)}{claim.text[at + 1 :]}"


def is_given(account: GroundingAccount, text: str, claim: Claim) -> bool:
    """Tell whether a changed value happens to be another given one: nobody could see that."""
    return lookup(account.given, claim.forms) is not None or rounded(account.given, text, claim)


def figures(name: str, *, last: bool) -> None:
    rng = random.Random(0)
    spent: list[float] = []
    flagged: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    real: Counter[str] = Counter()
    seen = checked = bad = values = 0
    for run in load(name):
        if not run["labels"].get("success", False) or run["labels"].get("hijacked"):
            continue
        for account, text, final in answers(run, spent):
            if last and not final:
                continue
            seen += 1
            grounds = judge(account.given, text, CHOSEN)
            checked += grounds.value is not None
            values += grounds.checked
            if grounds.grave:
                bad += 1
                flagged.update({f"{flaw.kind} {flaw.flaw}" for flaw in grounds.grave})
                continue
            folded = without_thinking(fold(text))
            claims = extract(folded, CHOSEN)
            for kind in KINDS:
                possible = [
                    claim
                    for claim in claims
                    if claim.kind == kind
                    and (claim.value is None or claim.value > 12 or claim.unit)
                    and len(claim.text.split()) < 60
                    and (kind != "quote" or len(claim.text.split()) > 2)
                ]
                if not possible:
                    continue
                claim = rng.choice(possible)
                new = changed(claim, rng)
                if new is None:
                    continue
                worse = folded[: claim.start] + new + folded[claim.start + len(claim.text) :]
                there = [other for other in extract(worse, CHOSEN) if other.start == claim.start and other.kind == kind]
                if kind != "quote" and there and is_given(account, worse, there[0]):
                    real[kind] += 1
                    continue
                tried[kind] += 1
                found = bool(judge(account.given, worse, CHOSEN).grave)
                caught[kind] += found
    which = "last answers" if last else "all answers"
    show(f"{name}, {which} of good runs", f"{seen}; with a checkable value {checked}; values {values}")
    if tried:
        show(
            "flagged though good",
            f"{bad} of {checked} ({100 * bad / max(checked, 1):.1f} %): {dict(flagged.most_common())}",
        )
        for kind in KINDS:
            if tried[kind]:
                show(
                    f"one {kind} changed, caught",
                    f"{caught[kind]} of {tried[kind]} ({100 * caught[kind] / tried[kind]:.0f} %)",
                )
        total, hits = sum(tried.values()), sum(caught.values())
        show("left out: changed into a given value", f"{sum(real.values())}: {dict(real.most_common())}")
        show("all kinds", f"{hits} of {total} ({100 * hits / max(total, 1):.1f} %)")
    spent.sort()
    show(
        "a step, ms: mean, p99, largest",
        ", ".join(f"{1e3 * t:.2f}" for t in (statistics.fmean(spent), spent[int(0.99 * len(spent))], spent[-1])),
    )


def main() -> None:
    for name, last in (("agentdojo", True), ("tau_airline", False), ("swebench_mini", False)):
        figures(name, last=last)


if __name__ == "__main__":
    main()
