"""Other people's text, made safe to stand in a page."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from coherence.report.text import READ, clean, clip

ONE_BY_ONE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@given(st.text(alphabet=st.sampled_from("\x1b[31;mKA \n\t\x00\x9b\ud800ä~"), max_size=30))
def test_clean_drops_runs_of_controls_as_if_one_by_one(text: str) -> None:
    assert clean(text) == ONE_BY_ONE.sub("", text)


def test_clip_says_that_more_follows_where_controls_fill_what_is_read() -> None:
    assert clip("\x00" * (READ * 5) + "words", 5) == "…"
    assert clip("\x00" * (READ * 5 - 5) + "words", 5) == "words"
    assert clip("words" + "\x00" * (READ * 5), 5) == "words…"
