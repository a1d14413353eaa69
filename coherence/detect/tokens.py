"""Texts as weighted sets of tokens: names, numbers and addresses count more than words."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache
from itertools import chain
from math import sqrt
from unicodedata import normalize

from coherence.core.validation import ends

MAX_CHARS = 20_000
"""Characters of one text that are looked at, half from each end."""

_FUNCTION_WORDS = (
    "a an and any are as at be been but by can could did do does for from get had has have he her his how i if in "
    "into is it its just let may me more most my no not of off on or our out over own she should so some such than "
    "that the their them then there these they this those to too up us very was we were what when where which who "
    "will with would you your"
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that say nothing of what a text is about."""

_TOKEN = re.compile(
    r"(?=[\w.+%~/-])(?:"  # what a token may begin with
    r"[^\W\d]\w{0,99}+(?![\w+%~/@-]|[.:](?!\s|\Z))"  # most words: nothing below but the last line can be there
    r"|[\w.+%-]{1,80}+@[\w-]{1,80}+(?:\.[\w-]{1,80}){1,5}"  # an e-mail address
    r"|https?://[^\s\"'<>()\[\]{}|\\^`]{1,400}"
    r"|\d{4}-\d\d?-\d\d?"  # an ISO date
    r"|\d{1,30}(?:[.,]\d{1,30}){0,5}(?![\w])"  # a number, a version
    r"|[\w~-]{0,60}+(?:/[\w.~-]{1,60}){1,12}"  # a path
    r"|\w{1,60}+(?:\.\w{1,60}+){1,6}"  # a file, a host, a dotted name
    r"|\w{1,100}+)"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ZEROS = re.compile(r"^(\d+)\.0+$")
_SUFFIXES = ("ings", "ing", "ed", "es", "s")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words."""


def tokens(text: str) -> frozenset[str]:
    """Return the tokens of a text: addresses, dates, numbers, paths and dotted names whole, words as stems.

    Names of code (``sendMoney``, ``send_money``) fall into their words. Chinese, Japanese and Korean come as pairs of
    characters. Of a text beyond 20,000 characters, half is read from each end.

    Examples
    --------
    >>> sorted(tokens("Please send 50.0 to Anna's account anna@x.org; see reports/May.pdf"))
    ['50', 'account', 'anna', 'anna@x.org', 'pleas', 'reports/may.pdf', 'see', 'send']
    >>> tokens("sendMoney") == tokens("send_moneys")
    True
    """
    text = ends(text, MAX_CHARS)
    if not text.isascii():
        text = normalize("NFKC", text)
    return _tokens(text)


@lru_cache(maxsize=8)  # one event is looked at by several detectors
def _tokens(text: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(_parts, set(_TOKEN.findall(text)))))


@lru_cache(maxsize=20_000)
def _parts(raw: str) -> tuple[str, ...]:
    """Return the tokens that a run of characters is made of, each once."""
    if not raw.isascii() and (dense := _DENSE.findall(raw)):
        pairs = [run[at : at + 2] for run in dense for at in range(max(len(run) - 1, 1))]
        rest = [token for part in _DENSE.sub(" ", raw).split() for token in _parts(part)]
        return tuple(dict.fromkeys(pairs + rest))
    if raw[0].isdigit() or "@" in raw or "/" in raw or "." in raw:
        zeros = _ZEROS.match(raw)
        token = zeros[1] if zeros else raw.rstrip("/").lower()
        return (token,) if token else ()
    found: dict[str, None] = {}
    for part in raw.split("_"):
        words = (part,) if part[1:].islower() or part.isupper() else _CAMEL.split(part)
        found.update((stem, None) for word in words if (stem := _stem(word.lower())))
    return tuple(found)


def _stem(word: str) -> str:
    """Return a word without its ending; empty for a function word or a lone letter."""
    if word in FUNCTION_WORDS or (len(word) < 2 and not word.isdigit()):
        return ""
    for suffix in _SUFFIXES:
        if len(word) > 4 and word.endswith(suffix):
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def weight(token: str) -> float:
    """Return how much a token counts: 3 for an address, path or dotted name, 2 with digits (0.5 if short), else 1.

    Examples
    --------
    >>> [weight(token) for token in ("anna@x.org", "utils.py", "2024", "50", "send")]
    [3.0, 3.0, 2.0, 0.5, 1.0]
    """
    if "@" in token or "/" in token or "." in token.strip("."):
        return 3.0
    if any(map(str.isdigit, token)):
        return 2.0 if len(token) >= 3 else 0.5
    return 1.0


def mass(found: Set[str]) -> float:
    """Return the sum of the weights; they are multiples of 0.5, so that their order does not matter."""
    return sum(map(weight, found), 0.0)


def overlap(first: Set[str], second: Set[str]) -> float:
    """Return how much two sets share: the cosine of their weights, in [0, 1]; 0 if either is empty.

    Examples
    --------
    >>> overlap(tokens("send 500 to anna@x.org"), tokens("send money to anna@x.org"))
    0.7302967433402214
    """
    shared = mass(first & second)
    return shared / sqrt(mass(first) * mass(second)) if shared else 0.0
