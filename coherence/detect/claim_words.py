"""Acts that the clauses of a message say were done: their words, and when a clause claims one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.tables import expressions, names_by_word, table, words_by_name
from coherence.detect.text_analysis import tokens

_TABLE = table("acts")
_WORDS, _FORMS = words_by_name(_TABLE["words"]), expressions(_TABLE["forms"])

SKIPPED = _WORDS["skipped"]
"""Words before or inside what is forbidden that say nothing about it."""

BOUNDS = _WORDS["bounds"]
"""Words that end what is forbidden or what was done."""

NEGATIONS = _WORDS["negations"]

UNREAL = _WORDS["unreal"]
"""Words that say that a thing was not done, only wished, asked for or possible."""

ACTORS = word_set("i we i've we've ive j'ai he have done and also then now just already additionally finally ,")
"""Words that may stand right before what the answer says it did."""

_CLAIMS: dict[str, dict[str, str]] = _TABLE["claims"]
DOING: dict[str, set[str]] = {}
"""Word of a call -> the acts that it does."""
_ACTS_BY_STEM: dict[str, set[str]] = {}
for _act, _words in _CLAIMS.items():
    for _word in _words.get("calls", "").split():
        DOING.setdefault(_word, set()).add(_act)
    for _stem in tokens(" ".join(_words.values())):
        _ACTS_BY_STEM.setdefault(_stem, set()).add(_act)
_CLAIMED = {act: words["done"] for act, words in _CLAIMS.items()}
_DONE = names_by_word(_CLAIMED)
_OF_FAMILIES = {
    "add": "create install",
    "change": "change delete",
    "remove": "delete",
    "use": "use",
    "send": "send",
    "publish": "publish install",
    "buy": "book pay cancel",
}
DONE = {
    family: frozenset().union(*(word_set(_CLAIMED[act]) for act in acts.split()))
    for family, acts in _OF_FAMILIES.items()
}
"""Family of acts -> words by which an answer says that it did one."""


def acts_told(said: Iterable[str]) -> set[str]:
    """Return the acts of which some tokens speak, done or not."""
    return {act for token in said for act in _ACTS_BY_STEM.get(token, ())}


_CONFIRMED = word_set("confirmed complete completed finalized bestätigt erledigt confirmé confirmado")
"""Words by which any act was done."""

BROAD = word_set("start process assign create change")
"""Acts by whose words other ones are told of, too."""
DONE_WORDS = frozenset({*_DONE, *_CONFIRMED})

_STATIVE = word_set("online live")
"""Words that tell what was done only behind a form of "to be"."""
BE = word_set("is are was were been be being now wurde wurden ist sind est sont été fue fueron es son")

_AUXILIARIES = BE | word_set(
    "has have had i've we've successfully just already also then i we it's they're fully all both and habe haben hat "
    "worden a ai avons ont ha han he hemos sido ."
)
"""Words of which one stands at most four words before what was done."""

_OPEN_ENDED = UNREAL | word_set(
    "when once after before until since while unless try trying tried need needs needed attempt attempting attempted "
    "you'd ready going plan planned planning expect expected hope hopefully ensure verify check confirm wenn sobald "
    "nachdem quand lorsque après cuando después assume assuming suppose like example instance e.g typically usually "
    "normally policy cannot only"
)
"""Words of a clause that is no plain statement of what is so."""
_ASKING = word_set("what how why which who where was wie warum welche quoi comment pourquoi qué cómo")
"""First words of a question, or of a heading."""

FLAWLESS = _FORMS["flawless"]
"""Words that deny nothing but trouble."""
CLAUSE = _FORMS["clause"]
_ASIDE = lazy_regex(r'"[^"\n]{12,300}"|“[^”\n]{12,300}”')
_WORD = lazy_regex(r"[\w'’]+(?:[./@-]\w+)*|[.,!?%]")


def clause_words(text: str) -> list[str]:
    """Return the words of a clause in lower case, with its full stops, commas and signs."""
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


def first_words(text: str, most: int) -> list[str]:
    """Return the first of the :func:`clause_words` of a text."""
    return [found[0].casefold().replace("’", "'") for found in islice(_WORD.finditer(text), most)]


def is_negation(token: str) -> bool:
    """Tell whether a word says that a thing was not done, or only wished or possible."""
    return token in NEGATIONS or token in UNREAL or token.endswith("n't")


def negations(words: Iterable[str]) -> int:
    """Return how many of some words deny something."""
    return sum(word in _NOT or word.endswith("n't") for word in words)


_NOT = (NEGATIONS | word_set("non não sem senza nessun nessuna nessuno niente nada")) - word_set(
    "instead rather kept unchanged untouched reverted undid un"
)


def is_plain(words: Sequence[str]) -> bool:
    """Tell whether a clause states what is so: no question, condition, wish or plan."""
    return bool(words) and words[-1] != "?" and words[0] not in _ASKING and _OPEN_ENDED.isdisjoint(words)


def done_acts(words: Sequence[str], *, begins: bool = True) -> set[str]:
    """Return what a clause says was done; empty if it denies it, or says no such thing.

    ``begins``: its first word may be what was done ("Uploaded the report"), since no other clause leads to it.

    Examples
    --------
    >>> sorted(done_acts("the report was uploaded and the invoice has been paid".split()))
    ['pay', 'publish']
    >>> done_acts("the report was not uploaded".split()), done_acts("upload the report".split())
    (set(), set())
    """
    if not is_plain(words) or negations(words):
        return set()
    found: set[str] = set()
    for at, word in enumerate(words):
        act = _DONE.get(word) or ("any" if word in _CONFIRMED else None)
        if act is None:
            continue
        before = words[max(0, at - 5) : at]
        if word in _STATIVE or act == "any":
            said = not BE.isdisjoint(before[-2:])
        else:
            bare = begins and (not before or (len(words) <= 6 and at >= len(words) - 2))  # "Uploaded", "Email sent"
            said = bare or not _AUXILIARIES.isdisjoint(before)
            said = said and (not before or before[-1] not in ("to", "the", "a", "be", "your", "you", "not", "an"))
        if said:
            found.add(act)
    return found


def clauses_of(statement: str) -> Iterator[list[str]]:
    """Yield the words of each clause of a statement, without what it quotes at length."""
    plain = FLAWLESS.sub("cleanly", statement)
    for clause in CLAUSE.split(_ASIDE.sub(" ", plain) if '"' in plain or "“" in plain else plain):
        words = clause_words(clause or "")
        if words:
            yield words
