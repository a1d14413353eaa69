"""Objects of prohibitions: the tokens that name a thing, and whether those of a call name the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.languages import FUNCTION_WORDS
from coherence.detect.tables import expression, table
from coherence.detect.text_analysis import tokens

MAX_OBJECTS = 6
LONG_STEM, SHORT_STEM = 6, 3
"""Letters that words of one stem share at least: of long ones, and of those that differ in one more letter."""

_THINGS = table("things")

PERSONS = tokens(_THINGS["persons"])
"""Tokens of whom nothing in a call tells."""

IMPLIED: Mapping[str, frozenset[str]] = {
    act: tokens(words.replace("persons", _THINGS["persons"])) for act, words in _THINGS["implied"].items()
}
"""Act -> tokens of what it is done to anyway."""

SYNONYMS = [tokens(line) for line in _THINGS["synonyms"].splitlines()]
"""Tokens that name the same kind of thing."""
_GROUPS = {token: group for group in SYNONYMS for token in group}

KINDS: Mapping[str, re.Pattern[str]] = {
    token: pattern
    for names, pattern in ((names, lazy_regex(expression(source))) for names, source in _THINGS["files"].items())
    for token in tokens(names)
}
"""Token -> paths of that kind of file."""

EMPTY, _SORTS = tokens(_THINGS["empty"]), tokens(_THINGS["sorts"])

_RELATIVE = word_set(
    "that which who whom whose so because while since as wenn weil dass que qui quien donde dont porque until "
    "till even "
    "please bitte without yet though although when if but than then where instead just only"
)
_FOREIGN = frozenset().union(*(words for name, words in FUNCTION_WORDS.items() if name != "en"))
_REST = word_set("other others rest else andere anderen übrigen autres otros otras altri altre")
_LABELLED = word_set("label tag status flag state type category labelled labeled tagged marked called named")
_WHATEVER = word_set("anything everything whatever all any every allem alles alle tout tous todo todos tutto tutti")
_PLACE = lazy_regex(r"\w/|^\*?\.\w{1,5}\Z")
_EXTENSION = lazy_regex(r"\*?\.\w{1,5}")


def objects_of(words: Sequence[str], acts: Iterable[str]) -> tuple[str, ...]:
    """Return the tokens that name what is forbidden; none where any thing of that act is meant.

    Examples
    --------
    >>> objects_of("the test itself".split(), ("change",)), objects_of("any new packages".split(), ("install",))
    (('test',), ())
    """
    part: list[str] = []
    if _REST & {word.casefold() for word in words[:3]}:
        return ()  # the others: which, nobody can tell
    if words and words[0].casefold() in _WHATEVER and (where := [word for word in words if _PLACE.search(word)]):
        words = where  # "whatever lies under gen/"
    for word in words:
        low = word.casefold()
        if low in _RELATIVE and (part or low == "without"):
            break
        if low not in _LABELLED and low not in _FOREIGN and not (low.endswith("ly") and len(low) > 5):
            part.append(word.removesuffix("'s"))
    implied = frozenset[str]().union(*(IMPLIED.get(act, frozenset()) for act in acts))
    found: dict[str, None] = {}
    for word in part:
        for token in sorted(tokens(word.strip("/"))):
            if word[0] in ".*" and _EXTENSION.fullmatch(word):
                token = word.lstrip("*").casefold()
            # A lone letter names nothing, a lone digit may.
            if token.strip("/*.") not in EMPTY | implied and len(token) > 1 - token.isdigit():
                found[token.strip("/*")] = None
    return tuple(found)[:MAX_OBJECTS]


def alike(one: str, other: str) -> bool:
    """Tell whether two tokens are of one word: note, not(es); migrat(e), migration."""
    short, long = sorted((one, other), key=len)
    if len(short) >= LONG_STEM and long.startswith(short[:LONG_STEM]):
        return len(long) - len(short) <= LONG_STEM
    return short == long or (len(short) >= SHORT_STEM and len(long) - len(short) <= 1 and long.startswith(short))


def same(token: str) -> frozenset[str]:
    """Return a token and those of the same kind of thing."""
    return _GROUPS.get(token) or frozenset((token,))


def telling_of(objects: Sequence[str]) -> list[str]:
    """Return the tokens that say more than of what sort a thing is."""
    return [token for token in objects if token not in _SORTS and not token.isdigit()]


def names(objects: Sequence[str], found: Set[str], paths: Iterable[str], values: Iterable[frozenset[str]]) -> bool:
    """Tell whether tokens, paths or short values of a call name what is forbidden.

    All tokens have to be there, those that only say of what sort it is aside; or one value is made of them alone.
    """
    paths = tuple(paths)
    telling = telling_of(objects)
    if all(_is_there(token, found, paths) for token in objects):
        return True
    if not telling:
        return False
    numbers = [token for token in objects if token.isdigit()]
    if all(_is_there(token, found, paths) for token in (*telling, *numbers)):
        return True
    return not numbers and any(
        value and all(any(alike(one, token) for token in telling) for one in value) for value in values
    )


def _is_there(token: str, found: Set[str], paths: Sequence[str]) -> bool:
    if "/" in token or ("." in token and not token[0].isdigit()):
        return any(token in path.casefold() for path in paths)
    kind = KINDS.get(token)
    if kind is not None and any(kind.search(path) for path in paths):
        return True
    if "-" in token and all(_is_there(piece, found, paths) for piece in token.split("-") if piece):
        return True
    return any(_there(one, frozenset(found)) for one in same(token))


@lru_cache(maxsize=256)
def _there(token: str, found: frozenset[str]) -> bool:
    return token in found or any(alike(token, one) for one in found)
