r"""Secrets that are known by their look: the kinds of ``secret_shapes.toml``, and the places where they stand.

Nearly no text holds one, so what every text pays is little: a secret has a *run* of 16 letters, digits, ``_`` and ``-``
somewhere, and runs are found without a look at each character. Only where one begins, prefixes are compared.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coherence.core.lazy import lazy_regex
from coherence.core.plain_view import Found, without

RUN = 16
"""Characters of a run; the longest of every secret has as many or more."""

MAX_OPEN = 400
"""Characters at the end of a text in which a secret may begin that the next text goes on with."""

MAX_REST = 4_000
"""Characters of the next text that are looked at for the rest of it."""

MAX_ROW = 80
"""Characters at the end of a line in which a secret may begin that the next line goes on with."""

MAX_OWNER = 12
"""Characters before a prefix that an expression looks at."""

MAX_LEAD = 60
"""Characters before the first run of a line in which the line before is looked at."""

LEAST_PREFIX = 3
"""Characters of a prefix that is seldom anything else; behind a shorter one, twice as much must be there."""

NEAR = 2_000
"""Characters before and behind a break of a line in which both lines are looked for."""

FRAME = 4
"""Characters by which a line that was wrapped may be shorter than the next: the frame of a box."""

LEAST_OPEN = 8
"""Characters of a secret's body, at the end of a text, of which the kind is known though the rest is missing."""

_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_LETTERS = _WORD.decode()
_RUNS = bytes(ord("a") if code in _WORD else ord(" ") for code in range(256))
_LONG = b"a" * RUN
_SPACE = ord(" ")
_WITHIN, _MARKS, _ESCAPING = frozenset(b"./~+!$"), frozenset(b":.~\\%[;"), "\\%[;"
"""Signs before a run: of a secret that has begun; of an owner's name; of an escape that ends within the run."""
_LEADS = frozenset(b"\n\\ \t|>#*?")
_DOTTED_SIGNS, _SLASHED_SIGNS = _LETTERS + ".~", _LETTERS + "+/!$="
_ALL_SIGNS = _LETTERS + ".~+/!$=:"
_DOTTED, _SLASHED = _WORD + b".~", _WORD + b"+/!$"
"""Characters that may stand within a secret beside a run."""

_PLAIN = lazy_regex(r"(?:[A-Z]++(?![a-z](?![a-z]))|[a-z]{2,}+|[_.,:!?-])++", re.ASCII)
"""Words, also in camelCase; base64 has single small letters between capitals."""
_NUMBER = lazy_regex(r"[$€£]?[+-]?\d[\d.,_:/-]*(?:e[+-]?\d+)?[a-z%]{0,3}(?:/\w{1,8})?", re.IGNORECASE)
_NAME = lazy_regex(r"(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+(?![a-z])|[_.,:!?-])++", re.ASCII)
"""Words as in names of source code; random letters have single ones in another case."""
_MASK = lazy_regex(r"[xX]{6}|\*{3}|\.{3}")
_GLUED = lazy_regex(
    r"(?<=\\)(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{3}|[nrtbfv])|(?<=%)[0-9A-Fa-f]{2}|(?<=[\[;])\d{0,3}m"
)
"""Letters and digits that belong to an escape, not to the word behind them."""
_LINE_BREAK = (
    r"(?:[ \t]{0,200}[|│┃])?(?:\r?\n|(?:\\{1,8}r)?\\{1,8}n)(?:[ \t]|\\{1,8}t){0,200}(?:[|│┃>#*+][ \t]{1,80}|[│┃])?"
)
_BREAK = lazy_regex(_LINE_BREAK)
"""Break of a line, also as JSON writes it, with an indentation and the frame of a box."""
_BROKEN = lazy_regex(rf"[\w+/=.~:!$-]{{1,4000}}+(?:{_LINE_BREAK}[\w+/=.~:!$-]{{1,4000}}+){{1,24}}", re.ASCII)
_SIGNS = lazy_regex(r"[\w+/=.~:!$-]{0,400}+", re.ASCII)
_WORD_HERE = lazy_regex(r"[\w-]+", re.ASCII)


