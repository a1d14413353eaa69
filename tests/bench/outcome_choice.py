"""Search for cues that tell failures on a desk they were not chosen on; shows why ``outcome_risk`` is unknown.

The pool holds the cues of the estimate, further counts, and cues that read the policy in ``system`` and compare with it
what was done: calls that change something without the confirmation that it demands, under a rule with conditions, of
records that were never looked up or whose values a rule excludes, said and done in one step; requests of kinds that
were not done; handing over to a human. Sums of up to three are chosen on one desk by AUROC at equal length, and judged
on the other.
"""

from __future__ import annotations

import re
import sys
from itertools import combinations
from math import log1p
from typing import Any, NamedTuple

import numpy as np
from ranks import Floats, Run, Scored, auroc, equal_length, folded, interval, load, steps_of
from service_cues import ServiceDetector

from coherence.detect.acts import acts_of
from coherence.detect.detector import Observed
from coherence.detect.fingerprints import name_words
from coherence.detect.text_analysis import TextAnalysis

DESKS = ("tau_airline", "tau_retail")
READS = frozenset("get find search list calculate think look check fetch read query view show retrieve".split())
_YES = re.compile(r"\b(?:yes|yeah|sure|correct|confirm(?:ed)?|go ahead|proceed|please do|ok(?:ay)?|agree)\b", re.I)
_CONDITION = re.compile(r"\b(?:cannot|can not|only (?:be|if|when)|must|not allowed|unless|should not|at most|once)\b")
_EXCLUDES = re.compile(r"\b([a-z]+ [a-z]+) (?:\w+ )?(?:cannot|can not|must not) be ")
_NEEDS = re.compile(r"\bonly be \w+ if (?:its|their|the) (\w+) is '(\w+)'")
_WORD = re.compile(r"[a-z]+")


class Act(NamedTuple):
    """A call that changes something."""

    kind: str
    ids: tuple[str, ...]
    confirmed: bool
    spoken: bool
    """True if the step says something to the user too."""


class Followed(NamedTuple):
    """Acts of a run, as far as a policy speaks of it."""

    acts: list[Act]
    records: dict[str, str]
    """Id -> the newest result that holds it."""
    asked: set[str]
    handed: bool


def follow(steps: list[dict[str, Any]]) -> Followed:
    acts: list[Act] = []
    records: dict[str, str] = {}
    asked: set[str] = set()
    handed, newest = False, ""
    for step in steps:
        text = step.get("tool_result") or step.get("content") or ""
        if step["role"] == "user":
            newest = text
            asked |= kinds(text)
        elif step["role"] == "tool":
            records |= dict.fromkeys(re.findall(r'_id": "([^"]+)"', text)[:20], text)
        for call in step.get("tool_calls") or []:
            words = name_words(call["name"])
            if "human" in words:
                handed = True
            elif words and words[0] not in READS:
                given = call["arguments"] if isinstance(call["arguments"], dict) else {}
                ids = tuple(
                    str(value) for name, value in given.items() if name.endswith("_id") and "payment" not in name
                )
                acts.append(Act(kind_of(words[0]), ids, _YES.search(newest) is not None, bool(text.strip())))
    return Followed(acts, records, asked, handed)


def kind_of(word: str) -> str:
    return min(acts_of(word), default=word[:5])


def kinds(text: str) -> set[str]:
    return {kind_of(word) for word in _WORD.findall(text.lower())}


def acting(run: Run) -> set[str]:
    """Return the kinds of the calls of a run that change something."""
    return {act.kind for act in follow(run["steps"]).acts}


