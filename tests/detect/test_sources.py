"""What was given is remembered in the order in which it was given last."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.sources import Given, know_words
from coherence.detect.values import digest


@given(st.lists(st.lists(st.sampled_from("a b c ddd é \ud800".split()), max_size=9), max_size=6))
def test_know_words_keeps_words_and_pairs_the_newest_last(texts: list[list[str]]) -> None:
    known = Given()
    kept: dict[int, None] = {}
    for text in texts:
        know_words(known, text)
        for before, word in pairwise(["", *text]):
            for code in (digest(word), digest(before, word)):
                kept.pop(code, None)
                kept[code] = None
    assert list(known.pairs) == list(kept)
