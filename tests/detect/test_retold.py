"""Quotations in another mouth, and clauses that say the opposite of what a result says."""

from __future__ import annotations

import pytest

from coherence.detect.records import Kept, keep_result
from coherence.detect.retold import misattributed, reversed_clauses


def kept(result: str) -> Kept:
    found = Kept()
    keep_result(found, 3, result)
    return found


@pytest.mark.parametrize(
    ("result", "right", "wrong"),
    [
        (
            'Coach Ina Holt was content. Captain Jo Lund called the match "a waste of a Sunday".',
            'Jo Lund called it "a waste of a Sunday".',
            'Ina Holt called it "a waste of a Sunday".',
        ),
        (
            "Die Leiterin Ute Brandt lobte den Plan. Anwalt Karl Reuss nannte ihn „ein Armutszeugnis für alle“.",
            "Karl Reuss nannte den Plan „ein Armutszeugnis für alle“.",
            "Ute Brandt nannte den Plan „ein Armutszeugnis für alle“.",
        ),
    ],
)
def test_misattributed_tells_who_did_not_say_it(result: str, right: str, wrong: str) -> None:
    assert not list(misattributed(kept(result), right))
    assert list(misattributed(kept(result), wrong))


@pytest.mark.parametrize(
    "answer",
    ['The report names it "a waste of a Sunday".', 'She said "a waste of a Sunday".', 'Ina Holt praised "the team".'],
)
def test_misattributed_says_nothing_where_no_name_is_put_to_it(answer: str) -> None:
    result = 'Coach Ina Holt was content. Captain Jo Lund called the match "a waste of a Sunday".'
    assert not list(misattributed(kept(result), answer))


@pytest.mark.parametrize(
    ("result", "right", "wrong"),
    [
        (
            "Please don't cancel the subscription.",
            "Please keep the subscription.",
            "They asked to cancel the subscription.",
        ),
        ("Dogs are not allowed in the pool.", "Dogs are not allowed there.", "Dogs may come along."),
        (
            "Das Rauchen auf dem Balkon ist nicht erlaubt.",
            "Rauchen ist dort nicht erlaubt.",
            "Rauchen ist dort erlaubt.",
        ),
        ("The roof did not leak.", "The roof was dry.", "It rained in because the roof leaked."),
    ],
)
def test_reversed_clauses_tells_the_opposite(result: str, right: str, wrong: str) -> None:
    assert not list(reversed_clauses(kept(result), right))
    assert list(reversed_clauses(kept(result), wrong))


@pytest.mark.parametrize(
    "answer", ["I found your order.", "Do you want a refund?", "She wants a voucher rather than a refund."]
)
def test_reversed_clauses_needs_a_clause_that_is_denied_as_a_whole(answer: str) -> None:
    assert not list(reversed_clauses(kept("Order not found. I don't want a refund."), answer))