def policy_cues(run: Run, steps: list[dict[str, Any]], offered: set[str]) -> dict[str, float]:
    """Return how what was done stands to the policy, each cue higher = worse."""
    found = follow(steps)
    rules = [text.lower() for text in TextAnalysis(run["system"]).statements]
    confirms = any("confirm" in text for text in rules)
    conditioned = excluded = unread = 0
    for act in found.acts:
        own = [text for text in rules if act.kind in kinds(text)]
        conditioned += sum(_CONDITION.search(text) is not None for text in own)
        for record in (found.records.get(id, "") for id in act.ids):
            unread += not record
            excluded += any(breaks(text, record) for text in own if record)
    count = max(len(found.acts), 1)
    done = {act.kind for act in found.acts}
    return {
        "unconfirmed": sum(not act.confirmed for act in found.acts) / count * confirms,
        "conditions": log1p(conditioned),
        "conditions an act": conditioned / count / 10,
        "excluded by its record": float(min(excluded, 2)),
        "never looked up": float(min(unread, 2)),
        "said and done at once": sum(act.spoken for act in found.acts) / count,
        "asked and not done": len((found.asked & offered) - done) / 4,
        "done unasked": len(done - found.asked) / 2,
        "handed over": float(found.handed),
        "handed over after acts": float(found.handed and bool(found.acts)),
        "kinds of acts": len(done) / 3,
        "acts": log1p(len(found.acts)),
    }


def breaks(rule: str, record: str) -> bool:
    """Tell whether a record has a value that a rule excludes, or lacks one that it needs."""
    if (needs := _NEEDS.search(rule)) is not None:
        return f'"{needs[1]}": "' in record and f'"{needs[1]}": "{needs[2]}' not in record
    return any(subject.replace(" ", "_") in record for subject in _EXCLUDES.findall(rule))


def cues_of(run: Run, offered: set[str]) -> dict[str, float]:
    """Return all cues of a run, each about 0 to 1, higher = worse; ``offered`` = kinds of acts that its desk offers."""
    steps = run["steps"]
    *_, state = folded(run)
    detector = ServiceDetector()
    for event in (event for step in steps_of(run) for event in step):
        detector.observe(Observed.of(event))
    service = detector.data
    asked = [step.get("content") or "" for step in steps if step["role"] == "user"]
    words = [len(text.split()) for text in asked] or [0]
    return {
        "asked": service.asked,
        "unrefused": service.unrefused,
        "searching": service.searching,
        "words of the user": log1p(sum(words)) / 6,
        "errors": min(state.facts.errors / 4, 1),
        **policy_cues(run, steps, offered),
    }


def main() -> None:
    runs = {desk: load(desk) for desk in DESKS}
    offers = {desk: set[str]().union(*map(acting, found)) for desk, found in runs.items()}
    cues = {desk: [cues_of(run, offers[desk]) for run in found] for desk, found in runs.items()}
    names = list(cues[DESKS[0]][0])
    values = {desk: np.array([[each[name] for name in names] for each in found]) for desk, found in cues.items()}
    values = {desk: (found - found.mean(0)) / (found.std(0) + 1e-9) for desk, found in values.items()}

    def rows(desk: str, scores: Floats) -> list[Scored]:
        return [
            Scored(float(score), not run["labels"]["success"], len(run["steps"]), run["group"])
            for run, score in zip(runs[desk], scores, strict=True)
        ]

    def told(desk: str, scores: Floats) -> str:
        found = rows(desk, scores)
        low, high = interval(found, equal_length, 200)
        return f"{auroc(found):.2f}, equal length {equal_length(found):.2f} [{low:.2f}, {high:.2f}]"

    say(f"{'each cue alone':<28}" + "".join(f"{desk:<40}" for desk in DESKS))
    for at, name in enumerate(names):
        say(f"{name:<28}" + "".join(f"{told(desk, values[desk][:, at]):<40}" for desk in DESKS))
    sums = [parts for count in (1, 2, 3) for parts in combinations(range(len(names)), count)]
    for train, test in (DESKS, DESKS[::-1]):
        for pool, use in (
            ("all", sums),
            ("policy", [parts for parts in sums if min(parts) >= names.index("unconfirmed")]),
        ):
            best = max(use, key=lambda parts: equal_length(rows(train, values[train][:, parts].sum(1))))
            chosen = f"{pool}: " + " + ".join(names[at] for at in best)
            say(f"\nchosen on {train} of {len(use)} sums, {chosen}: {told(train, values[train][:, best].sum(1))}")
            say(f"judged on {test}: {told(test, values[test][:, best].sum(1))}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
