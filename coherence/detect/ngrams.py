"""Texts as weighted bags of hashed character n-grams: how much two texts share, in any script, without a model."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.detect.read_once import read_once

WEIGHTS = Path(__file__).resolve().parent / "gram_weights.bin"
"""One byte a bucket of n-grams: 16 times minus the logarithm of its share in English text."""

MAX_CHARS = 20_000
"""Characters of a text that are looked at; of a longer one, half from its beginning and half from its end."""

COMMON = 3.0
"""Minus log share below which an n-gram counts as nothing: those of "the", "and", "with"."""

TELLING = 2.0
"""Mean rarity of its n-grams below which a word tells nothing: "and", "was"."""

FEW = 40
"""Characters of a text whose bag is remembered: the words of one task come again and again."""

_Codes = npt.NDArray[np.uint32]

_BUCKETS = 1 << 16
_SPACE = 32
_LONE = np.uint32(0x9E3779B1)  # 2**32 over the golden ratio, the multiplier of Knuth's multiplicative hashing
_MIX = np.uint32(0x85EBCA6B)

_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else _SPACE for code in range(128)) + b" " * 128
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc"
)
"""Combining marks that belong to words but are not in the class of word characters: Hebrew to Lao."""
_BETWEEN_WORDS = lazy_regex(rf"[^\w{_MARKS}]+")


class Bag(NamedTuple):
    """A text and its n-grams."""

    folded: str
    """The text as ``fold`` returns it, a space before and after it."""
    grams: set[int]
    """The buckets of its n-grams; not to be changed."""
    mass: float
    """The sum of their rarities: how much there is to judge. From 2 for "no" to 40 for a rare word."""


def fold(text: str) -> str:
    r"""Return a text in one spelling: case folded, compatibility forms composed, a space for all that is not a word.

    Examples
    --------
    >>> fold("Caf\u0065\u0301, STRASSE!") == fold("caf\u00e9  stra\u00dfe ")
    True
    """
    text = ends(text, MAX_CHARS)
    if text.isascii():
        return text.encode().translate(_ASCII).decode()
    folded = normalize("NFKC", normalize("NFKC", text).casefold())[:MAX_CHARS]
    return _BETWEEN_WORDS.sub(" ", folded.replace("_", " "))


def bag(text: str) -> Bag:
    """Return the n-grams of a text: four characters inside a word (its ends count as one), two in Chinese or Japanese.

    Words of one and two characters are n-grams as a whole. Neither the order of the words nor their case matters.

    References
    ----------
    P. McNamee and J. Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval", 2004, for the
    length of four.

    Examples
    --------
    >>> bag("Refactoring, the tests").mass == bag("tests THE refactoring").mass
    True
    >>> bag("the").mass < 1 < bag("cat").mass < bag("telemetry").mass
    True
    """
    return _bag_of_words(text) if len(text) <= FEW else _bag(text)


def _bag(text: str) -> Bag:
    folded = f" {fold(text)} "
    distinct = np.unique(hashed_grams(folded)[0])
    return Bag(folded, set(distinct.tolist()), float(_rarity()[distinct].sum(dtype=np.float64)))


_bag_of_words = lru_cache(maxsize=4_096)(_bag)
bag_once = read_once(bag)
"""The same of a text that is compared with several others: a goal with many answers."""


def shares(first: Bag, second: Bag) -> tuple[float, float]:
    """Return which share of the first bag's mass the second has too, and of the second's the first; in [0, 1].

    Examples
    --------
    >>> task, answer = bag("Refactor the login"), bag("I refactored the login code")
    >>> [round(share, 2) for share in shares(task, answer)]
    [0.95, 0.66]
    >>> shares(bag("soup"), bag(""))
    (0.0, 0.0)
    """
    if first.mass <= 0 or second.mass <= 0:
        return 0.0, 0.0
    # The rarities are multiples of 1/16, so that their order does not matter.
    shared = sum(map(_rarities().__getitem__, first.grams & second.grams), 0.0)
    return shared / first.mass, shared / second.mass


def unshared_words(text: Bag, other: Bag, most: int = 6) -> tuple[str, ...]:
    """Return the weightiest words of a text of which the other has less than half, at most ``most``, heaviest first.

    A word weighs the rarity of its n-grams which the other lacks, over the square root of their number. Chinese and
    Japanese come as runs of characters.

    Examples
    --------
    >>> unshared_words(bag("I added telemetry to the login page"), bag("Fix the login page"), most=1)
    ('telemetry',)
    """
    hashes, at = hashed_grams(text.folded)
    if not hashes.size:
        return ()
    there = np.zeros(_BUCKETS, bool)
    there[list(other.grams)] = True
    gap = _codes(text.folded) == _SPACE
    starts = np.flatnonzero(gap[:-1] & ~gap[1:]) + 1
    word_of = np.searchsorted(starts, at, side="right") - 1
    rarity = _rarity()[hashes]
    whole = np.bincount(word_of, rarity, starts.size)
    lacking = np.bincount(word_of, rarity * ~there[hashes], starts.size)
    number = np.bincount(word_of, minlength=starts.size)
    telling = np.flatnonzero((lacking > whole / 2) & (lacking >= TELLING * number) & (lacking > 0))
    weights = lacking[telling] / np.sqrt(number[telling])
    # Every word counts once, the heaviest first; of equal ones the first of the text.
    heaviest = telling[np.argsort(-weights, kind="stable")[: 20 * most]]
    found = (text.folded[start : start + 41].split(" ", 1)[0] for start in starts[heaviest].tolist())
    return tuple(dict.fromkeys(word[:40] for word in found))[:most]


def _codes(folded: str) -> _Codes:
    if folded.isascii():
        return np.frombuffer(folded.encode(), np.uint8).astype(np.uint32)
    return np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), np.uint32)


def hashed_grams(folded: str) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """Return the bucket of each n-gram of a folded text with a space around it, and a position inside its word."""
    codes = _codes(folded)
    gap = codes == _SPACE
    dense = _is_dense(codes) if codes.size and codes.max() >= 0x3040 else None
    broken = gap if dense is None else gap | dense
    pair = codes[:-1] * _LONE + codes[1:]
    inner = (~(broken[1:-2] | broken[2:-1])).nonzero()[0] if codes.size >= 4 else np.zeros(0, np.int64)
    if dense is not None:
        inner = inner[~(dense[inner] | dense[inner + 3])]
    hashes = pair[inner] * _MIX + pair[inner + 2]
    lone = (gap[:-2] & ~gap[1:-1] & gap[2:]).nonzero()[0]
    hashes = np.concatenate((hashes, codes[lone + 1] * _MIX))
    at = np.concatenate((inner + 1, lone + 1))
    if dense is not None:
        twos = np.flatnonzero(dense[:-1] & dense[1:])
        hashes, at = np.concatenate((hashes, pair[twos])), np.concatenate((at, twos))
    hashes ^= hashes >> np.uint32(15)
    return ((hashes * _MIX) >> np.uint32(16)).astype(np.uint16), at


def _is_dense(codes: _Codes) -> npt.NDArray[np.bool_]:
    """Tell which characters are words or syllables by themselves: kana, Han, Hangul."""
    return ((codes >= 0x3040) & (codes <= 0x9FFF)) | ((codes >= 0xAC00) & (codes <= 0xD7AF)) | (codes >= 0x20000)


@cache
def _rarity() -> Any:
    stored = np.frombuffer(WEIGHTS.read_bytes(), np.uint8)
    table = np.maximum(stored.astype(np.float32) / 16 - COMMON, 0)
    return np.tile(table, _BUCKETS // table.size)


@cache
def _rarities() -> list[float]:
    rarities: list[float] = _rarity().tolist()
    return rarities
