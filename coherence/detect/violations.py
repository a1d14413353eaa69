"""Forbidden things that an answer says it did: the prohibitions of its task, held against the answer's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.acts import acts_of
from coherence.detect.authored import is_done, tokens_of
from coherence.detect.claim_words import ACTORS, BOUNDS, DONE, is_negation
from coherence.detect.objects import telling_of
from coherence.detect.prohibition import Prohibition
from coherence.detect.prohibitions import breaks
from coherence.detect.read_once import read_once
from coherence.detect.restrictions import prohibitions
from coherence.detect.text_analysis import tokens

MAX_CHARS = 20_000
"""Characters of a task or an answer that are read; of a longer one, half from its beginning and half from its end."""

MAX_VIOLATIONS = 20

_REACH = 7
"""Words between what was done and what it was done to."""

_PREPOSITIONS = BOUNDS - word_set(", and or und oder et y")
_PASSIVES = word_set("was were is has have wurde wurden")
"""Words between what was done to and the act: "logging was added"."""

_TAILS = word_set("statement statements call calls code support line lines message messages function file files block")
"""Nouns that may follow what is forbidden without making it something else: "logging statements"."""

_DONE = frozenset[str]().union(*DONE.values())
_WORDING = tokens("word words letter letters term terms phrase phrases Wort Wörter mot mots palabra palabras")
_CLAUSE_END = lazy_regex(r"[.!;:](?=\s|$)|\n|[()–—]|\b(?:but|aber|mais|pero)\b", re.IGNORECASE)
_QUOTED = lazy_regex(
    r'```[^`]*```|"[^"\n]{0,500}"|“[^”\n]{0,500}”|„[^“\n]{0,500}“|«[^»\n]{0,500}»|^[ \t]*>.*$', re.MULTILINE
)


@read_once
def forbidden(task: str) -> dict[str, Prohibition]:
    """Return the things that a task forbids by name, in its own words, each with its prohibition; at most 20.

    Examples
    --------
    >>> list(forbidden("Sort the list without recursion, and never use the word 'awesome'."))
    ['recursion', 'awesome']
    >>> forbidden("The app crashes without network. Do not change the API unless you must.")
    {}
    """
    found: dict[str, Prohibition] = {}
    for each in islice(prohibitions(ends(task, MAX_CHARS, "\n")), MAX_VIOLATIONS):
        wanted = set(telling_of(each.objects))
        words: list[str] = []
        named = False
        for word in tokens_of(each.sentence):
            named = wanted.issuperset(tokens(word) or {""}) or (named and word in _TAILS)
            words += [word.strip("'")] if named else []
        text = each.named or " ".join(dict.fromkeys(words))
        if text and not each.of:
            found.setdefault(text, each)
    return found


def violations(task: str, answer: str) -> tuple[str, ...]:
    """Return the forbidden things that an answer says it did, in the words of the task.

    What the answer denies, wishes, asks or quotes does not count, nor what somebody else did.

    Examples
    --------
    >>> task = "Refactor fetch_user to be async. Do not add logging or error handling."
    >>> violations(task, "Done: added logging and error handling")
    ('logging', 'error handling')
    >>> violations(task, "As asked, no logging was added.")
    ()
    """
    items = forbidden(task)
    if not items:
        return ()
    text = ends(answer, MAX_CHARS, "\n")
    told = [tokens_of(clause) for clause in _CLAUSE_END.split(_QUOTED.sub(" ", text)) if "?" not in clause]
    real = [(words, list(map(tokens, words))) for words in told if not any(map(is_negation, words))]
    return tuple(
        name
        for name, each in items.items()
        if _calls(name, each, text) or any(_does(each, words, stems) for words, stems in real)
    )


def _does(each: Prohibition, words: Sequence[str], stems: Sequence[frozenset[str]]) -> bool:
    what = telling_of(each.objects)
    places = [
        at
        for at in range(len(stems) - len(what) + 1)
        if all(token in own for token, own in zip(what, stems[at:], strict=False))
    ]
    if "mention" in each.acts or not _WORDING.isdisjoint(each.objects):
        return bool(places)
    return any(
        _reaches(words, verb, place, len(what))
        for place in places
        for verb in range(max(0, place - 2 * _REACH), min(len(words), place + 2 * _REACH))
        if _breaks(each, words[verb])
    )


def _breaks(each: Prohibition, word: str) -> bool:
    """Tell whether a word says that an act was done that is forbidden."""
    if word != "using" and word not in _DONE and not is_done(word):
        return False
    done = acts_of(word)
    done = done | {"add", "change"} if "write" in done else done
    return breaks(done, each.acts) or ("have" in each.acts and not done.isdisjoint(("add", "use")))


def _reaches(words: Sequence[str], verb: int, place: int, length: int) -> bool:
    """Tell whether the act at ``verb`` was done, by the answer's author, to what stands at ``place``."""
    end = place + length
    if place > verb:
        by_author = verb == 0 or words[verb - 1] in ACTORS or words[verb] == "using"
        closed = end == len(words) or words[end] in BOUNDS or words[end] in _TAILS
        between = words[verb + 1 : place]
        return by_author and closed and len(between) <= _REACH and _PREPOSITIONS.isdisjoint(between)
    between = words[end:verb]
    if not between:  # the participle comes last: "Ich habe Logging hinzugefügt"
        return not {"habe", "haben", "wurde"}.isdisjoint(words[max(0, place - 5) : place])
    return between[0] in _PASSIVES and len(between) <= 3


def _calls(name: str, each: Prohibition, answer: str) -> bool:
    """Tell whether a line of code in the answer calls or imports a name that must not be used."""
    if {"use", "have"}.isdisjoint(each.acts) or not name.isidentifier():
        return False
    before = r"(?:(?:return|yield|await)\s[^\n]{0,80}?|[\w., ]{1,40}=[^\n]{0,80}?|print\()?"
    code = rf"(?m)^[ \t]{{0,40}}(?:import {name}\b|from {name}[\w.]* import\b|{before}(?<![\w.]){name}\([^)\n])"
    return re.search(code, answer, re.IGNORECASE) is not None
