"""The names of an error: what tells it from its siblings, and putting other names into a fix.

Which name in an error's whole text matters is not known beforehand. A name that many candidates share says little, one
that few share says much (Spärck Jones, 1972, on the specificity of terms); one that a lesson's fix quotes says most,
for the fix is about it.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from posixpath import basename
from typing import NamedTuple
from zlib import crc32

from coherence.core.lazy import lazy_regex
from coherence.lessons.error_words import ORDINARY
from coherence.lessons.normal import KEYS, ErrorShape, Slot

HERE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "[::1]"})  # noqa: S104 - nothing listens
"""Hosts that every machine is to itself."""

_TAGGED = lazy_regex(r"(?P<name>.{2,120}?)(?::[a-z]{2,8})?[:@]v?\d[\w.+-]{0,40}$")
SAFE = lazy_regex(r"[\w@./~][\w@./:+%=,~^\\-]{0,119}")
"""Names that may be put into a fix: a shell takes them for one plain word, and not for an option."""

_HOST = lazy_regex(r"(?:[a-z][a-z0-9+.-]*://)?(?P<host>\[[0-9a-f:]+\]|[^\s/:]+)(?::(?P<port>\d+))?", re.IGNORECASE)
_FILE = lazy_regex(r"^(?P<path>.*?)(?::\d+(?::\d+)?)?$", re.DOTALL)

MAX_KEPT_NAMES = 32
"""Names that are kept of a lesson."""

ASKED = 160
"""Names that are looked at in a question."""

DOTTED = 16
"""Names with dots that are looked at as a whole."""

MAX_LINES = 120
"""Last lines of a text whose names are taken."""

REMEMBERED = 4_096
"""Lessons whose names are remembered as they were unpacked."""

LITTLE = 0.2
"""Weight of shared names below which a lesson names none of the question's."""

SECOND = 0.25
"""Weight of the second rarest name that two errors share."""

CONSTANT = 0.3
"""Share of its weight that a name has which belongs to the wording of a message."""

ELSEWHERE, HEADLINE, QUOTED = range(3)
"""Places where a lesson has a name: beside the headline, in a slot of the headline, in the error and in its fix."""

KNOWN = (0.6, 1.0, 1.0)
"""Weights of a name by where the lesson has it."""

_CASE, _APART = 3, ~3
"""Bits of a checksum that say where the name stands."""

_NAME = lazy_regex(r"[^\W\d][\w-]*\w|(?<![\w.])\d+(?:\.\d+)+(?![\w.])|(?<!\d)\d{3,5}(?!\d)")
_MARKED = lazy_regex(
    r"(?<![\w'\"`/.:@=(<-])[^\W\d_][a-z]*+(?![\w-])"
    r"|((?<=['\"`/.:@=(<])[^\W\d][\w-]*\w|[^\W\d_][\w-]{0,90}[\d_-][\w-]*\w|[^\W\d_][a-z]{1,90}[A-Z]\w*"
    r"|(?<!\d)\d{3,5}(?!\d))"
)
"""Words that stand like a name outside of a headline: quoted, part of a path or dotted name, or not spelt as a word.
Plain words are passed over whole, and give nothing."""

_DOTTED = lazy_regex(r"(?<![\w./])[^\W\d][\w-]{0,60}(?:\.[\w-]{1,60}){1,5}")
"""A file or a dotted name as a whole: each part of ``about.html`` is a word, both together are a name."""

_PLACEHOLDER = lazy_regex(r"<[a-z]+>")
_QUOTED = lazy_regex(r"`([^`\n]{2,80})`|'([^'\n]{2,80})'|\"([^\"\n]{2,80})\"")
_FRAME = lazy_regex(r"""\s*(?:File\ "|at\ |\d+:\s+0x|goroutine\ |\.\.\.\ |from\ /|\#\d+\ )""", re.VERBOSE)


class ErrorNames(NamedTuple):
    """The names in a question."""

    weights: dict[int, float]
    """Checksum -> what a name weighs by where it stands."""
    marked: bool
    """True if anything but the headline looks like a name."""


class Shared(NamedTuple):
    """The names that a lesson and a question share."""

    named: float
    """Weight of the rarest names that both have, 0 to 1.25."""
    slotted: float
    """Weight of the rarest name that stands in a slot of both headlines."""
    met: float
    """Weight of the rarest name in the fix that the question has, too."""
    lacking: frozenset[int]
    """Checksums of names in the fix that the question lacks, although others of its kind do not all have them."""


