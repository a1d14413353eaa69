"""Comparison of two short texts by their words: shared words, same wording, opposite meaning.

English words, with the German and French ways of saying "no" to an answer; other languages lose the finer points only.
"""

from __future__ import annotations

import re
from collections import Counter

from coherence.core.lazy import lazy_regex

LOOKED_AT = 500
"""Characters of a text that are looked at, from its beginning."""

STEM = 5
"""Letters of a word that count: "batch" and "batching" are one word."""

REPEATED = 0.9
"""Share of words that a message must have in common with the last request to be its repetition."""

_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for you can our are with that this from have has was were will would should could want need "
        "make please all any its into out but their they them your there here what which when how why who let "
        "get ",
    )
)
_FILLERS = frozenset(["the", "a", "an", "please", "just", "kindly", "ok", "okay", "thanks"])
_NEGATIONS = frozenset(["not", "no", "never", "without", "avoid", "stop", "instead", "rather", "than", "cannot"])
_OPPOSITES = {
    "disable": "enable",
    "disabled": "enabled",
    "remove": "add",
    "delete": "add",
    "less": "more",
    "fewer": "more",
    "after": "before",
    "forbid": "allow",
    "deny": "allow",
    "hide": "show",
    "decrease": "increase",
    "reduce": "increase",
    "short": "long",
    "shorter": "longer",
    "exclude": "include",
    "off": "on",
    "small": "large",
    "smaller": "larger",
    "lower": "higher",
    "slower": "faster",
    "last": "first",
    "private": "public",
    "async": "sync",
    "asynchronous": "synchronous",
}
_NEUTRAL = _FILLERS | frozenset(["of", "to", "do", "does", "did", "is", "be", "in", "it", "always", "any", "at"])

_WORD = lazy_regex(r"[^\W_]+")
_TOKEN = lazy_regex(r"[^\W_]+|[,;:.!?\n]")
_SHORT_NOT = lazy_regex(r"\b(do|does|did|is|are|was|were|should|would|could|must|can|wo|have|has)n[’']?t\b")


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words; of a text without any, the text itself.

    Examples
    --------
    >>> sorted(content_words("Please send the emails in asynchronous batches"))
    ['async', 'batch', 'email', 'send']
    """
    lowered = text[:LOOKED_AT].lower()
    words = (word for word in _WORD.findall(lowered) if len(word) > 2 and word not in _FUNCTION_WORDS)
    stems = frozenset(word[:STEM] if word.isalpha() else word for word in words)
    return stems or frozenset([lowered.strip()])


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the shared words over those of the shorter text, in [0, 1] (Szymkiewicz-Simpson coefficient)."""
    return len(a & b) / (min(len(a), len(b)) or 1)


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the shared words over all words of both texts, in [0, 1] (Jaccard index)."""
    return len(a & b) / (len(a | b) or 1)


def wording(text: str) -> str:
    """Return what is left of a text without case, punctuation and filler words; the order of words stays.

    Examples
    --------
    >>> wording("Use tabs, please!") == wording("please use TABS")
    True
    >>> wording("Use tabs, not spaces") == wording("Use spaces, not tabs")
    False
    """
    words = [word for word in _WORD.findall(_spelled_out(text)) if word not in _FILLERS]
    return " ".join(words) or text[:LOOKED_AT].strip()


def stance(text: str) -> dict[str, int]:
    """Return each word that a text affirms (1) or negates (-1); words that it does both to are left out.

    A negation reaches to the end of its clause; the second of two opposites counts as the first one negated.

    Examples
    --------
    >>> stance("Use tabs, not spaces")
    {'use': 1, 'tabs': 1, 'spaces': -1}
    >>> stance("Disable caching")
    {'enable': -1, 'caching': 1}
    """
    found: dict[str, int] = {}
    mixed: set[str] = set()
    sign = 1
    for word in _TOKEN.findall(_spelled_out(text)):
        if word in ",;:.!?\n" or word in ("but", "and"):
            sign = 1
        elif word in _NEGATIONS:
            sign = -1
        elif word not in _NEUTRAL:
            meant = _OPPOSITES.get(word, word)
            own = sign if meant == word else -sign
            if found.setdefault(meant, own) != own:
                mixed.add(meant)
    return {word: own for word, own in found.items() if word not in mixed}


def opposed(a: dict[str, int], b: dict[str, int]) -> bool:
    """Tell whether one stance affirms a word that the other negates.

    Examples
    --------
    >>> opposed(stance("Always retry failed requests"), stance("Never retry failed requests"))
    True
    >>> opposed(stance("Don't print, use logging"), stance("Use logging instead of print"))
    False
    """
    return any(b.get(word, own) != own for word, own in a.items())


def is_implicit(message: str, previous_request: str) -> bool:
    """Tell whether a user's message, sent right after an answer, corrects that answer.

    It does if it begins with a correcting phrase ("no, …", "that's wrong", "I meant …"), has such a phrase at the
    beginning of a sentence within its first 200 characters, or repeats the last request almost word for word.
    Precision before recall: "no, thanks" and a new request are none.

    Parameters
    ----------
    message : str
        What the user said.
    previous_request : str
        The user's message before it, "" if there was none.

    Examples
    --------
    >>> is_implicit("No, use the other table", "List the users"), is_implicit("No, thanks!", "List the users")
    (True, False)
    >>> is_implicit("list the active users again", "List the active users"), is_implicit("List the groups", "List them")
    (True, False)
    """
    head = _spelled_out(message[:200]).replace("’", "'").lstrip(" \t\r\n\"'*-–—")
    # Asked first, for "no, thanks" begins as a correction does.
    if _DECLINES.match(head):
        return False
    if _BEGINS.match(head) or _HOLDS.search(head):
        return True
    said, asked = (_words(text) for text in (message, previous_request))
    # Short requests share their few words by chance.
    if min(said.total(), asked.total()) < 4 or len(message) > LOOKED_AT:
        return False
    return 2 * (said & asked).total() / (said.total() + asked.total()) >= REPEATED


def _words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text[:LOOKED_AT].lower()) if word not in ("again", "please"))


def _spelled_out(text: str) -> str:
    """Lower a text's beginning and write "don't" as "do not"."""
    return _SHORT_NOT.sub(lambda found: ("will" if found[1] == "wo" else found[1]) + " not", _cut(text))