class _Shape(NamedTuple):
    kind: str
    prefix: str
    before: int
    """Characters of the prefix that stand before the run; 0 for a prefix that begins a secret."""
    whole: re.Pattern[str]
    """A secret as long as its vendor gives it out."""
    any_length: re.Pattern[str]


def is_random(value: str) -> bool:
    """Tell whether a value is neither words nor a number.

    Examples
    --------
    >>> [is_random(value) for value in ("correct-horse", "getUserName", "12.5", "a1B2c3")]
    [False, False, False, True]
    """
    return not _PLAIN.fullmatch(value) and (not _NUMBER.fullmatch(value) or (value.isdigit() and len(value) >= 16))


@cache
def kinds() -> dict[str, tuple[str, ...]]:
    """Return the prefixes of each kind.

    Examples
    --------
    >>> kinds()["npm-token"]
    ('npm_',)
    """
    return {kind: tuple(prefix for prefix, _ in _lines(lines)) for kind, lines in _table().items()}


def _table() -> dict[str, str]:
    groups = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {kind: lines for group in groups.values() for kind, lines in group.items()}


def _lines(lines: str) -> Iterator[tuple[str, str]]:
    for line in lines.split("\n"):
        prefixes, _, body = line.partition(" ")
        yield from ((prefix, body) for prefix in prefixes.split("|") if prefix)


class _Index(NamedTuple):
    begun: dict[str, list[_Shape]]
    """By the first two characters of the prefix; longer prefixes first."""
    inside: dict[str, list[_Shape]]
    """By the last sign of the prefix that cannot stand in a run."""


@cache
def _index() -> _Index:
    index = _Index({}, {})
    for kind, lines in _table().items():
        for prefix, body in _lines(lines):
            inside, literal = prefix.startswith("…"), prefix.removeprefix("…")
            strict = body.endswith("(?![\\w-])")
            loose = body if strict else re.sub(r"\{(\d+),\d+\}", r"{\1,}+", body)
            start = re.escape(literal)
            patterns = (lazy_regex(f"{start}{each}(?![A-Za-z0-9])", re.ASCII) for each in (body, loose))
            if inside:
                before = len(literal.rstrip(_LETTERS))
                index.inside.setdefault(literal[before - 1], []).append(_Shape(kind, literal, before, *patterns))
            else:
                index.begun.setdefault(literal[:2], []).append(_Shape(kind, literal, 0, *patterns))
    for shapes in index.begun.values():
        shapes.sort(key=lambda shape: -len(shape.prefix))
    return index


def find_shapes(text: str, data: bytes) -> Iterator[Found]:
    """Yield the secrets of a text that are known by their look.

    Parameters
    ----------
    text : str
        Any text.
    data : bytes
        The same with one byte for each character.
    """
    runs = data.translate(_RUNS)
    at = runs.find(_LONG)
    begun = _index().begun if at >= 0 else {}
    done, tried = 0, -1
    while at >= 0:
        before = data[at - 1] if at else _SPACE
        first = at  # where the word begins that the run belongs to
        if before in _WITHIN:
            begin = max(0, at - MAX_OPEN)
            first = begin + len(data[begin:at].rstrip(_DOTTED if before in b".~" else _SLASHED))
        found: list[Found] = []
        if text[at : at + 2] in begun or before in _MARKS or data[at] in b"-_":
            found += _shapes_at(text, at)
            if data[at] in b"-_":  # emphasis of Markdown, or a flag
                word = data[at : at + MAX_OPEN]
                found += _shapes_at(text, at + len(word) - len(word.lstrip(b"-_")))
        if first != tried:
            tried = first
            ahead = data[first - 1] if first else _SPACE
            if first != at and (text[first : first + 2] in begun or ahead in _MARKS):
                found += _shapes_at(text, first)
            if ahead in _LEADS and first > 1 and (ahead in b"\n\\" or data[first - 2] in _LEADS):
                found += _begun_before(text, first)
        for start, end, kind in found:
            if start >= done:
                done = end
                yield start, end, kind
        end = runs.find(b" ", at + RUN)
        at = runs.find(_LONG, end) if end >= 0 else -1


