"""Values that an agent was given, and which tool results it made use of."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice, pairwise, repeat
from operator import itemgetter
from typing import Any, TypeVar
from zlib import crc32

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.protocols import Extractor
from coherence.core.readings import Claim
from coherence.core.validation import ends
from coherence.detect.bloom_filter import BloomFilter
from coherence.detect.digits import behind_digits, digit_matches
from coherence.detect.extractors import extract_some, numbers, row
from coherence.detect.text_analysis import tokens, weight
from coherence.detect.values import NARROW, digest, fold, number_form, words_once

MAX_CHARS = 30_000
"""Characters of one source that are read, half from each end."""

MAX_FOLDED = MAX_CHARS + MAX_CHARS // 5
"""The same once it is folded: a ligature can become 8 letters."""

MAX_VALUES = 5_000
MAX_PAIRS = 10_000
MAX_NUMBERS = 500
MAX_OPENED = 1_000
MAX_WRITTEN = 1_000
MAX_FADED = 25_000
"""Forms that left and of which it is still known that they were there."""
MAX_FADED_WORDS = 50_000
"""The same of words and pairs of them."""
OPENABLE = ("url:", "id:", "path:")
"""Forms of what a call can open."""

SMALL = frozenset(map(float, range(13)))
"""Numbers that are mostly counts and places in a list."""

MAX_FORM = 64
"""Characters of a form that are kept as they are; longer ones become a digest."""

MAX_ATTACHED = 100
"""Numbers of one source that stand behind letters, or behind another number."""

MAX_CODED = 20_000
"""Words whose digests are kept at hand."""

Key = TypeVar("Key", str, int)

_MAYBE_ROW = lazy_regex(rf"\d(?:[ {NARROW}]|,\d\d?\b)")
_BEHIND_LETTERS = lazy_regex(
    r"[A-Zx](?<![\w-].)(?:(?<=x)(?=\d)|(?<!x)[a-z](?=\d)|(?<!x)(?=\d{1,4}\.\d))(\d{1,6}(?:\.\d{1,4})?)(?![\w-]|\.\d)"
)
# A place is looked at only where a digit stands: alternatives of words first would be tried at every character.
_LONE_DAY = lazy_regex(
    r"\d(?:(?<=[^\w.,]\d)|(?<=^\d))(?:"
    r"(?<=[a-z] \d)(?:(?<=\bthe \d)|(?<=\bday \d)|(?<=\bam \d)|(?<=\bden \d)|"
    r"(?<=\bdag \d)|(?<=\bil \d)|(?<=\ble \d)|(?<=\bd[ií]a \d))"
    r"(?:(?<=[0-3])\d)?(?:st|nd|rd|th|er|\.)?(?![\w%/-]|[.,:]\d| ?(?:%|h\b|uhr))"
    r"|(?:(?<=[0-3])\d)?(?:st|nd|rd|th)\b)",
    re.I,
)
"""A day without its month: el día 7, am 7., the 7th."""
_MAYBE_LONE = lazy_regex(r"\d(?:(?<=[a-z] \d)|(?:\d(?<=[0-3]\d))?(?:st|nd|rd|th))", re.I)
"""A part of every such day."""
_DIGITS = lazy_regex(r"\d+")
_RATIO = lazy_regex(r"/(?<=\d/)(\d{1,6})(?![\w/]|[.,]\d)")
_TOP = lazy_regex(r"(?<![\w./-])\d{1,6}\Z")
_LABEL = lazy_regex(r"[A-Za-z_]\w{0,40}\Z")
_MONEY_SIGNS, _QUOTES, _FIELD_SIGNS = frozenset("$€£"), frozenset("\"'"), frozenset(":=|")


class SeenNumber(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A number in a source."""

    value: float
    unit: str
    seq: int
    place: int
    """Place among the numbers of its source."""
    column: int
    """Digest of the word before it (``amount:``); 0 = none."""
    line: int = 0
    """Number of its line in its source."""


class Given(msgspec.Struct):
    """The values that came in; the newest last."""

    values: dict[str, int] = {}
    """Form -> event that gave it last."""
    pairs: dict[int, None] = {}
    """Digests of words and of pairs of neighbouring words, the newest last."""
    numbers: list[SeenNumber] = []
    opened: dict[str, int] = {}
    """Form of an address, path or id -> successful call that named it."""
    code: bool = False
    """True once a source named functions; tools that were never shown have names too."""
    written: dict[str, str] = {}
    """Form -> how its newest source wrote it, where that is not the form itself; of the newest 1,000."""
    faded: BloomFilter = msgspec.field(default_factory=BloomFilter)
    """The forms that left ``values``."""
    faded_words: BloomFilter = msgspec.field(default_factory=BloomFilter)
    """The digests that left ``pairs``."""
    tried: list[str] = []
    """Arguments of the newest calls that failed."""
    lost: int = 0
    """Sources of which a part was not read, and times that values were forgotten: one may have been there."""
    lost_words: int = 0
    """The same of words."""
    lost_numbers: int = 0
    """Times that numbers left: another one may be rounded from theirs."""