def _cut(text: str) -> str:
    return text[:LOOKED_AT].lower().replace("can't", "can not").replace("can’t", "can not")  # "can't" has one n only


_DECLINES = lazy_regex(
    r"(?:no|nope|nein|non|actually)[ ,.!-]{1,3}(?:thanks|thank|danke|merci|problem|worries|need|idea|doubt|wonder|"
    r"(?:that|this|it)(?:'s| is| was)? (?:all|fine|ok|okay|great|good|perfect|it|works|enough|correct|right)|"
    r"(?:i|we) (?:do not|have not|am|'m|have|has|had|think|like|love)|i'm|not really|nothing|go ahead|"
    r"one more|another|also|could|das war)\b"
)
_BEGINS = lazy_regex(
    r"(?:(?:no|nope|nein|non)[,.!:;]|(?:no|nope|nein|non) ?[-–—] ?|no (?:no|not|that|i)\b|wrong[,.!:;]|"
    r"falsch[,.!:;]|i (?:said|meant|asked (?:for|you))\b|ich (?:sagte|meinte)\b|j'ai dit\b|"
    r"actually,? (?:no|not|i (?:meant|wanted|said|asked)|use|make|do not|it should|it is not|that is not|change)\b)"
)
_HOLDS = lazy_regex(
    r"(?:^|[.!?\n] ?)(?:but |sorry,? |hm+,? )?"
    r"(?:(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|not (?:right|correct|what i|how i|the one i))|"
    r"not what i (?:asked|wanted|meant|said)|you (?:misunderstood|got (?:it|that) wrong|ignored (?:my|what i))|"
    r"i (?:did not|never) (?:ask|want|say|mean)|das ist (?:falsch|nicht richtig|nicht das)|das meinte ich nicht|"
    r"das stimmt nicht|c'est faux|ce n'est pas (?:ce que|correct|bon))\b"
)
