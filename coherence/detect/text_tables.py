"""The table within a text: lines of cells under a head, whatever parts the cells and whatever stands around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from coherence.core.lazy import lazy_regex

MAX_LINES = 60
"""Lines of a text that are looked at."""

BEFORE_HEAD = 3
"""Lines that may stand before the head."""

MAX_WIDTH = 400
"""Characters of a line of which the cells have fixed places."""

MAX_CELL = 60
"""Characters of a cell."""

Table: TypeAlias = tuple[list[str], list[list[str]]]
"""Head and rows; all of one length."""

_RULE = lazy_regex(r"[\s|:+=-]{3,300}")
_BAR, _TAB, _WIDE, _SEMICOLON, _COMMA = map(lazy_regex, (r"\|", r"\t", r"\s{2,40}", ";", ","))
_FIXED = lazy_regex(r"\S+(?: \S+)*")


def table_of(lines: Sequence[str]) -> Table | None:
    r"""Return the head and the rows of a table, ``None`` if there is none.

    Examples
    --------
    >>> table_of("Sunrise in Bergen\nday    rise   set\n12     08:19  15:28\n13     08:15  15:33".split("\n"))
    (['day', 'rise', 'set'], [['12', '08:19', '15:28'], ['13', '08:15', '15:33']])
    >>> table_of(["Dear Ann,", "it was sent."]) is None
    True
    """
    chosen = [line for line in islice(lines, MAX_LINES) if line.strip() and _RULE.fullmatch(line) is None]
    tables = (found for found in _candidates(chosen) if _is_table(*found, whole=len(found[1]) + 1 == len(chosen)))
    return next(tables, None)


def _candidates(lines: Sequence[str]) -> Iterator[Table]:
    for sign in (_BAR, _TAB, _WIDE, _SEMICOLON, _COMMA):
        if sign is _WIDE:
            yield from _fixed(lines)
        cells = [
            [cell.strip() for cell in sign.split(line.strip().strip("|").strip() if sign is not _TAB else line)]
            for line in lines
        ]
        for begin in range(min(BEFORE_HEAD, len(cells))):
            width = len(cells[begin])
            end = next((at for at in range(begin, len(cells)) if len(cells[at]) != width), len(cells))
            if width > 1 and end - begin > 1:
                yield cells[begin], cells[begin + 1 : end]
            elif width > 1 and lines[begin][:1].isspace():  # the first column has no name
                end = next((at for at in range(begin + 1, len(cells)) if len(cells[at]) != width + 1), len(cells))
                if end - begin > 2:
                    yield ["", *cells[begin]], cells[begin + 1 : end]


def _fixed(lines: Sequence[str]) -> Iterator[Table]:
    """Yield tables whose cells begin where the names of their columns do."""
    for begin in range(min(BEFORE_HEAD, len(lines))):
        heads = [(found[0], found.start()) for found in _FIXED.finditer(lines[begin][:MAX_WIDTH])]
        if heads and heads[0][1]:
            heads.insert(0, ("", 0))
        starts = [start for _, start in heads]
        if len(heads) < 2 or len(lines[begin]) > MAX_WIDTH:
            continue
        rows = []
        for line in lines[begin + 1 :]:
            if len(line) <= starts[1] or any(line[at - 1 : at].strip() for at in starts[1:]) or line[:1].isspace():
                break
            rows.append([line[at:to].strip() for at, to in zip(starts, [*starts[1:], MAX_WIDTH], strict=True)])
        if rows:
            yield [name for name, _ in heads], rows


def _is_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool) -> bool:
    """Tell whether a line is a head: names that are no values of their columns, over some that are alike."""
    if len(rows) < (1 if whole else 2) or len({*head}) < len(head) or not all(head[1:]):
        return False
    if any(len(cell) > MAX_CELL for cell in chain(head, *rows)) or any(name[:1].isdigit() for name in head):
        return False
    columns = list(zip(*rows, strict=True))
    if any(name in column for name, column in zip(head, columns, strict=True)):
        return False
    numeric = [all(cell[:1].isdigit() or cell[:1] in "-+$€£" for cell in column) for column in columns]
    if any(
        any(map(str.isdigit, name)) and not number and (at or " " not in name)
        for at, (name, number) in enumerate(zip(head, numeric, strict=True))
    ):
        return False
    return any(any(map(str.isdigit, cell)) for cell in chain(*rows)) or any(
        len({*column}) < len(column) for column in columns
    )