class Told(NamedTuple):
    """The names of a lesson."""

    cases: dict[int, int]
    """Checksum -> where the lesson has the name."""
    quoted: frozenset[int]
    """Those that its fix quotes."""
    headed: frozenset[int]
    """Those, and what stands in a slot of its headline."""


def kept_names(shape: ErrorShape, text: str, fix: str = "") -> bytes:
    """Return the checksums of what a lesson names: in its fix and its error, in the slots of its headline, elsewhere.

    Examples
    --------
    >>> from coherence.lessons.normal import normalise
    >>> text = "ModuleNotFoundError: No module named 'yaml'"
    >>> len(kept_names(normalise(text), text)) // 4
    1
    """
    found = dict.fromkeys(_slot_names(shape), HEADLINE)
    lines = _lines(text)
    for name in _marked(lines, MAX_KEPT_NAMES):
        found.setdefault(name, ELSEWHERE)
    said = set(_names([fix[:400]], _NAME, ASKED))
    for name in _names((shape.text, *lines), _NAME, ASKED):
        if name in said and (name in found or name not in ORDINARY):
            found[name] = QUOTED
    found.pop(shape.exception.lower(), None)  # says what kind of error it is
    ordered = sorted(found.items(), key=lambda each: -each[1])[:MAX_KEPT_NAMES]
    return array("I", [_number(name) | case for name, case in ordered]).tobytes()


def asked_names(shape: ErrorShape, text: str) -> ErrorNames:
    """Return every word of a question that a lesson may name."""
    lines = _lines(text)
    found: dict[str, float] = {}
    slots = _slot_names(shape)
    for name in slots:
        found[name] = 1.0
    marked = _marked(lines, ASKED)
    for name in _names([shape.text], _NAME, ASKED):
        found.setdefault(name, 0.3 if name in ORDINARY else 0.8)
    beside = not found.keys() >= set(marked[:MAX_KEPT_NAMES])
    for name in marked:
        found.setdefault(name, 0.6)
    for name in _names(lines, _NAME, ASKED):
        if name not in ORDINARY:
            found.setdefault(name, 0.4)
    found.pop(shape.exception.lower(), None)
    return ErrorNames({_number(name): weight for name, weight in found.items()}, beside)


@lru_cache(REMEMBERED)
def told_names(kept: bytes) -> Told:
    """Return what :func:`kept_names` has packed."""
    cases = _split(kept)
    headed = frozenset([name for name, case in cases.items() if case >= HEADLINE])
    quoted = frozenset([name for name in headed if cases[name] == QUOTED])
    return Told(cases, quoted, headed)


def shared_names(
    asked: ErrorNames, others: Sequence[Told], kinds: Sequence[Hashable], equal: Sequence[bool]
) -> list[Shared]:
    """Return, for each of some lessons, what it names of the question.

    Parameters
    ----------
    asked : ErrorNames
        Of the question.
    others : sequence of Told
        The names of the lessons.
    kinds : sequence
        Equal values for lessons of one kind.
    equal : sequence of bool
        Whether a lesson has the signature of the question.

    A name weighs the less the more lessons have it, those of the same kind above all, and less if it is not in both
    headlines. The rarest counts, and a little the second: many common words together must not outweigh the one name
    that matters. What the question shares with lessons of its signature that are about other names belongs to the
    wording, and weighs little.
    """
    mine = frozenset(asked.weights)
    shared = [mine & other.cases.keys() for other in others]
    counts = Counter(chain.from_iterable(shared))
    sizes = Counter(kinds)
    gathered: dict[Hashable, list[int]] = {}
    for names, other, kind in zip(shared, others, kinds, strict=True):
        if sizes[kind] > 1:
            gathered.setdefault(kind, []).extend(names | other.quoted)
    within = {kind: Counter(each) for kind, each in gathered.items()}
    weights = _weights(asked, others, shared, equal)
    found = []
    for names, other, kind in zip(shared, others, kinds, strict=True):
        siblings = within.get(kind)
        if siblings is None and not names:
            found.append(Shared(0.0, 0.0, 0.0, other.quoted))
            continue
        both: list[float] = []
        slotted = met = 0.0
        for name in names:
            case, alike = other.cases[name], 1 if siblings is None else siblings[name]
            weight = weights[name] * KNOWN[case]
            both.append(weight / math.sqrt(alike * counts[name]))
            if case >= HEADLINE and asked.weights[name] >= 1.0:
                slotted = max(slotted, weight / alike)
            if case == QUOTED:
                met = max(met, weight / alike)
        if len(both) > 1:
            both.sort(reverse=True)
        named = both[0] + SECOND * (both[1] if len(both) > 1 else 0.0) if both else 0.0
        lacking = other.quoted - names
        if siblings is not None and lacking:  # what all of a kind have is a word of their fix
            lacking = frozenset([name for name in lacking if siblings[name] < sizes[kind]])
        found.append(Shared(named, slotted, met, lacking))
    return found


