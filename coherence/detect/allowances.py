"""Allowed sets and bounds: "only below src/", "to nobody else", "at most five"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex, one_of
from coherence.core.words import word_set
from coherence.detect.language_names import LANGUAGES
from coherence.detect.number_words import WORDS as NUMBER_WORDS
from coherence.detect.prohibition import Prohibition
from coherence.detect.tables import expressions, table, words_by_name

_TABLE = table("allowances")
_WORDS, _FORMS = words_by_name(_TABLE["words"]), expressions(_TABLE["forms"])

_NOBODY_ELSE = lazy_regex(
    r"\b(?:(?:nobody|noone|niemand\w{0,2}|personne|nadie|nessuno|ninguém|no other \w+|none|not? \w{3,12} (?:may"
    r"|must|should|shall|is to|can|will) be \w+)"
    r"\b(?:[^\n]{0,30}?)\b(?:else|besides|except|but|other than|apart from|d'autre|más|sonst|anderem|außer|altro"
    r"|mais)\b"
    r"|only (?:to|for|with|invite|send|mail|email|notify|cc|contact|share|tell)\b|[Oo]nly (?=[A-Z])|exclusively\b"
    r"|exclusively to|ausschließlich an|nur an|uniquement à|seulement à|solo a|solamente a)",
)
_ELSE = _FORMS["else"]
_ONLY = _FORMS["only"]
OUTSIDE = _FORMS["outside"]
_PATHS = lazy_regex(
    r"[\w.~*-]{0,80}/[\w./*~-]{0,120}|\b[\w-]{1,60}\.(?:py|jsx?|tsx?|md|txt|json|ya?ml|toml|html?|s?css|go|rs"
    r"|java|rb|php"
    r"|c|h|cpp|sql|sh|cfg|ini|csv|xml|vue|kt|swift|lock|docx?|xlsx?|pdf|tex|rst|ipynb)\b"
)
DOMAIN = lazy_regex(r"(?<![\w/])(?:[\w-]{1,40}\.){1,4}(?:com|org|net|example|de|fr|es|it|io|eu|test|co|ch|at|uk)\b")
_MAIL = lazy_regex(r"[\w.+-]{1,64}@(?:[\w-]{1,60}\.){1,4}[\w-]{1,60}")
_NAME = lazy_regex(r"\b[A-ZÄÖÜÉ][\w'-]{1,30}")
_NUMBERS = one_of(NUMBER_WORDS)
_NUMBER = rf"(?P<sign>[$€£])?\s?\b(?P<number>\d{{1,9}}(?:[.,]\d{{3}}){{0,3}}(?:[.,]\d{{1,2}})?|{_NUMBERS})\b"
_UNIT = r"(?P<unit>[$€£]|[\w-]{1,20})"
_MOST = (
    r"at (?:the )?(?:very )?most|max(?:imum|imal)?\.?|at maximum|höchstens|maximal|au (?:plus|maximum)"
    r"|como (?:máximo|mucho)|al massimo|no máximo"
)
_COUNTS = lazy_regex(rf"\d|\b(?:{_NUMBERS})\b", re.IGNORECASE)
_AT_MOST = lazy_regex(
    rf"\b(?:(?P<over>more than|over|above|beyond|exceed(?:ing)?|\w{{3,12}}er than|mehr als|über|(?:de )?plus de"
    r"|au-dessus de|(?:de )?más de|supérieure?s? à|superior(?:es)? a|mayores de|più di|sopra i|mais de)"
    rf"|(?P<cap>{_MOST}|up to|(?:limit|cap|budget) (?:of|is)|capped at)"
    r"|(?P<below>under|below|within|less than|fewer than|unter|weniger als|moins de|menos de|meno di))"
    rf" ?(?:of )?(?:a total of |the )?{_NUMBER} ?{_UNIT}?",
    re.IGNORECASE,
)
_TOPS = lazy_regex(
    rf"{_NUMBER}(?: {_UNIT})?,? (?P<cap>{_MOST}|tops|or (?:less|fewer)|only\b"
    r"|(?:is|are) the (?:upper )?(?:limit|maximum|max|cap|most|ceiling|bound)"
    r"|and (?:not \w+(?: \w+)?|no|nothing|not) more|keinen? \w+ mehr|pas plus|ni \w+ más)(?P<below>)(?P<over>)",
    re.IGNORECASE,
)
_NO_BEFORE = _FORMS["no_before"]
_NO_AFTER = _FORMS["no_after"]
BOUND = _FORMS["bound"]
_BOUNDED = _WORDS["bounded"]
_MONEY = word_set("€ $ £ eur usd gbp chf euro euros dollar dollars pound pounds francs franken bucks")
_NO_THINGS = word_set("% hours minutes days seconds gb mb years percent")
_SPENT = _FORMS["spent"]
_STANDARD = _FORMS["standard"]
"""Expressions by which what is there already is enough: nothing is to be installed."""
_TELLS = lazy_regex(r"\b(?:can|could|if|is down|fails?)\b", re.IGNORECASE)
_CLOCK = rf"(?:(?P<%s>\d{{1,2}}|{_NUMBERS})(?::\d\d)?\s?(?P<%s>am|pm|uhr)?\b)"
_HOURS = lazy_regex(
    rf"\b(?:between|from|zwischen|entre|tra|von)\s{_CLOCK % ('from', 'am')}\s(?:and|to|und|et|y|e|bis)\s"
    rf"{_CLOCK % ('to', 'pm')}"
    rf"|\b(?:no|not|nothing|nichts|nada|rien)\b[^\n]{{0,30}}\b(?:before|earlier than|vor|antes de las?|avant)\s"
    rf"{_CLOCK % ('early', 'eam')}"
    rf"|\b(?:no|not|nothing|nichts|nada|rien)\b[^\n]{{0,30}}\b(?:after|later than|past|nach|después de las?|après)\s"
    rf"{_CLOCK % ('late', 'lpm')}",
    re.IGNORECASE,
)
_NETWORK = lazy_regex(r"\b(?:internet|network access|the web|offline|air-gapped|online|outside world)\b", re.IGNORECASE)
SAYS_NO = _FORMS["says_no"]
UNITS = {
    "word": word_set("words word wörter wörtern worte palabras mots parole palavras"),
    "sentence": word_set("sentences sentence sätze sätzen satz phrases frases frasi oraciones"),
    "line": word_set("lines line zeilen lignes líneas righe linhas"),
    "character": word_set("characters chars zeichen caractères caracteres caratteri"),
    "bullet": word_set("bullets bullet points stichpunkte items"),
}
"""Unit that is counted in an answer -> the words for it."""


_ALWAYS = lazy_regex(r"\b(?:always|immer|toujours|siempre|sempre|whatever|whichever|regardless)\b", re.IGNORECASE)
_SPEAKS = _FORMS["speaks"]
_REACHES = _FORMS["reaches"]
_CHANGES = _FORMS["changes"]
_LEAVES = _FORMS["leaves"]


def allowances(said: str, goal: str) -> Iterator[Prohibition]:
    """Read what alone may be touched, contacted, used or spoken."""
    only = _ONLY.search(said) is not None
    standard = _STANDARD.search(said)
    if standard is not None and (only or standard["with"]):
        yield Prohibition(("install",), (), "")
    if not only and _NETWORK.search(said) and SAYS_NO.search(said) and not _TELLS.search(said):
        yield Prohibition(("online",), (), "")
    if only or _ALWAYS.search(said):
        words = said.casefold().replace(",", " ").replace(".", " ").split()
        spoken = {LANGUAGES[word] for word in words if word in LANGUAGES}
        if len(spoken) == 1 and _SPEAKS.search(said):
            yield Prohibition((), (), "", only=tuple(spoken), of="language")
    window = _HOURS.search(said) if _COUNTS.search(said) is not None else None
    if window is not None and (only or window["early"] or window["late"]):
        start = _hour(window["from"] or window["early"] or "0", window["am"] or window["eam"])
        end = _hour(window["to"] or window["late"] or "24", window["pm"] or window["lpm"])
        if start < end <= 24:
            acts = ("add", "book", "send", "invite", "change", "any")
            yield Prohibition(acts, (), "", only=(str(start), str(end)), of="hour")
    people = _NOBODY_ELSE.search(said)
    if people is not None and not _PATHS.search(_MAIL.sub("", said)):
        named = _allowed_people(said[people.start() :]) or _allowed_people(goal)
        if named and _REACHES.search(said + goal):
            yield Prohibition(("send", "invite", "add"), (), "", only=named, of="person")
    paths, rest = _paths_in(said), _ELSE.search(said) is not None
    if rest and _LEAVES.search(said):
        paths = paths or _paths_in(goal)
    elif rest or not (only or (OUTSIDE.search(said) and SAYS_NO.search(said))):
        return
    if paths and _CHANGES.search(said):
        yield Prohibition(("change", "remove", "write", "add"), (), "", only=paths, of="path")


def _paths_in(text: str) -> tuple[str, ...]:
    found = (path.strip("./*").casefold() for path in _PATHS.findall(DOMAIN.sub("", _MAIL.sub("", text))))
    return tuple(path for path in found if path)


def _hour(number: str, half: str | None) -> int:
    hour = int(_value(number) or 0)
    return hour + (12 if half and half.casefold() == "pm" and hour < 12 else 0)


def _value(number: str) -> float | None:
    """Return a number in digits or in letters; ``None`` of letters that only match in any case, such as "s\u0131x"."""
    if number[0].isdigit():
        return float(re.sub(r"[.,](?=\d{3}\b)", "", number).replace(",", "."))  # "1.500"; not "2,5"
    found = NUMBER_WORDS.get(number.lower())
    return None if found is None else float(found)


def _allowed_people(text: str) -> tuple[str, ...]:
    mails = [mail.casefold() for mail in _MAIL.findall(text)]
    names = [
        name.casefold() for name in _NAME.findall(_MAIL.sub("", text)) if name not in ("I", "Only", "Send", "Mail")
    ]
    return tuple(dict.fromkeys([*mails, *names]))[:16]


def bounds(said: str) -> Iterator[Prohibition]:
    """Yield the numbers that must not be passed: of money, of words of an answer, of things."""
    if _COUNTS.search(said) is None:
        return
    for found in (*islice(_AT_MOST.finditer(said), 3), *islice(_TOPS.finditer(said), 2)):
        value, before = _value(found["number"]), said[: found.start()]
        if value is None:
            continue
        # "more than 5" bounds where something denies it: "no more than 5".
        if found["over"] and _NO_BEFORE.search(before) is None and _NO_AFTER.match(said, found.end()) is None:
            continue
        unit = (found["unit"] or "").casefold()
        money = (
            bool(found["sign"]) or unit in _MONEY or (found["number"][0].isdigit() and _SPENT.search(said) is not None)
        )
        counted = next((name for name, forms in UNITS.items() if unit in forms), "")
        if counted:
            yield Prohibition((), (), "", limit=value, unit=counted)
        # "under 50 dollars" bounds what is paid; "within 5 days" bounds nothing that a call counts.
        elif found["below"] and not (money and set(re.findall(r"\w+", before.casefold())) & _BOUNDED):
            continue
        elif money:
            yield Prohibition(("pay", "buy", "send", "book", "other"), (), "", limit=value, unit="money")
        elif not found["below"] and unit not in _NO_THINGS:
            yield Prohibition(("any",), (), "", limit=value, unit="count")
