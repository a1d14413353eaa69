"""Parts of a text that an answer retells with another speaker, or with the opposite sense."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.claim_words import clause_words
from coherence.detect.extractors import STOP
from coherence.detect.records import Kept
from coherence.detect.text_analysis import tokens

MAX_QUOTES = 10
MAX_CLAUSES = 120
"""Clauses of the results that are compared, the first ones."""

LEAST_WORDS = 2
"""Words of a clause that say what it is about."""

_QUOTE = lazy_regex(r"[\"“„«]([^\"“”„«»\n]{6,200})[\"”“»]")
_STOP_SIGN = lazy_regex(r"(?<!\b[A-Z])(?<!\b[MD][rs])(?<!\bMrs)(?<!\bProf)[.!?](?=[\s\"”])|\n")
_PERSON = lazy_regex(r"(?<![\w.])[A-Z][\w'-]{1,20}(?: (?:[A-Z]\. )?[A-Z][\w'-]{1,20}){1,3}")
_WHO = lazy_regex(r"\b(?:I|we|he|she|they|ich|er|sie|wir|il|elle|je|ella|yo)\b", re.IGNORECASE)
_CLAUSE = lazy_regex(
    r"[.!;:\n](?=\s|\Z)|,\s|\s[-–—(]\s?|\s(?:and|but|while|because|since|so|und|aber|weil|et|mais|y|pero|e|ma|en|maar)\s",
    re.IGNORECASE,
)
_MAY = word_set(
    "may can allowed permitted possible kann können darf dürfen erlaubt peut autorisé puede permitido mag mogen"
)
_FRAME = word_set(
    "may can allowed permitted possible must shall should will would could not is are was were be been being do does "
    "did has have had please"
)
_HEDGES = word_set(
    "no never nothing none rather instead without unless except only if whether than unlike hardly nicht"
)
_DENIES = lazy_regex(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|should|may|must)(?:n't| not)\b"
    r"|\b(?:cannot|can't|won't|nicht|kein\w{0,2}|niet|geen|não)\b|\b(?:ne |n')\w{1,20} pas\b",
    re.IGNORECASE,
)
"""Words that deny what a whole clause says."""
_SAYS = lazy_regex(
    r"\b(?:sa(?:id|ys)|call(?:ed|s)|t(?:old|ells)|wr(?:ote|ites)|describ\w{1,4}|according|quot\w{2,4}|stat(?:ed|es)|argu\w{2,3}"
    r"|admit\w{0,4}|comment\w{0,3}|sagte?|nannte|nennt|schrieb|laut|dit|appel\w{1,3}|selon|écri\w{1,3}|dijo|llam\w{1,3}|según)\b",
    re.IGNORECASE,
)


def misattributed(kept: Kept, answer: str) -> Iterator[tuple[str, str]]:
    r"""Yield quotations that an answer puts into the mouth of somebody else, and the words of the result.

    Examples
    --------
    >>> from coherence.detect.records import keep_result
    >>> kept = Kept()
    >>> keep_result(kept, 1, 'Mayor Ina Holt opened it. Baker Jo Lund called it "a great waste".')
    >>> [quote for quote, _ in misattributed(kept, 'Ina Holt called it "a great waste".')]
    ['a great waste']
    >>> list(misattributed(kept, 'Jo Lund called it "a great waste".'))
    []
    """
    for found in islice(_QUOTE.finditer(answer), MAX_QUOTES):
        words = found[1].strip(" .,;!?")
        around = _around(answer, found.start(), found.end())
        if _SAYS.search(around) is None:
            continue
        for result in kept.results:
            at = result.text.casefold().find(words.casefold())
            if at < 0:
                continue
            there = _around(result.text, at, at + len(words))
            speakers = [tokens(name) for name in _PERSON.findall(there.replace(words, " "))]
            if not speakers or _WHO.search(there.replace(words, " ")) is not None:
                break
            said = tokens(around.replace(found[1], " "))
            here = tokens(there)
            known = {each for name in _PERSON.findall(result.text) for each in tokens(name)}
            if not any(name & said for name in speakers) and (said & known) - here:
                yield words, there.strip()
            break


def _around(text: str, begin: int, end: int) -> str:
    """Return the sentence around a place."""
    before = max(
        (stop.end() for stop in _STOP_SIGN.finditer(text, max(0, begin - 300), begin)), default=max(0, begin - 300)
    )
    after = _STOP_SIGN.search(text, end)
    return text[before : after.start() if after is not None else end + 200][:700]


class _Clause(NamedTuple):
    text: str
    about: frozenset[str]
    """Stems of its words, without those that say whether it is so."""
    denied: bool
    hedged: bool
    """True if another word may turn what it says."""
    allows: bool
    """True if it says that something may be done, or not."""


def reversed_clauses(kept: Kept, answer: str) -> Iterator[tuple[str, str]]:
    """Yield clauses that say what one of a result denies, or deny what one says.

    Examples
    --------
    >>> from coherence.detect.records import keep_result
    >>> kept = Kept()
    >>> keep_result(kept, 1, "I don't want a refund. Charging on board is not allowed.")
    >>> [said for said, _ in reversed_clauses(kept, "She wants a refund, but you may charge it in the train.")]
    ['She wants a refund', 'but you may charge it in the train']
    >>> list(reversed_clauses(kept, "She wants no refund. Charging is not allowed."))
    []
    """
    told = [clause for result in kept.results for clause in islice(_clauses(result.text), MAX_CLAUSES)][:MAX_CLAUSES]
    if not any(clause.denied for clause in told):
        return
    for said in islice(_clauses(answer), MAX_CLAUSES):
        if said.denied or said.hedged or not said.about:
            continue
        alike = [clause for clause in told if _same(said, clause)]
        if alike and all(clause.denied for clause in alike):
            yield said.text, alike[0].text


def _same(said: _Clause, told: _Clause) -> bool:
    """Tell whether two clauses are about the same."""
    shared = said.about & told.about
    if said.allows and told.allows:
        return bool(shared)
    return not told.allows and len(shared) >= LEAST_WORDS and len(shared) >= len(told.about)


def _clauses(text: str) -> Iterator[_Clause]:
    for part in _CLAUSE.split(text):
        words = clause_words(part)
        if not words or "?" in part:
            continue
        about = {
            stem
            for word in words
            if word.isalpha() and len(word) > 2 and word not in STOP | _FRAME
            for stem in tokens(word)
        }
        denied = _DENIES.search(part) is not None
        hedged = not denied and not _HEDGES.isdisjoint(words)
        yield _Clause(part.strip(), frozenset(about), denied, hedged, not _MAY.isdisjoint(words))