def _weights(
    asked: ErrorNames, others: Sequence[Told], shared: Sequence[Set[int]], equal: Sequence[bool]
) -> dict[int, float]:
    """Return what the names of a question weigh, little what belongs to the wording."""
    same = [(names, other) for names, other, is_equal in zip(shared, others, equal, strict=True) if is_equal]
    if all(other.headed <= asked.weights.keys() for _, other in same):  # none is about another name
        return asked.weights
    constant = set.intersection(*(set(names) for names, _ in same))
    return {name: weight * CONSTANT if name in constant else weight for name, weight in asked.weights.items()}


def indexed_names(kept: bytes) -> set[int]:
    """Return the checksums of the names by which a lesson is looked up: in slots of its headline, or in its fix."""
    return {name for name, case in _split(kept).items() if case >= HEADLINE}


def still_lacking(fix: str, lacking: frozenset[int]) -> bool:
    """Return whether a fix, after names were put into it, quotes one of these names."""
    return any(_number(name) in lacking for name in _names([fix[:400]], _NAME, ASKED))


def _split(kept: bytes) -> dict[int, int]:
    return {name & ~_CASE: name & _CASE for name in memoryview(kept).cast("I")}


def _slot_names(shape: ErrorShape) -> list[str]:
    told = [_told(slot) for slot in shape.slots]
    return list(dict.fromkeys([*_names(told, _NAME, MAX_KEPT_NAMES), *_dotted(told)]))


def _told(slot: Slot) -> str:
    """Return what of a slot may be a name that matters: of a path its file, or whose package it is."""
    if slot.kind == "time":
        return ""
    return key_of(slot) if slot.kind == "path" else slot.value


def _lines(text: str) -> list[str]:
    """Return the lines of a text that are no stack frames, the last first."""
    return [line for line in reversed(text.splitlines()) if not _FRAME.match(line)][:MAX_LINES]


def anchor_of(shape: ErrorShape) -> str:
    """Return the longest part of a headline that nothing was masked in, by which its line is found again."""
    return max(_PLACEHOLDER.split(shape.template.removeprefix(shape.exception)), key=len).strip(" :'\"")


def _marked(lines: Sequence[str], most: int) -> list[str]:
    quoted = ["".join(found) for line in lines if _holds_quote(line) for found in _QUOTED.findall(line[:2_000])]
    found = [*_names(quoted, _NAME, most), *_names(lines, _MARKED, most)][: max(most, 0)]
    return [*found, *_dotted(lines)]


def _dotted(parts: Iterable[str]) -> list[str]:
    return _names([part for part in parts if "." in part], _DOTTED, DOTTED)


def _holds_quote(line: str) -> bool:
    return "'" in line or '"' in line or "`" in line


def _names(parts: Iterable[str], pattern: re.Pattern[str], most: int) -> list[str]:
    """Return the names in some texts, in small letters, each once, in order."""
    found: dict[str, None] = {}
    for part in parts:
        found.update(dict.fromkeys(map(str.lower, pattern.findall(part[:2_000]))))
        if len(found) > most:
            break
    found.pop("", None)
    return list(found)[:most]


def _number(name: str) -> int:
    return crc32(name.encode() if name.isascii() else name.encode("utf-8", "surrogatepass")) & _APART


def keys_of(shape: ErrorShape) -> tuple[str, ...]:
    """Return the slots that tell an error from its siblings, in order, in small letters; of paths the base name.

    Examples
    --------
    >>> slots = (Slot("path", "/srv/app/Config.yml"), Slot("number", "3"))
    >>> keys_of(ErrorShape("", "", "", slots, b"", False, False))
    ('config.yml',)
    """
    return _keys(shape.slots)


@lru_cache(4_096)
def _keys(slots: tuple[Slot, ...]) -> tuple[str, ...]:
    found = (key_of(slot) for slot in slots if slot.kind in KEYS)
    return tuple(key for key in found if key)


def key_of(slot: Slot) -> str:
    """Return a slot as a key, in small letters."""
    value = slot.value.strip().lower()
    if slot.kind == "path":
        found = _FILE.match(value)
        value = (found["path"] if found else value).replace("\\", "/").rstrip("/").rpartition("/")[2] or value
    return value[:200]