def form_key(form: str) -> str:
    """Return a form as it is kept."""
    if len(form) <= MAX_FORM:
        return form
    kind = form.partition(":")[0]
    return f"{kind}:~{blake2b(form.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def take_source(
    given: Given,
    seq: int,
    text: str,
    extractors: Sequence[Extractor],
    most: int = MAX_CHARS,
    read: tuple[list[Claim], bool] | None = None,
) -> list[Claim]:
    """Remember the values of a text that the agent was given, and return them.

    Parameters
    ----------
    given : Given
        Is changed.
    seq : int
        Number of the event.
    text : str
        Any text.
    extractors : sequence of Extractor
        What is looked for.
    most : int
        Characters that are read, half from each end.
    read : tuple of list and bool, optional
        What :func:`~coherence.detect.extractors.extract_some` has found in the whole text, if it was read before.
    """
    folded = fold(ends(text, most, "\n\n"))
    if len(text) > most or len(folded) > MAX_FOLDED:
        given.lost += 1
        given.lost_words += 1
    text = ends(folded, MAX_FOLDED, "\n\n")
    claims, cut = extract_some(text, extractors) if read is None else read
    given.lost += cut
    _take_values(given, seq, claims)
    lone = islice(digit_matches(_LONE_DAY, text, _MAYBE_LONE), MAX_ATTACHED)
    days = (_DIGITS.match(day[0]) for day in lone)
    know_words(given, [*words_once(text), *(f"day {int(day[0])}" for day in days if day)])
    _take_numbers(given, seq, text, claims)
    return claims


def _take_values(given: Given, seq: int, claims: Sequence[Claim]) -> None:
    values, written = given.values, given.written
    # What is said again counts where it is said last.
    last = {(claim.text, claim.forms, claim.also): (left, claim) for left, claim in enumerate(claims, -len(claims))}
    for left, claim in sorted(last.values(), key=itemgetter(0)):
        if claim.kind == "quote":
            continue  # its words are known
        known = claim.kind != "number" or claim.value not in SMALL or claim.grain != 1.0  # or it may be anything
        kept = left >= -MAX_WRITTEN
        text = claim.text if len(claim.text) <= MAX_FORM else claim.text[: MAX_FORM - 1] + "…"
        for form in (*claim.forms, *claim.also):
            key = form if len(form) <= MAX_FORM else form_key(form)
            if known:
                values.pop(key, None)
                values[key] = seq
            if kept:
                written.pop(key, None)
                if key.partition(":")[2] != text:
                    written[key] = text
    _drop(written, MAX_WRITTEN)
    faded = _drop(values, MAX_VALUES)
    given.lost += bool(faded) and not given.faded.add([digest(key) for key in faded], most=MAX_FADED)


def as_written(given: Given, key: str) -> str:
    """Return a given value as its source wrote it, or else its normal form.

    Examples
    --------
    >>> given = Given()
    >>> claims = take_source(given, 1, "It costs $1,200.", [numbers])
    >>> as_written(given, "n:1200usd"), as_written(given, "id:x-17")
    ('$1,200', 'x-17')
    """
    return given.written.get(key, key.partition(":")[2])


def open_values(given: Given, seq: int, claims: Sequence[Claim]) -> None:
    """Remember that addresses, paths and ids were opened, or told by who may ask."""
    for claim in claims:
        for form in (*claim.forms, *claim.also):
            if form.startswith(OPENABLE):
                key = form_key(form)
                given.opened.pop(key, None)
                given.opened[key] = seq
    _drop(given.opened, MAX_OPENED)


class _Tails(dict[str, bytes]):
    """Word -> what is digested of it behind another one; the words of one task come again and again."""

    def __missing__(self, word: str) -> bytes:
        """Work it out."""
        if len(self) >= MAX_CODED:
            self.clear()
        self[word] = found = b"\0" + word.encode("utf-8", "surrogatepass")
        return found


class _Codes(dict[str, int]):
    """Word -> its digest."""

    def __missing__(self, word: str) -> int:
        """Work it out."""
        if len(self) >= MAX_CODED:
            self.clear()
        self[word] = found = digest(word)
        return found


_TAILS, _CODES = _Tails(), _Codes()


