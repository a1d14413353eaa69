"""The line of an output that says what went wrong."""

from __future__ import annotations

import pytest

from coherence.lessons.clean import clean_lines
from coherence.lessons.error_words import TELLING
from coherence.lessons.headlines import MAX_SCORED, find_headline, weighed
from coherence.lessons.normal import normalise

NOISE = "".join(f"[{number}/900] Building CXX object src/module_{number}.cc.o\n" for number in range(900))

CHOSEN = [
    ("a.c:1:1: error: unknown type name 'a'\na.c:9:1: error: expected ';'", "unknown type name 'a'"),
    ("make: *** [Makefile:3: app] Error 2\nx.c:3:5: error: unknown type name 'u8'", "unknown type name 'u8'"),
    ("npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! Missing script: build", "Missing script: build"),
    ("npm WARN deprecated x@1: no longer supported\nnpm ERR! Missing script: build", "Missing script: build"),
    ("Command failed with exit code 1\nfatal: not a git repository", "not a git repository"),
    ("running 3 steps\nall fine\ncannot open the index", "cannot open the index"),
    ("first line\nsecond line", "first line"),
    ("first line\n    at f (/srv/a.js:8:5)\n    at /srv/b.js:508:18", "first line"),
    ("E   assert 1 == 2\n\nt.py:3: AssertionError\nE   assert 3 == 4", "assert 1 == 2"),
    (
        "java.lang.IllegalStateException: outer\n\tat a.B.c(B.java:1)\nCaused by: a.CException: inner",
        "a.CException: inner",
    ),
    ("warning: unused variable\nerror[E0425]: cannot find value `x`", "error[E0425]: cannot find value `x`"),
]


@pytest.mark.parametrize(("text", "message"), CHOSEN)
def test_find_headline_the_most_telling_line_is_chosen(text: str, message: str) -> None:
    found = find_headline(clean_lines(text)).message
    assert found == message or message.endswith(found)


def test_find_headline_a_message_is_found_at_both_ends_of_a_long_output() -> None:
    first = "src/x.cc:3:5: error: unknown type name 'u8'\n"
    expected = normalise(first).signature
    assert normalise(first + NOISE).signature == expected
    assert normalise(NOISE + first).signature == expected
    assert normalise(NOISE).signature != expected


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
def test_find_headline_a_telling_line_is_found_wherever_it_stands_in_a_long_output(told: str, at: int) -> None:
    assert find_headline([*WORK[:at], told, *WORK[at:]]).message.endswith(told.partition(": ")[2])


@pytest.mark.parametrize("word", TELLING)
def test_weighed_no_telling_word_is_passed_over_in_a_long_output(word: str) -> None:
    lines = [*WORK[:MAX_SCORED], f"it {word} x", *WORK]
    assert MAX_SCORED in weighed(lines)
    assert len(weighed(lines)) <= MAX_SCORED


def test_find_headline_what_says_only_that_something_failed_gives_way_to_the_line_before() -> None:
    text = "compiling the kernel\nout of luck today\nmake: *** [all] Error 2"
    assert normalise(text).template == "out of luck today"
    assert normalise("make: *** [all] Error 2").template.startswith("make")  # near miss: nothing stands before