def _shapes_at(text: str, start: int) -> list[Found]:
    index = _index()
    if text[start - 1 : start] in _ESCAPING and (glued := _GLUED.match(text, start)):
        start = glued.end()
    places = [
        (start, start, shape)
        for shape in index.begun.get(text[start : start + 2], ())
        if text.startswith(shape.prefix, start)
    ]
    for shape in index.inside.get(text[start - 1 : start], ()):
        first = start - shape.before
        if first >= 0 and text.startswith(shape.prefix, first):
            places.append((start, first, shape))
    return [(at, end, shape.kind) for at, first, shape in places if (end := _end(shape, text, first))]


def _end(shape: _Shape, text: str, start: int) -> int | None:
    """Return where a secret ends that begins with a prefix; ``None`` if it is none."""
    found = shape.any_length.match(text, start)
    end = found.end() if found else _SIGNS.match(text, start).end()  # type: ignore[union-attr]  # it matches the empty text
    if _BREAK.match(text, end) and (over := _end_over_lines(shape, text, start)):
        return over
    return end if found and _is_secret(found[0][len(shape.prefix) :]) else None


def _is_secret(body: str) -> bool:
    return len(set(body)) >= 4 and not _MASK.search(body) and not _NAME.fullmatch(body)


def _begun_before(text: str, at: int) -> Iterator[Found]:
    """Yield the secret whose first few characters end the line before that which a run begins."""
    if text[at - 1] == "\\":
        if text[at] != "n":
            return
        at += 1
    first, line = max(0, at - MAX_LEAD), at - 1
    if text[line] != "\n":
        line = max(text.rfind("\n", first, at), text.rfind("\\n", first, at))
    if line < 1:
        return
    index, begin = _index(), max(0, line - MAX_ROW)
    row = text[begin:line].rstrip("\\r \t|│┃")
    for signs in (_DOTTED_SIGNS, _SLASHED_SIGNS):
        word = row[len(row.rstrip(signs)) :]
        joined = word + text[at : at + RUN]
        for shape in index.begun.get(joined[:2], ()) if word else ():
            start = begin + len(row) - len(word)
            if joined.startswith(shape.prefix) and (end := _end_over_lines(shape, text, start)):
                yield start, end, shape.kind
    for shape in _inside(row):
        start = begin + row.rfind(shape.prefix)
        if start >= begin and (end := _end_over_lines(shape, text, start)):
            yield start + shape.before, end, shape.kind


def _end_over_lines(shape: _Shape, text: str, start: int) -> int | None:
    """Return where a secret ends that lines break; ``None`` if there is none, or if it does not go on.

    A part that is too short for a secret of the kind is one with the next line. One that is long enough goes on where
    its line is as long as the next, which begins with something random: a text was wrapped there.
    """
    broken = _BROKEN.match(text, start)
    if not broken:
        return None
    # An owner's name before the prefix is not a part of it, but expressions may look at it.
    owner = min(start, MAX_OWNER) if shape.before and "\n" not in text[max(0, start - MAX_OWNER) : start] else 0
    begin = start - owner
    view = without(text[begin : broken.end()], _BREAK)
    end, line = None, owner
    for joint in (*view.joints, len(view.text)):
        if end is not None and (end < line or not _goes_on(text, begin + view.span(0, line)[1], view.text[line:joint])):
            break
        found = shape.whole.match(view.text, owner, joint)
        if found and found.end() < joint and view.text[found.end()] in "-_":
            found = None  # it would end within a word
        if end is not None and not found:
            break
        end, line = found.end() if found else None, joint
    if end is None or end <= view.joints[0] or not _is_secret(view.text[owner + len(shape.prefix) : end]):
        return None
    return begin + view.span(0, end)[1]


