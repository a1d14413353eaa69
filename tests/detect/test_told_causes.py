"""Causes that a message gives, and those that the results tell of."""

from __future__ import annotations

import pytest

from coherence.detect.told_causes import kinds_in, other_cause

LOG = "02:14:33 worker: oserror: [errno 28] no space left on device"


@pytest.mark.parametrize(
    "said",
    [
        "It died because the database connection timed out.",
        "Er starb wegen einer Zeitüberschreitung.",
        "C'est à cause de la mémoire.",
        "因为内存不足,任务停止了。",
    ],
)
def test_other_cause_tells_a_cause_of_another_kind(said: str) -> None:
    assert other_cause([said], [LOG]) == said


@pytest.mark.parametrize(
    "said",
    [
        "It died because the disk was full.",
        "Er starb, weil auf der Festplatte kein Platz war.",
        "Did it die because of the memory?",
        "It died because a file was missing.",
        "It died at 02:14.",
    ],
)
def test_other_cause_leaves_the_same_kind_vague_ones_and_questions(said: str) -> None:
    assert other_cause([said], [LOG]) is None


def test_kinds_in_a_log() -> None:
    assert kinds_in(LOG) == {"space"}
