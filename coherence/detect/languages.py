"""The language a text is written in, told by its script and its function words; no model."""

from __future__ import annotations

from collections import Counter

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.read_once import read_once

MAX_CHARS = 600
"""Characters of a text that are looked at, from its beginning."""

LEAST_WORDS = 2
"""Function words of a language below which nothing is said, but of a few words without any of another language."""

FEW_WORDS = 8

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    "en": word_set(
        "the of and to is are was were be been it its that this these those for with as on at by from not have has had "
        "you your they their which would should could will can what how why when there i my we our if or an but into "
        "please does did do about all any more than then me he she his her who only out one two make give"
    ),
    "de": word_set(
        "der die das den dem des ein eine einen einem einer und oder ist sind war waren nicht mit von zu zum zur im in "
        "am auf für auch sich wird werden wurde wie warum was wenn dass daß ich wir sie es du ihr mein dein habe hat "
        "haben kann nach bei aus an als nur noch aber bitte jetzt heißt"
    ),
    "fr": word_set(
        "le la les l un une des du de d et ou est sont était ne pas pour avec sur dans que qui quoi ce cet "
        "cette ces il "
        "elle nous vous je tu mon ton votre notre vos nos au aux par plus a ont été se comment pourquoi "
        "maintenant puis "
        "mais en j ai c"
    ),
    "es": word_set(
        "el la los las un una unos unas de del y o es son era no con por para que qué se su sus lo le al en más como "
        "cómo mi tu pero ha han fue está están hay ahora ya también yo este esta qué"
    ),
    "it": word_set(
        "il lo la i gli le un uno una di del della dei delle e o è sono era non con per che chi si su al "
        "alla nel nella "
        "da dal come perché più ma ho ha hanno questo questa ora anche mi tuo mio"
    ),
    "pt": word_set(
        "o a os as um uma de do da dos das e ou é são era não com por para que se seu sua ao à em no na nos nas mais "
        "como mas foi está estão há agora também eu este esta posso você"
    ),
    "nl": word_set(
        "de het een en of is zijn was niet met van voor te op in aan dat die dit deze ik je jij u wij zij er ook maar "
        "als hoe waarom wat wordt worden heb heeft hebben naar bij nu kan mijn"
    ),
}
"""Frequent words of languages written with Latin letters; one that several have counts for each."""

_WORD = lazy_regex(r"[^\W\d_]{2,40}")

_BLOCKS = (
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x052F, "ru"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x06FF, "ar"),
    (0x0900, 0x097F, "hi"),
    (0x0E00, 0x0E7F, "th"),
    (0x3040, 0x30FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
)
"""Script -> the most spoken language that is written in it: enough to tell two texts apart."""


_NOT_LATIN = lazy_regex(r"[^\0-\u036f]")

OTHER = "xx"
"""Of words with letters that English has not, and none of its function words: Polish, Turkish, Swedish and others."""


@read_once
def language(text: str) -> str:
    """Return the two letters of a text's language, empty where too little tells it: code, names, a word or two.

    Of scripts other than Latin the script is what is told: Ukrainian passes for Russian. ``xx`` = another language
    than English, written in Latin letters.

    Examples
    --------
    >>> language("Warum ist der Himmel blau?"), language("Why is the sky blue?"), language("空はなぜ青いのか。")
    ('de', 'en', 'ja')
    >>> language("async def fetch_user(uid): ...")
    ''
    """
    text = text[:MAX_CHARS]
    if not text.isascii() and (script := _script(text)):
        return script
    votes, words, marked = _votes(text)
    first, second = sorted(votes, key=votes.__getitem__, reverse=True)[:2]
    enough = votes[first] >= LEAST_WORDS or (words <= FEW_WORDS and not votes[second])
    if enough and votes[first] > votes[second]:
        return first
    return OTHER if not votes["en"] and marked > 1 and 5 * marked >= words else ""


@read_once
def _votes(text: str) -> tuple[dict[str, int], int, int]:
    """Return the function words of each language in a text, its words, and those with letters that English has not."""
    counts = Counter(_WORD.findall(text.casefold()))
    votes = {
        name: sum(count for word, count in counts.items() if word in words) for name, words in FUNCTION_WORDS.items()
    }
    marked = 0 if text.isascii() else sum(count for word, count in counts.items() if not word.isascii())
    return votes, counts.total(), marked


def differ(one: str, other: str) -> bool:
    """Tell whether two texts are in different languages, as far as that is known.

    Examples
    --------
    >>> differ("Fix the login bug.", "Corregí el fallo: la cookie caducaba."), differ("Fix it", "fetch_user()")
    (True, False)
    """
    first, second = language(one), language(other)
    if first and second:
        return first != second
    for known, text in ((first, other), (second, one)):
        votes = _votes(text[:MAX_CHARS])[0]
        if known in votes and not votes[known] and max(votes.values()) >= LEAST_WORDS:
            return True  # of two that are alike, and not of this one
    return bool(_script(one[:MAX_CHARS]) or _script(other[:MAX_CHARS])) and any(map(str.isalpha, one + other))


def _script(text: str) -> str:
    """Return the language of the script that a third of the letters are of; kana tell Japanese, whatever the Han."""
    foreign = _NOT_LATIN.findall(text)
    found = Counter(name for code in map(ord, foreign) for low, high, name in _BLOCKS if low <= code <= high)
    if not found:
        return ""
    latin = sum(map(str.isalpha, text)) - sum(map(str.isalpha, foreign))
    if found["ja"]:
        found["ja"] += found.pop("zh", 0)
    name, count = max(found.items(), key=lambda pair: pair[1], default=("", 0))
    # A single letter may be a symbol: π.
    return name if 3 * count > latin + found.total() - count and count > 1 else ""
