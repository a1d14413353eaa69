"""The phrases that say how a step's author knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.assumption import FALLBACK, INABILITY, MAX_CHARS, fallbacks, is_english, quoted, shortened

FALLBACKS = [
    "Let's assume the price is 100.",
    "Assuming the file exists",
    "We use a mock dataset.",
    "This simulates the data.",
    "a placeholder for the key",
    "dummy values",
    "Here is sample data:",
    "based on synthetic data",
    "I will check it manually.",
    "As an alternative, we take the older one.",
    "an estimated 40 %",
    "from general knowledge",
    "a workaround",
    "made-up figures",
]
NO_FALLBACKS = [
    "The table gives 100 euros.",
    "sample size 40",
    "The dataset has 12 columns.",
    "We resume the search.",
    "He was hospitable.",
    "data about a smock",
]


@pytest.mark.parametrize("text", FALLBACKS)
def test_cues_something_in_the_place_of_evidence_is_found(text: str) -> None:
    assert FALLBACK.search(text)
    assert FALLBACK.search(text.upper())


@pytest.mark.parametrize("text", NO_FALLBACKS)
def test_cues_words_that_only_look_like_it_are_not(text: str) -> None:
    assert not FALLBACK.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "I will not assume or estimate anything.",
        "I won't assume, estimate or simulate it.",
        "There is no placeholder data in it.",
        "It is not an estimate.",
        "We go on without assuming anything.",
        "Never make an assumption.",
        "There’s no need to assume: it isn’t an estimated price.",
        "NEITHER SIMULATED NOR MOCKED",
        "We avoid using sample data.",
    ],
)
def test_cues_what_is_denied_is_no_fallback(text: str) -> None:
    assert FALLBACK.search(text)
    assert fallbacks(text) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("I cannot open the page, so I assume it.", ["assume"]),
        ("It is not there. Assume 5.", ["Assume"]),
        ("This is not only an estimate, I assume.", ["estimate", "assume"]),
        ("There is no alternative but to assume it.", ["assume"]),
        ("No, I estimate it.", ["estimate"]),
        ("Why not assume that it is 5?", ["assume"]),
        ("I do not assume it; this is a mock.", ["mock"]),
        ("I know nothing, assume 5", ["assume"]),
        ("I will not assume it but estimate it.", ["estimate"]),
    ],
)
def test_cues_a_denial_elsewhere_denies_nothing(text: str, left: list[str]) -> None:
    assert [found[0] for found in fallbacks(text)] == left


@given(
    st.text() | st.lists(st.sampled_from(["not ", "assume ", "or ", "n't ", "to ", ", "]), max_size=400).map("".join)
)
def test_cues_denials_in_any_text_are_told(text: str) -> None:
    assert {found.span() for found in fallbacks(text)} <= {found.span() for found in FALLBACK.finditer(text)}


@pytest.mark.parametrize(
    "text", ["I am unable to open it", "We could not find it.", "I can't", "cannot", "is not available"]
)
def test_cues_an_inability_is_found(text: str) -> None:
    assert INABILITY.search(text)


@pytest.mark.parametrize("text", ["I can open it", "It is available.", "notable", "canned"])
def test_cues_an_ability_is_none(text: str) -> None:
    assert not INABILITY.search(text)


GERMAN = (
    "Die Datei wurde nicht gefunden, deshalb nehme ich an, dass der Preis in dem Katalog hundert Euro war und an den "
    "Kunden so weitergegeben wird."
)
SPANISH = (
    "No se encuentra el archivo, por lo que asumo que el precio es de cien euros y me lo ha dicho el cliente a la vez "
    "que no hay datos."
)
RUSSIAN = "Файл не найден, поэтому я предполагаю, что цена составляет сто евро."
CHINESE = "文件未找到，所以我假设价格为一百欧元，并且继续进行下一步的计算工作。"


@pytest.mark.parametrize("text", [GERMAN, SPANISH, RUSSIAN, CHINESE])
def test_cues_other_languages_are_told_apart(text: str) -> None:
    assert not is_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "TERMINATE",
        "Datei fehlt.",  # too short to tell
        "The file is missing, and none of the members of the team can say what the ticket costs.",
        "The name 阿里 occurs in the table of winners.",
        f"See the code:\n```\n{'wert = preis * menge ' * 20}\n```\nThat is all.",  # code has no language
    ],
)
def test_cues_english_and_what_is_too_short_passes(text: str) -> None:
    assert is_english(text)


def test_cues_a_quote_stays_on_its_line_and_is_short() -> None:
    text = "first line\n" + "word " * 50 + "we assume 7 " + "word " * 50 + "\nlast line"
    found = FALLBACK.search(text)
    assert found is not None
    quote = quoted(text, found)
    assert "assume" in quote
    assert "line" not in quote
    assert len(quote) <= 2 * 60 + len("assume")


@given(st.text(max_size=300))
def test_cues_any_text_can_be_looked_at(text: str) -> None:
    assert is_english(text) in (True, False)
    for found in FALLBACK.finditer(text):
        assert found[0] in quoted(text, found)


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "assum" * 200_000, " " * 1_000_000, "```" * 300_000, "\ud800" * 100_000]
)
def test_cues_a_long_text_is_cut_to_its_ends(text: str) -> None:
    short = shortened(text)
    assert len(short) <= MAX_CHARS + 1
    assert short[0] == text[0]
    assert short[-1] == text[-1]
    is_english(text)
    list(FALLBACK.finditer(short))
