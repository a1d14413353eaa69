"""Answers that add what nobody asked for, and right answers in other languages or with few shared words."""

import json
from pathlib import Path

import pytest

from coherence.policy.scope import ScopeDrift, scope_drift, scope_finding
from coherence.providers.minilm import default_embedder

CASES = Path(__file__).resolve().parents[1] / "data" / "scope_cases.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def measured(row: dict[str, str], embedded: bool) -> ScopeDrift:
    """Return a case's drift, with the cosine of the shipped model or without."""
    embed = default_embedder().embed
    cosine = float(embed(row["task"]) @ embed(row["answer"])) if embedded else None
    return scope_drift(row["task"], row["answer"], cosine=cosine)


@pytest.mark.parametrize("row", [row for row in ROWS if row["kind"] == "addition"], ids=lambda row: row["id"])
def test_additions_are_drift_and_named(row: dict[str, str]) -> None:
    drift = scope_drift(row["task"], row["answer"])
    assert drift.drifted
    assert drift.judged
    named = " ".join(drift.additions)
    assert named
    assert all(any(word[:5] in named for word in (wanted, wanted.lower())) for wanted in row["added"])


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "words"])
def test_scope_drift_right_answers_are_not_flagged(embedded: bool) -> None:
    right = [row for row in ROWS if row["kind"] == "right"]
    assert len(right) == 55
    flagged = [row["id"] for row in right if measured(row, embedded).drifted]
    assert len(flagged) <= 3, flagged
    assert not [row["id"] for row in right if measured(row, embedded).additions]
    assert not [name for name in flagged if not name.startswith("second-")]


def test_scope_drift_unrelated_answers_are_still_flagged() -> None:
    """The German one is not: the shipped model sees a likeness that the words do not."""
    unrelated = [row for row in ROWS if row["kind"] == "unrelated"]
    assert [row["id"] for row in unrelated if not measured(row, True).drifted] == ["weather-de"]


def test_scope_drift_another_language_is_judged_by_a_multilingual_embedder_alone() -> None:
    task, answer = "Fix the login bug.", "Kartoffeln sch\u00e4len und mit dem Dill in der Butter kochen."
    assert not scope_drift(task, answer, cosine=0.0).judged
    assert scope_drift(task, answer, cosine=0.0, multilingual=True).drifted
    assert not scope_drift(task, answer, cosine=0.4, multilingual=True).drifted


def test_scope_finding_names_what_was_added_and_asks_to_guide() -> None:
    finding = scope_finding(scope_drift("Rename load to read", "Renamed. I also added a cache."), 7)
    assert (finding.active, finding.severity, finding.evidence) == (True, "guide", (7,))
    assert finding.why == "the answer adds what nobody asked for: cache"


def test_scope_cases_are_unique() -> None:
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 104
    assert {row["kind"] for row in ROWS} == {"addition", "right", "unrelated"}