def know_words(given: Given, said: Sequence[str]) -> None:
    """Remember words, and which stood next to each other."""
    if not said:
        return
    pairs = given.pairs
    ones = list(map(_CODES.__getitem__, said))
    both = [0] * (2 * len(ones))
    both[::2] = ones
    # digest(one, two) of each word and the one before it
    both[1::2] = map(crc32, map(_TAILS.__getitem__, said), chain((0,), ones))
    both.reverse()
    newest = dict.fromkeys(both)
    deque(map(pairs.pop, newest, repeat(None)), maxlen=0)  # a loop in C
    pairs.update(dict.fromkeys(reversed(newest)))
    left = _drop(pairs, MAX_PAIRS)
    given.lost_words += bool(left) and not given.faded_words.add(left, most=MAX_FADED_WORDS)


def _take_numbers(given: Given, seq: int, text: str, claims: Sequence[Claim]) -> None:
    place, joined = 0, list[SeenNumber]()
    line = read = 0
    given.code = given.code or any(claim.kind == "function" for claim in claims)
    attached = list(islice(_attached(text), MAX_ATTACHED))
    given.values.update({each.forms[0]: seq for each in attached if each.value not in SMALL})
    valued = [claim for claim in claims if claim.value is not None]
    if attached:
        valued = sorted((*valued, *attached), key=lambda each: each.start)
    over = len(valued) - MAX_NUMBERS
    for left, claim in enumerate(valued, -over):
        said = claim.text
        parts = row(said) if not said.isdigit() and _MAYBE_ROW.search(said) is not None else []
        if left < 0 and not parts and given.values.get(claim.forms[0]) == seq:  # so many follow that it is not kept
            place += 1
            continue
        label = _label_before(text, claim.start)
        if label and claim.kind == "number":
            given.values[claim.forms[0]] = seq  # a small one too
        column = digest(label.lower()) if label else 0
        told = [each for part in parts for each in numbers(part)]
        if left < 0 and not told:
            place += 1
            continue
        line, read = line + text.count("\n", read, claim.start), claim.start
        for each in told or (claim,):
            place += 1
            given.numbers.append(SeenNumber(each.value or 0.0, each.unit, seq, place, column, line))
        if told:
            joined.append(SeenNumber(claim.value or 0.0, claim.unit, seq, 0, column, line))
    given.numbers += [msgspec.structs.replace(each, place=place + at) for at, each in enumerate(joined, 1)]
    if over > 0 or len(given.numbers) > MAX_NUMBERS:
        given.lost_numbers += 1
        del given.numbers[:-MAX_NUMBERS]


def _label_before(text: str, start: int) -> str:
    """Return the word that names what begins at a place, empty without one.

    Examples
    --------
    >>> _label_before("'price': 5", 9), _label_before("| price | $5", 11), _label_before("price 5", 6)
    ('price', 'price', '')
    """
    at = start - (text[start - 1 : start] in _MONEY_SIGNS)
    at -= text[at - 1 : at] in _QUOTES
    at -= text[at - 1 : at].isspace()
    if text[at - 1 : at] not in _FIELD_SIGNS:
        return ""
    at -= 1
    at -= text[at - 1 : at].isspace()
    at -= text[at - 1 : at] in _QUOTES
    last = text[max(0, at - 41) : at].rsplit(None, 1)[-1:]
    named = _LABEL.search(text, at - len(last[0]), at) if last else None
    return named[0] if named is not None else ""


def _attached(text: str) -> Iterator[Claim]:
    """Yield numbers that belong to letters or to another number: ``x4``, ``Sn96.5``, ``118/342``."""
    for found in digit_matches(_BEHIND_LETTERS, text):
        yield _plain(found[1], found.start(1))
    for found in _RATIO.finditer(text) if "/" in behind_digits(text) else ():
        before = _TOP.search(text, max(0, found.start() - 8), found.start())
        if before is not None:
            yield _plain(before[0], before.start())
            yield _plain(found[1], found.start(1))


def _plain(digits: str, start: int) -> Claim:
    value, places = float(digits), len(digits.partition(".")[2])
    return Claim("number", digits, start, (number_form(value),), (), value, 10.0**-places)


