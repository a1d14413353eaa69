from __future__ import annotations

import json

from coherence.core.decisions import KINDS, Appraisal, Decision, Finding, Mode, Signal, worst_kind
from coherence.core.readings import FrozenDict


def test_decisions_a_decision_is_false_for_block_equals_its_word_and_shows_as_one_line() -> None:
    assert [bool(Decision(seq=1, kind=kind)) for kind in KINDS] == [True, True, True, False]
    assert str(Decision(seq=1, kind="continue")) == "continue"
    decision = Decision(seq=7, kind="warn", message="4 errors in a row")
    assert (
        decision == "warn"
        and decision != "block"
        and decision == Decision(seq=7, kind="warn", message=decision.message)
    )
    assert decision not in ("guide", 7)
    assert str(decision) == "warn: 4 errors in a row"
    assert repr(decision) == "<Decision 7: warn: 4 errors in a row>"


def test_to_dict_a_decision_becomes_json() -> None:
    finding = Finding(rule="pressure", severity="warn", active=True, score=0.5, threshold=0.5, evidence=(3, 6))
    decision = Decision(seq=7, kind="warn", findings=(finding,), message="why")
    assert json.loads(json.dumps(decision.to_dict()))["findings"][0]["evidence"] == [3, 6]


def test_causes_are_the_loud_signals_highest_first() -> None:
    signals: FrozenDict[str, Signal] = FrozenDict(
        drift=Signal(0.5, 0.1, 2.0, 0.3),
        cost=Signal(0.9, 0.1, 9.0, 1.0),
        alpha=Signal(0.9, 0.1, 2.0, 0.3),
        uncertainty=Signal(0.1, 0.1, 0.0, 0.0),
    )
    assert Appraisal(seq=1, pressure=0.4, mode=Mode.GUIDE, signals=signals).causes() == ["cost", "alpha", "drift"]


def test_the_worst_kind_wins() -> None:
    assert worst_kind([]) == "continue"
    assert worst_kind(["guide", "block", "warn"]) == "block"
    assert KINDS == ("continue", "guide", "warn", "block")
