from __future__ import annotations

import time

import pytest
from rich.cells import cell_len

from coherence.tui.lines import clean, cropped, cut, fitted, named, plain, spread, width_of, wrapped

TEXTS = [
    "",
    "plain",
    "東京タワー" * 9,
    "e\u0301" * 30,
    "a\tb\x1b[31m\x00\x9b\u202e",
    "👩\u200d👩\u200d👧 family",
    "x" * 500,
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", [1, 2, 7, 40])
def test_fitted_takes_exactly_the_cells(text: str, width: int) -> None:
    assert cell_len(fitted(text, width)) == width == cell_len(fitted(text, width, right=True))
    assert cell_len(cut(text, width)) <= width
    assert fitted(text, width).isprintable()


@pytest.mark.parametrize("text", TEXTS)
def test_wrapped_no_line_is_wider_and_no_word_is_lost(text: str) -> None:
    lines = wrapped(text, 20)
    assert all(cell_len(line) <= 20 for line in lines)
    assert "".join("".join(lines).split()) == "".join(clean(text.expandtabs(4)).split())


def test_wrapped_counts_what_it_leaves_out() -> None:
    assert wrapped("a" * 50, 20, most=40) == ["a" * 20, "a" * 20, "… 10 more characters"]


def test_wrapped_a_megabyte_takes_no_time() -> None:
    for text in ("x" * 1_000_000, "x " * 500_000, "\n" * 1_000_000, "東" * 1_000_000):
        before = time.process_time()
        wrapped(text, 80)
        assert time.process_time() - before < 0.5


def test_clean_leaves_nothing_that_a_terminal_obeys() -> None:
    everything = "".join(chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000)
    controls = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), 0x200B, 0xFEFF)}
    assert not controls & set(clean(everything + "\ufeff"))
    assert clean("e\u0301") == "e\u0301"  # a combining mark stays on its letter


def test_spread_the_right_part_stays_whole() -> None:
    line = spread((("a long name of a store", ""),), (("3 red", "red"),), 16)
    assert plain(line) == "a long na… 3 red" and width_of(line) == 16
    assert cropped((("ab", ""), ("cd", "")), 3) == (("ab", ""), ("…", ""))
    assert cropped((("ab", ""), ("cd", "")), 2) == (("a…", ""),)
    assert cropped((("a ", ""), ("b  ", ""), ("  ", "")), 3) == (("a ", ""), ("b", ""))


@pytest.mark.parametrize("agent", ["a", "agent-in-production-eu-west-1", *TEXTS])
@pytest.mark.parametrize("session", ["1", "2026-11-28T08:00:00Z-run", "東京"])
@pytest.mark.parametrize("width", [12, 20, 60])
def test_named_the_session_is_never_left_out(agent: str, session: str, width: int) -> None:
    name, rest = named(agent, session, width)
    assert cell_len(name + rest) <= width
    assert rest[3:4] == session[0] and len(rest) > 3