def digest(parts: Iterable[str]) -> int:
    """Return 63 bits of a hash of texts, as SQLite keeps numbers."""
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


def number(signature: bytes) -> int:
    """Return a signature as SQLite keeps it."""
    return int.from_bytes(signature[:8], "big") >> 1


def refill(fix: str, lesson: ErrorShape, asked: ErrorShape, question: str) -> str | None:
    """Return a fix with the names of the error that was asked about, ``None`` if it quotes one that has no counterpart.

    Parameters
    ----------
    fix : str
        The lesson's.
    lesson, asked : ErrorShape
        Of the lesson's error, and of the question.
    question : str
        Its text: a name that stands there needs no counterpart.

    A name that a shell would read as more than one plain word is no counterpart.

    Examples
    --------
    >>> from coherence.lessons.normal import normalise
    >>> asked = normalise("ModuleNotFoundError: No module named 'numpy'")
    >>> known = normalise("ModuleNotFoundError: No module named 'yaml'")
    >>> refill("pip install yaml", known, asked, ""), refill("pip install pyyaml", known, asked, "")
    ('pip install numpy', 'pip install pyyaml')
    """
    low = question.lower()
    partners = _partners(lesson, asked)
    changes: dict[str, str] = {}
    for at, slot in enumerate(lesson.slots):
        partner = partners.get(at)
        others = list(_forms(asked.slots[partner])) if partner is not None else []
        for form, value in _forms(slot):
            if value in changes or value in HERE or not _quotes(fix, value):
                continue
            if _quotes(low, value.lower()):
                changes[value] = value
                continue
            other = next((text for name, text in others if name == form and text), None)
            if other is None and " " in value:  # a command or a phrase, which says nothing of this error
                continue
            if other is None and not (asked.prose and partner is None):
                return None
            if other not in (None, value) and not _is_one_word(other, value):  # a command must stay the one it was
                return None
            changes[value] = value if other is None else other
    changes = {old: new for old, new in changes.items() if old != new}
    if not changes:
        return fix
    either = "|".join(re.escape(old) for old in sorted(changes, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{either})(?!\w)", lambda found: changes[found[0]], fix)


def _is_one_word(other: str | None, value: str) -> bool:
    """Return whether a shell reads a name as one plain word, and as an option only in place of one."""
    return other is not None and SAFE.fullmatch(other.lstrip("-") if value.startswith("-") else other) is not None


def _partners(lesson: ErrorShape, asked: ErrorShape) -> dict[int, int]:
    """Return which slot of the question stands where one of the lesson does."""
    if lesson.signature == asked.signature and len(lesson.slots) == len(asked.slots):
        return {at: at for at in range(len(lesson.slots))}
    found: dict[int, int] = {}
    for kind in dict.fromkeys(slot.kind for slot in lesson.slots):
        left = [at for at, slot in enumerate(lesson.slots) if slot.kind == kind]
        right = [at for at, slot in enumerate(asked.slots) if slot.kind == kind and _is_named(asked, slot)]
        if len(left) == len(right):
            found.update(zip(left, right, strict=True))
    return found


def _is_named(asked: ErrorShape, slot: Slot) -> bool:
    """Return whether a slot is a name for certain: in a description, a plain word may as well be a word."""
    return (
        not asked.prose
        or not slot.value.islower()
        or not slot.value.isalpha()
        or bool(re.search(rf"['\"`‘“]{re.escape(slot.value)}['\"`’”]", asked.text))
    )


def _forms(slot: Slot) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a fix may quote a slot."""
    value = slot.value.strip()
    if slot.kind in ("name", "version", "id"):
        yield "whole", value
        found = _TAGGED.match(value)
        if found and slot.kind == "name":
            yield "bare", found["name"]
    elif slot.kind == "number":
        if len(value) > 2:  # smaller ones stand in many fixes and mean something else
            yield "whole", value
    elif slot.kind == "path":
        found = _FILE.match(value)
        path = found["path"] if found else value
        yield "whole", path
        yield "base", basename(path.replace("\\", "/").rstrip("/"))
    elif slot.kind in ("url", "address"):
        yield "whole", value
        found = _HOST.match(value)
        if found:
            yield "host", found["host"]
            yield "port", found["port"] or ""


def _quotes(fix: str, value: str) -> bool:
    return len(value) > 1 and value in fix and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", fix) is not None
