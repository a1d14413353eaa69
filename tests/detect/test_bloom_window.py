"""Tokens that an agent has come across."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.bloom_filter import BITS, CAPACITY, BloomWindow


def test_bloom_window_what_was_added_is_not_new_again() -> None:
    seen = BloomWindow()
    assert seen.add(["a", "b"]) == {"a", "b"}
    assert seen.add(["b", "c"]) == {"c"}
    assert seen.count == 3


@given(st.lists(st.text(max_size=20)))
def test_bloom_window_nothing_that_was_added_is_forgotten_while_its_table_lasts(tokens: list[str]) -> None:
    seen = BloomWindow()
    seen.add(tokens)
    assert not seen.add(tokens)


def test_bloom_window_few_unknown_tokens_pass_for_known() -> None:
    seen = BloomWindow()
    seen.add(f"known{number}" for number in range(10_000))
    # two bits of 2**17 each: (1 - exp(-2 * 10,000 / 2**17))**2 = 2 % are expected
    new = seen.add(f"other{number}" for number in range(1_000))
    assert 950 <= len(new) <= 1_000


def test_bloom_window_it_is_bounded_and_forgets_the_oldest() -> None:
    seen = BloomWindow()
    seen.add(["first"])
    for number in range(20):
        seen.add(f"{number}-{each}" for each in range(CAPACITY // 4))
    assert len(msgspec.msgpack.encode(seen)) < 2 * BITS // 8 + 100
    assert seen.add(["first"]) == {"first"}
    assert not seen.add(["19-0"])


def test_bloom_window_what_keeps_coming_is_not_forgotten() -> None:
    seen = BloomWindow()
    for number in range(20):
        assert seen.add(["again"]) == ({"again"} if number == 0 else set())
        seen.add(f"{number}-{each}" for each in range(CAPACITY // 4))


def test_bloom_window_it_survives_being_written_down() -> None:
    seen = BloomWindow()
    seen.add(["a", "\ud800"])
    for codec in (msgspec.json, msgspec.msgpack):
        again = codec.decode(codec.encode(seen), type=BloomWindow)
        assert again == seen
        assert again.add(["a", "b"]) == {"b"}


def test_bloom_window_tokens_that_come_together_do_not_hide_each_other() -> None:
    # one by one, about 10 of 5,000 would be taken for known, the sum over i of (2 i / 2**17)**2; their order would tell
    # which, and that of a set differs from process to process
    names = [f"token{number}" for number in range(5_000)]
    forth, back = BloomWindow(), BloomWindow()
    assert forth.add(names) == back.add(reversed(names)) == set(names)
    assert forth == back