def _goes_on(text: str, at: int, piece: str) -> bool:
    """Tell whether a line was wrapped within a word, by what stands around the place and what the next begins with."""
    word = _WORD_HERE.match(piece)
    if word is None or len(word[0]) < 4 or _NAME.fullmatch(word[0]) or _is_short_number(word[0]):
        return False
    if any(piece.startswith(shape.prefix) for shape in _index().begun.get(piece[:2], ())):
        return False  # the next of a list of secrets
    here = _BREAK.match(text, at)
    next_line = here.end() if here else at
    return at - _line_begin(text, at) >= _line_end(text, next_line) - next_line - FRAME


def _line_begin(text: str, at: int) -> int:
    first = max(0, at - NEAR)
    found = [text.rfind(sign, first, at) + len(sign) for sign in ("\n", "\\n")]
    return max(first, *(place for place in found if place > first), 0)


def _line_end(text: str, at: int) -> int:
    last = min(len(text), at + NEAR)
    return min([last, *(place for sign in ("\n", "\\n") if (place := text.find(sign, at, last)) >= 0)])


def _is_short_number(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word)) and not (word.isdigit() and len(word) >= 8)


def open_at_end(text: str) -> str:
    """Return the end of a text with which a secret may begin that the next text goes on with; empty if there is none.

    Examples
    --------
    >>> open_at_end("the key is gl" + "pat-a1B2"), open_at_end("the end")
    ('glpat-a1B2', '')
    """
    last = text[-MAX_OPEN:]
    for signs in (_DOTTED_SIGNS, _SLASHED_SIGNS, _ALL_SIGNS):
        word = last[len(last.rstrip(signs)) :].lstrip("-_.~+/!$=:")
        shapes = _index().begun.get(word[:2], ()) if len(word) > 1 else ()
        if any(shape.prefix.startswith(word) for shape in shapes) or any(_prefixes_in(word)):
            return word
    return ""


def _inside(text: str) -> Iterator[_Shape]:
    """Yield the shapes of which a sign within the prefix stands in a text."""
    return (shape for sign, shapes in _index().inside.items() if sign in text for shape in shapes)


def _prefixes_in(word: str) -> Iterator[tuple[int, _Shape]]:
    """Yield where a prefix stands in a word that may be a part of a secret."""
    for shape in _index().begun.get(word[:2], ()):
        if word.startswith(shape.prefix):
            yield 0, shape
    for shape in _inside(word):
        if (at := word.find(shape.prefix)) >= 0:
            yield at, shape


def head_of(word: str) -> tuple[int, str] | None:
    """Return where in a word a secret begins whose rest is missing, and its kind, if enough of it is there to be one.

    Examples
    --------
    >>> head_of("gl" + "pat-a1B2c3D4e5"), head_of("gl" + "pat-a1B2")
    ((0, 'gitlab-token'), None)
    """
    for at, shape in _prefixes_in(word):
        body = word[at + len(shape.prefix) :]
        least = LEAST_OPEN if len(shape.prefix) >= LEAST_PREFIX else 2 * LEAST_OPEN
        if len(body) >= least and _is_secret(body):
            return at + shape.before, shape.kind
    return None


def end_of_rest(head: str, text: str) -> tuple[int, str] | None:
    """Return where in a text a secret ends that begins at the end of the text before, and its kind.

    Examples
    --------
    >>> end_of_rest("gl" + "pat-a1B2", "c3D4e5F6g7H8i9J0 is it")
    (16, 'gitlab-token')
    """
    joined = head + text[:MAX_REST]
    for at, shape in _prefixes_in(joined):
        found = shape.whole.match(joined, at)
        if found is None or found.end() <= len(head) or not _is_secret(found[0][len(shape.prefix) :]):
            continue
        rest = _WORD_HERE.match(text)
        finished = shape.whole.fullmatch(head, at) is not None
        if not finished or (rest is not None and len(rest[0]) >= 4 and is_random(rest[0])):
            return found.end() - len(head), shape.kind
    return None
