"""Runs of letters and of words: the same as regular expressions find."""

import re

from hypothesis import given
from hypothesis import strategies as st

from coherence.core.words import letter_runs, word_runs


@given(text=st.text(st.characters(max_codepoint=127)))
def test_word_runs_and_letter_runs_are_what_expressions_find(text: str) -> None:
    assert word_runs(text) == re.findall(r"\w+", text.lower())
    assert letter_runs(text) == re.findall(r"[a-z]+", text.lower())
