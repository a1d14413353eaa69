"""Properties of an answer that somebody may forbid: code, links, tables, addresses, its length."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set

FORMS: Mapping[str, re.Pattern[str]] = {
    "formula": lazy_regex(
        r"(?<![\w=<>!])[A-Za-z]\w{0,3}(?:\([a-z]\))? = [\w(][^\n]{0,40}?[-+*/^\d]|\\frac|\$[^$\n]{1,80}=[^$\n]{1,80}\$"
    ),
    "code": lazy_regex(
        r"```|(?:^|\n)\s{0,8}(?:def \w+\(|import \w+$|for \w+ in |while \w|const \w+ =|function \w+\(|#include)"
    ),
    "emoji": lazy_regex(r"[\U0001F300-\U0001FAFF\u2600-\u27BF]"),
    "link": lazy_regex(r"https?://\S|\bwww\.\w|\]\([^)\s]{3,200}\)"),
    "dose": lazy_regex(r"\b\d{1,5}(?:[.,]\d{1,3})?\s?(?:mg|µg|mcg|ml|milligrams?|tablets?)\b", re.IGNORECASE),
    "price": lazy_regex(r"[$€£]\s?\d|\b\d{1,7}(?:[.,]\d{1,2})?\s?(?:€|EUR\b|USD\b|dollars?\b|euros?\b)"),
    "bullet": lazy_regex(r"(?:^|\n)\s{0,8}(?:[-*•]|\d{1,2}[.)]) \S"),
    "table": lazy_regex(r"(?:^|\n)\|[^\n]{1,200}\|"),
    "heading": lazy_regex(r"(?:^|\n)#{1,6} \S"),
    "bold": lazy_regex(r"\*\*[^*\n]{1,80}\*\*"),
    "markup": lazy_regex(r"\*\*[^*\n]{1,80}\*\*|(?:^|\n)#{1,6} \S|(?:^|\n)\s{0,8}[-*] \S|```"),
    "familiar": lazy_regex(r"\b(?:du|dich|dir|dein\w{0,2}|tu|toi|ton|tus|contigo|te)\b", re.IGNORECASE),
    "exclamation": lazy_regex(r"\w!"),
    "number": lazy_regex(r"\d"),
    "mail": lazy_regex(r"[\w.+-]{1,64}@[\w-]{1,60}\.\w"),
    "phone": lazy_regex(r"\+\d{1,3}[ -]?\d[\d /-]{5,16}\d|\b\d{3,5}[-/ ]\d{3,4}[- ]?\d{3,5}\b"),
}
"""Form -> how an answer shows such a thing."""

_WORDS = {
    word: form
    for form, words in {
        "formula": "formula formulas equations equation maths Formeln formules fórmulas formule",
        "code": "code snippet snippets codeblock Code código codice",
        "emoji": "emoji emojis emoticons smileys",
        "link": "link links url urls hyperlinks Links liens enlaces",
        "dose": "dose doses dosage dosages Dosierungen",
        "price": "price prices pricing cost costs Preise Preis prix precios prezzi preços",
        "bullet": "bullet bullets list lists Listen Liste Aufzählungen listes listas puntos enumeration enumerations",
        "table": "table tables tabular Tabelle Tabellen tableau tableaux tabla tablas tabelle",
        "heading": "heading headings headline headlines headers titles Überschriften titres",
        "bold": "bold",
        "markup": "markdown markup formatting",
        "familiar": "duzen duze duzt duz tutoyer tutoie tutoyez tutear tutees tutee",
        "exclamation": "exclamation exclamations Ausrufezeichen",
        "number": "digits numerals Ziffern Zahlen",
        "mail": "email emails e-mail addresses mail",
        "phone": "phone telephone mobile Telefonnummern Telefonnummer",
    }.items()
    for word in words.casefold().split()
}
_PERSONAL = word_set(
    "personal identifiable identifying identified identify recognised recognized recognise recognize identity private "
    "anonymous anonymised anonymized pii personenbezogene personenbezogenen personnelles personales personali"
)


def forms_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the forms that words name.

    Examples
    --------
    >>> forms_of("any bullet points or links".split()), forms_of(["the", "tests"])
    (('bullet', 'link'), ())
    """
    low = [word.casefold() for word in words]
    if not _PERSONAL.isdisjoint(low):
        return ("mail", "phone")
    return tuple(dict.fromkeys(_WORDS[word] for word in low if word in _WORDS)) if len(low) <= 6 else ()


def count_of(text: str, unit: str) -> int:
    """Return how many words, sentences, lines, characters or bullets a text has."""
    if unit == "word":
        return len(text.split())
    if unit == "line":
        return sum(not line.isspace() and bool(line) for line in text.splitlines())
    if unit == "character":
        return len(text.strip())
    pattern = _SENTENCE_END if unit == "sentence" else FORMS["bullet"]
    return len(pattern.findall(text.strip()))


_SENTENCE_END = lazy_regex(r"[.!?…。！？]+(?=\s+[\"'(]?[A-ZÄÖÜÉÁ¿¡\d]|\s*$)")
