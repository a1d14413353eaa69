"""English texts are told from others by their frequent words."""

from __future__ import annotations

import pytest

from coherence.detect.english import ENOUGH_WORDS, are_english, english_words

FOREIGN = [
    "Ich will die Datei zuerst lesen, weil ich an der Stelle nichts weiss; danach will ich den Preis noch prüfen.",
    "Het is duur of het is goedkoop, maar zonder de lijst van vorig jaar weet niemand hoeveel de kaart kost of kostte.",
    "On ne l'a pas trouvé, donc je suppose que le prix est le même que celui de la liste comme le dit le magasin.",
    "No me ha dicho la hora, así que asumo que no hay prisa y que el precio de la entrada es el mismo.",
    "A versão do ano passado não está disponível, e por isso assumo que o preço é o mesmo que o do ano anterior.",
    "Vi skal have prisen i hver by, men listen mangler endnu, så jeg antager at den er som sidste år.",
]
ENGLISH = [
    "I will open the file first, because nothing at this place tells us what it has cost; then I check prices again.",
    "Now we will have to run both of its checks by hand, as no tool can do so for us in one go today.",
]


def judged(text: str) -> bool:
    count, weight = english_words(text)
    assert count >= ENOUGH_WORDS
    return are_english(count, weight)


@pytest.mark.parametrize("text", FOREIGN)
def test_words_that_other_languages_have_too_do_not_make_a_text_english(text: str) -> None:
    assert not judged(text)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_known_by_its_frequent_words(text: str) -> None:
    assert judged(text)