def _drop(table: dict[Key, Any], most: int) -> list[Key]:
    """Let the oldest entries of a table leave, and return them."""
    over = len(table) - most
    # a twentieth more, or each further entry would cost as much
    left = list(islice(table, over + most // 20)) if over > 0 else []
    for key in left:
        del table[key]
    return left


def known_words(given: Given, said: Sequence[str]) -> float:
    """Return how many of the neighbouring words of a quotation stood next to each other in a source, either way round.

    Examples
    --------
    >>> given = Given()
    >>> claims = take_source(given, 1, "Doe, Jane wrote: the cat sat on the mat.", ())
    >>> known_words(given, ["jane", "doe"]), known_words(given, ["the", "cat", "sat", "down"])
    (1.0, 0.6666666666666666)
    """
    if len(said) < 2:
        return float(all(_is_known(given, digest(word)) for word in said))
    pairs = list(pairwise(said))
    known = [_is_known(given, digest(one, two)) or _is_known(given, digest(two, one)) for one, two in pairs]
    return sum(known) / len(pairs)


def _is_known(given: Given, code: int) -> bool:
    return code in given.pairs or code in given.faded_words


def lookup(given: Given, forms: Sequence[str]) -> int | None:
    """Return the newest event that gave one of some forms, ``None`` if none did; 0 if nobody knows any more which."""
    values, newest = given.values, None
    for form in forms:
        seq = values.get(form_key(form))
        if seq is not None and (newest is None or seq > newest):
            newest = seq
    if newest is None and given.faded.count and any(digest(form_key(form)) in given.faded for form in forms):
        return 0
    return newest


MAX_OUTPUT_CHARS = 4_000
"""Characters of a text that are looked at, half from each end."""

MAX_OUTPUTS = 32
"""Results of a task that are remembered."""

MAX_MARKS = 24
"""New tokens of a result that are remembered, names and numbers first."""

MAX_KNOWN = 2_000
"""Tokens of the goal and of the agent's own words that are remembered."""

USED = 2.0
"""Weight of the new tokens that must come back: one name, address or longer number, or two words."""


class Output(msgspec.Struct):
    """One tool result."""

    seq: int
    marks: dict[int, float] = {}
    """Digest of a new token -> its weight."""
    used: bool = False


class Outputs(msgspec.Struct):
    """The results of a task, and what the agent knew without them."""

    newest: list[Output] = []
    known: dict[int, None] = {}
    """Digests of what the goal, the user or the agent said, the newest last."""
    said_seq: int = 0
    """The newest message of the agent."""


def note_asked(outputs: Outputs, text: str) -> tuple[dict[int, None], list[int]]:
    """Remember what somebody said, and return its digests, and those of them that were not known before."""
    said = dict.fromkeys(map(digest, sorted(tokens(ends(text, MAX_OUTPUT_CHARS, "\n\n")))))
    known = outputs.known
    new = [mark for mark in said if known.pop(mark, said) is said]  # what is known holds None
    known.update(said)
    over = len(known) - MAX_KNOWN
    if over > 0:
        for mark in list(known)[: over + MAX_KNOWN // 20]:
            del known[mark]
    return said, new


def note_output(outputs: Outputs, seq: int, text: str) -> None:
    """Take in a tool result; what says nothing new is not counted."""
    kept: dict[int, float] = {}
    for token in sorted(sorted(tokens(ends(text, MAX_OUTPUT_CHARS, "\n\n"))), key=weight, reverse=True):
        mark = digest(token)
        if mark not in outputs.known:
            kept[mark] = weight(token)
            if len(kept) == MAX_MARKS:
                break
    if sum(kept.values()) >= USED:
        outputs.newest.append(Output(seq, kept))
        del outputs.newest[:-MAX_OUTPUTS]


def note_said(outputs: Outputs, seq: int, text: str, *, answer: bool) -> list[int]:
    """Take in a message or a call of the agent: which results come back in it. Return digests that nobody said before.

    Parameters
    ----------
    outputs : Outputs
        Is changed.
    seq : int
        Number of the event.
    text : str
        The message, or the arguments of the call.
    answer : bool
        Whether it is a message.
    """
    said, new = note_asked(outputs, text)
    for output in outputs.newest:
        if not output.used:
            marks = output.marks
            if not said.keys().isdisjoint(marks):
                output.used = sum(map(marks.__getitem__, marks.keys() & said.keys())) >= USED
    if answer and text.strip():
        outputs.said_seq = seq
    return new


def unused_share(outputs: Outputs) -> float | None:
    """Return the share of the results before the newest message that were not used; ``None`` if there are none.

    Examples
    --------
    >>> outputs = Outputs()
    >>> said, new = note_asked(outputs, "Where does Anna live?")
    >>> note_output(outputs, 2, "anna@example.org, Elm Street 12b, Bergen")
    >>> note_output(outputs, 3, "The museum opens at ten on Sundays.")
    >>> new = note_said(outputs, 4, "Anna lives in Elm Street, Bergen.", answer=True)
    >>> unused_share(outputs)
    0.5
    """
    before = [output for output in outputs.newest if output.seq < outputs.said_seq]
    return sum(not output.used for output in before) / len(before) if before else None
