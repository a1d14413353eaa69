"""Lessons as JSON lines: all of a store written, and read again, into the same or another store.

A line is an object with ``pattern``, ``error_text``, ``fix_text`` and, where known, ``tool``, ``count``, ``helped``,
``failed``, ``created`` and ``seen``. Other programs' ``error``, ``fix`` and ``ts`` (Unix seconds, milliseconds or ISO
8601) are read as well, and one JSON array of such objects in place of lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO

import msgspec

from coherence.core.validation import check_count, check_number, shown
from coherence.lessons.intake import make_new
from coherence.lessons.store import LessonStore
from coherence.lessons.table import FIELDS, PAGE, New, find_identity, read_lessons

MAX_BYTES = 64_000_000
"""Size of one line, and of a file that is one JSON array: these are held in memory."""

MAX_COUNT = 10**12
"""The largest number of records, successes or failures that is believed."""

LATEST = 1e11
"""Unix seconds (the year 5138) from which a number is taken for milliseconds."""

BATCH = 256
"""Lessons that are kept in one transaction."""

MAX_REFUSALS = 50
"""Refused lines that are reported one by one."""


class RefusedEntry(msgspec.Struct, frozen=True):
    """A line that could not be read as a lesson."""

    line: int
    """Counted from 1; in a JSON array the place of the lesson."""
    why: str


def read_entries(source: IO[bytes]) -> Iterator[New | RefusedEntry]:
    r"""Yield the lessons of a file, and its lines that are none.

    Examples
    --------
    >>> import io
    >>> lines = b'{"pattern": "p", "error": "boom", "fix": "calm down", "ts": 5}\n{"pattern": "p"}\nwhat?\n'
    >>> found = list(read_entries(io.BytesIO(lines)))
    >>> [each.why if isinstance(each, RefusedEntry) else each.fix_text for each in found]
    ['calm down', 'error_text is missing', 'not JSON: Expecting value']
    """
    first = True
    for number, line in enumerate(iter(lambda: source.readline(MAX_BYTES + 1), b""), 1):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if len(line) > MAX_BYTES:  # where it ends, and so where the next begins, is not known
            yield RefusedEntry(number, f"longer than {MAX_BYTES:,} bytes; nothing after it was read")
            return
        if first and (line.lstrip().startswith(b"[") or line.strip() == b"{"):
            yield from _read_whole(number, line + source.read(MAX_BYTES))
            return
        if line.strip():
            first = False
            yield _read(number, line)


def _read_whole(number: int, data: bytes) -> Iterator[New | RefusedEntry]:
    """Yield the lessons of one JSON array, or one that takes several lines."""
    if len(data) > MAX_BYTES:
        yield RefusedEntry(number, f"one JSON value of more than {MAX_BYTES:,} bytes; write one lesson a line instead")
        return
    try:
        value = _decoded(data)
    except ValueError as error:
        yield RefusedEntry(number, str(error))
        return
    for place, each in enumerate(value if isinstance(value, list) else [value], 1):
        yield _read(place, each)


def _decoded(data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error.msg if isinstance(error, json.JSONDecodeError) else error}") from None


def _read(number: int, given: object) -> New | RefusedEntry:
    """Read a lesson, a line or a JSON value."""
    try:
        return _entry(_decoded(given) if isinstance(given, bytes) else given)
    except (TypeError, ValueError) as error:
        return RefusedEntry(number, str(error))


def _entry(value: object) -> New:
    if not isinstance(value, dict):
        raise TypeError(f"a lesson must be a JSON object, not {shown(value)}")
    seen = _time(value, "seen", "ts")
    created = _time(value, "created")
    tool = _either(value, "tool")
    new = make_new(
        pattern=_needed(value, "pattern"),
        error_text=_needed(value, "error_text", "error"),
        fix_text=_needed(value, "fix_text", "fix"),
        tool="" if tool is None else tool,
        origin=None,
        ts=seen if created is None else created,
    )
    counts = {
        "count": check_count("count", value.get("count", 1), least=1, most=MAX_COUNT),
        "helped": check_count("helped", value.get("helped", 0), most=MAX_COUNT),
        "failed": check_count("failed", value.get("failed", 0), most=MAX_COUNT),
    }
    return msgspec.structs.replace(new, seen=seen, **counts)


def _either(value: Mapping[str, object], *names: str) -> object:
    """Return the first of these fields that holds something."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _needed(value: Mapping[str, object], *names: str) -> object:
    found = _either(value, *names)
    if found is None:
        raise ValueError(f"{names[0]} is missing")
    return found


