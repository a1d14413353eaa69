"""The lines of an output that say most."""

from __future__ import annotations

import pytest

from coherence.lessons.error_words import TELLING
from coherence.lessons.headlines import find_headline
from coherence.lessons.line_scores import MAX_SCORED, weighed
from coherence.lessons.normal import normalise

WORK = [f"reading part {at} of the input" for at in range(3 * MAX_SCORED)]


@pytest.mark.parametrize(
    "told",
    [
        "ValueError: the disk is full",
        "fatal: unable to read the tree",
        "qemu: unsupported machine type",
        "bind: address already in use",
        "input.c: duplicate case value",
    ],
)
@pytest.mark.parametrize("at", [0, len(WORK) // 2, len(WORK)])
def test_line_scores_a_telling_line_is_found_wherever_it_stands_in_a_long_output(told: str, at: int) -> None:
    assert find_headline([*WORK[:at], told, *WORK[at:]]).message.endswith(told.partition(": ")[2])


@pytest.mark.parametrize("word", TELLING)
def test_weighed_no_telling_word_is_passed_over_in_a_long_output(word: str) -> None:
    lines = [*WORK[:MAX_SCORED], f"it {word} x", *WORK]
    assert MAX_SCORED in weighed(lines)
    assert len(weighed(lines)) <= MAX_SCORED


def test_line_scores_what_says_only_that_something_failed_gives_way_to_the_line_before() -> None:
    text = "compiling the kernel\nout of luck today\nmake: *** [all] Error 2"
    assert normalise(text).template == "out of luck today"
    assert normalise("make: *** [all] Error 2").template.startswith("make")  # near miss: nothing stands before
