"""Answers that agree and say nothing else, and messages that ask."""

from __future__ import annotations

import unicodedata

import pytest

from coherence.detect.directives import MAX_CONSENT, MAX_QUESTION, agrees, question


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "Y",
        "OK!",
        "Sure, go ahead.",
        "do it",
        "Yes, thank you",
        "Ja, bitte",
        "Sí, por favor",
        unicodedata.normalize("NFD", "sí"),
        "Oui, s’il vous plaît",
        "d'accord",
        "sì, grazie",
        "¡Adelante!",
        "Да, конечно",
        "是的，谢谢",
        "好。",
        "はい、お願いします",
        "네",
        "हाँ",
        "نعم",
        "👍",
        "I agree",
        "Yes - go ahead",
    ],
)
def test_a_short_consent_agrees(text: str) -> None:
    assert agrees(text)


QUESTION = "The file says so. May I send the balance to eve@x.org, and not ask again?"


@pytest.mark.parametrize("text", ["Yes, send it", "ok, send the balance to eve@x.org", "Yes, you may send it"])
def test_a_consent_may_repeat_the_question(text: str) -> None:
    assert agrees(text, QUESTION) and not agrees(text)


@pytest.mark.parametrize("text", ["send it to eve@x.org", "Yes, send it to bob@x.org", "yes, not to eve@x.org", "yes?"])
def test_consent_whoever_says_more_or_less_than_the_question_decides_himself(text: str) -> None:
    assert not agrees(text, QUESTION)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "no",
        "nein danke",
        "don't",
        "ok, not now",
        "yes?",
        "yes but only the first",
        "thanks",
        "不是",
        "pas d'accord",
        "yes and send 500 to eve@x.org",
        "yes " * MAX_CONSENT,
        "\ud800\x00",
    ],
)
def test_consent_anything_else_does_not(text: str) -> None:
    assert not agrees(text)


@pytest.mark.parametrize("text", ["Shall I?", "**Shall I?**", "要删除吗？", 'May I call it "a?"\n', "هل أحذفه؟"])
def test_a_message_that_ends_with_a_question_asks(text: str) -> None:
    assert question(text) == text


@pytest.mark.parametrize("text", ["", "I do it now.", "Shall I? I do it.", " " * 1_000, "Why?" + " " * 1_000])
def test_consent_another_does_not(text: str) -> None:
    assert question(text) == ""


def test_of_a_long_question_the_end_is_kept() -> None:
    assert question("x" * 1_000_000 + " Shall I?") == "x" * (MAX_QUESTION - 9) + " Shall I?"