def _time(entry: Mapping[str, object], *names: str) -> float | None:
    """Return the first of these fields as Unix seconds; a time without a zone is UTC."""
    field = next((name for name in names if entry.get(name) is not None), None)
    if field is None:
        return None
    value = entry[field]
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(f"{field} must be Unix seconds or ISO 8601, not {shown(value)}") from None
    number = check_number(field, value, least=-LATEST * 1e3, most=LATEST * 1e3)
    return number if abs(number) < LATEST else number / 1e3


class ImportReport(msgspec.Struct, kw_only=True):
    """The numbers of lessons that an import added, changed and refused."""

    added: int = 0
    """Lessons that were unknown."""
    changed: int = 0
    """Known ones of which something more was learned: a larger number or a later time."""
    same: int = 0
    """Known ones of which nothing new was said."""
    refused: int = 0
    """Lines that could not be read."""
    refusals: list[RefusedEntry] = []
    """The first 50 of these."""


def export_lessons(store: LessonStore) -> Iterator[bytes]:
    """Yield every lesson as a JSON line, in the order in which they were first recorded; retired ones too.

    Where they were learned stays behind: event numbers mean nothing in another store. Nothing is held open in between.

    Examples
    --------
    >>> import io, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> one, other = (LessonStore(f"{folder.name}/{name}.db", embedder=False) for name in ("one", "other"))
    >>> with one, other:
    ...     id = one.record(pattern="NoModule", error_text="No module named 'yaml'", fix_text="pip install pyyaml")
    ...     lines = b"".join(export_lessons(one))
    ...     report = import_lessons(other, io.BytesIO(lines))
    ...     lines == b"".join(export_lessons(other)), report.added
    (True, 1)
    >>> folder.cleanup()
    """
    after = 0
    while True:
        rows = store.store.fetch("SELECT id FROM lessons WHERE id > ? ORDER BY id LIMIT ?", (after, PAGE))
        if not rows:
            return
        after = rows[-1][0]
        known = read_lessons(store.store, [row[0] for row in rows])
        for id in sorted(known):  # neither its number nor its form means anything to another store
            yield msgspec.json.encode({name: getattr(known[id], name) for name in FIELDS[1:-1]}) + b"\n"


def import_lessons(
    store: LessonStore, source: IO[bytes], on_progress: Callable[[int], object] | None = None
) -> ImportReport:
    """Keep the lessons of a file. What cannot be read is reported, everything else is kept.

    A lesson that is known already keeps the larger of both counts, of both numbers of successes and of failures, and
    the later time. So a file may be imported twice, and stores may be merged in any order. What is imported is kept a
    few hundred lessons at a time: after a crash, import the file again.

    Parameters
    ----------
    store : LessonStore
        Where they are kept.
    source : binary file
        JSON lines, or one JSON array.
    on_progress : callable, optional
        Called with the number of lessons that were read so far.

    Raises
    ------
    StoreError
        The file of the store cannot be written; what was kept before stays.
    """
    report = ImportReport()
    batch: list[New] = []
    count = 0
    for found in read_entries(source):
        if isinstance(found, RefusedEntry):
            report.refused += 1
            report.refusals += [found] * (len(report.refusals) < MAX_REFUSALS)
            continue
        batch.append(found)
        count += 1
        if len(batch) == BATCH:
            _keep(store, batch, report)
            batch = []
            if on_progress is not None:
                on_progress(count)
    _keep(store, batch, report)
    return report


def _keep(store: LessonStore, batch: Sequence[New], report: ImportReport) -> None:
    ids = [find_identity(store.store, new.identity) for new in batch]
    before = read_lessons(store.store, [id for id in ids if id is not None])
    after = read_lessons(store.store, store.add(batch, merge=True))
    for id, lesson in after.items():
        report.added += id not in before
        report.changed += id in before and before[id] != lesson
        report.same += before.get(id) == lesson
