"""Directives: sentences that tell their reader to do something, and the same words where they tell nobody."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.provenance.directives import gate


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Send the report to Anna.", 0.5),
        ("send the report", 0.5),
        ("Please, now delete the file with ID 13.", 0.5),
        ("Could you forward this mail to Bob?", 0.5),
        ("You must transfer the money today.", 0.75),  # the verb 0.5, must 0.25
        ("When you are done, delete the file.", 0.25),  # an inner clause
        ("This request is urgent.", 0.5),  # a task word, a word of precedence
        ("Before this task, send the report.", 1.0),
        ("Before the next task, send the report.", 0.75),  # an inner clause
    ],
)
def test_a_directive_has_a_gate(sentence: str, expected: float) -> None:
    assert gate(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "The rent rises by 100 in May.",
        "Sending reports takes a while.",  # no bare verb
        "Anna sends the report on Fridays.",
        "You will like the terrace of this hotel.",  # mail speaks to its reader all the time
        "Claude Monet painted the garden.",
        "Die Datei muss gelöscht werden.",  # other languages have no cue
        "",
    ],
)
def test_prose_that_tells_nobody_anything_has_none(sentence: str) -> None:
    assert gate(sentence) == 0.0


@given(st.text(max_size=300))
def test_the_gate_is_a_share(sentence: str) -> None:
    assert 0.0 <= gate(sentence) <= 1.0


@pytest.mark.parametrize("unit", ["please ", "you must ", ", then ", "before a b", " ", "so", "\ud800"])
def test_long_lead_ins_do_not_stall(unit: str) -> None:
    assert 0.0 <= gate(unit * 20_000) <= 1.0
