from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.text_features import bigram_entropy, hedge_density, is_monotonous, shape_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0.0), ("a", 0.0), ("ab", 0.0), ("aaaa", 0.0), ("abab", 0.579380164285695), ("hello world", 1.0)],
)
def test_bigram_entropy_has_the_classic_values(text: str, expected: float) -> None:
    assert bigram_entropy(text) == expected  # case 16 of the classic table


@pytest.mark.parametrize(
    ("text", "density"),
    [
        ("", 0.0),
        ("The index is off by one.", 0.0),
        ("Perhaps.", 0.5),  # 1 hedge in 25 words, the least that are counted, over 8 %
        ("perhaps " + "word " * 49, 0.25),  # 1 / 50 / 0.08
        ("I am not sure.", 0.5),  # a phrase is one hedge
        ("let me reconsider, on second thought", 1.0),
        ("MAYBE perhaps", 1.0),
        ("Let me read it again.", 0.0),
        ("word " * 600 + "perhaps maybe", 0.0),  # only the first 2,000 characters are looked at
    ],
)
def test_text_features_hedges_are_counted_per_word(text: str, density: float) -> None:
    assert hedge_density(text) == pytest.approx(density)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('{"a": [1]}', "json"),
        ("[1, 2]", "json"),
        ("Done.", "prose"),
        ("So:\n```py\nx = 1\n```", "code"),
        ("- one\n- two", "list"),
        ("1. one\n2. two", "list"),
        ("one item:\n- this", "prose"),
        ("a\nb\nc\n- d\n- e", "prose"),  # two of five lines
    ],
)
def test_the_shape_of_a_message(text: str, shape: str) -> None:
    assert shape_of(text) == shape


def test_text_features_monotony_is_a_long_text_of_few_pairs() -> None:
    assert is_monotonous("ha" * 300)
    assert is_monotonous("\n" * 400)
    assert not is_monotonous("ha" * 100)  # a short one may be a joke
    assert not is_monotonous("The quick brown fox jumps over the lazy dog, and then it sleeps. " * 8)


@given(st.text())
def test_text_features_every_text_has_looks_in_range(text: str) -> None:
    assert 0.0 <= hedge_density(text) <= 1.0
    assert 0.0 <= bigram_entropy(text) <= 1.0
    assert shape_of(text) in ("empty", "json", "code", "list", "prose")
    is_monotonous(text)
