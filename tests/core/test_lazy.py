from __future__ import annotations

import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core import lazy
from coherence.core.lazy import twin_regex
from coherence.detect import assumption, breakdown, directives, extractors, text_analysis, values

HOMES: tuple[ModuleType, ...] = (assumption, breakdown, directives, extractors, text_analysis, values)
TWINS = {
    f"{home.__name__}.{name}": found
    for home in HOMES
    for name, found in vars(home).items()
    if isinstance(found, lazy._TwinRegex)
}
PIECES = ["a", "Id", "K", "s", "_", "-", ".", "/", "\\", "@", "#7", "1", "2,500", "12:30", " pm", "f(x)", "g()", "`h`"]
ASCII = st.lists(
    st.sampled_from([*PIECES, " ", "\n", "\x1c", "\x1f", "$", "%", "'", '"']) | st.characters(max_codepoint=127)
)


def spans(pattern: re.Pattern[str], text: str) -> list[object]:
    return [(match.span(), match.groups()) for match in pattern.finditer(text)]


def test_twin_regexes_are_found() -> None:
    assert len(TWINS) > 10


@given(ASCII.map("".join))
def test_both_of_a_twin_regex_find_the_same_in_ascii_text(text: str) -> None:
    for name, twin in TWINS.items():
        assert spans(twin._plain, text) == spans(twin._whole, text), name


@pytest.mark.parametrize("source", [r"a\s", r"\S+", "\u0131", "[\u212a]"])
def test_a_twin_regex_that_would_find_something_else_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="something else"):
        twin_regex(source)


def test_a_twin_regex_reads_any_text() -> None:
    word = twin_regex(r"\w+")
    assert word.findall("na\u00efve, plain") == ["na\u00efve", "plain"]
    assert [match[0] for match in word.finditer("not here", 4)] == ["here"]
    assert word.search("...") is None
