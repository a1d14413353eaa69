"""Lessons as JSON lines: all of a store written, and read again, into the same or another store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import msgspec

from coherence.lessons.entries import LessonEntry, RefusedEntry, read_entries
from coherence.lessons.records import Known
from coherence.lessons.store import LessonStore
from coherence.lessons.table import PAGE, New, find_identity, read_lessons

CUT = "[…]"
"""Stands where a text was shortened: what its error is may not be told from the rest, so its shape is written too."""

BATCH = 256
"""Lessons that are kept in one transaction."""

MAX_REFUSALS = 50
"""Refused lines that are told one by one."""


class ImportReport(msgspec.Struct, kw_only=True):
    """What became of imported lessons."""

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
        for id in sorted(known):
            yield msgspec.json.encode(_plain(known[id])) + b"\n"


def _plain(known: Known) -> dict[str, Any]:
    return {
        "pattern": known.pattern,
        "error_text": known.error_text,
        "fix_text": known.fix_text,
        "tool": known.tool,
        "count": known.count,
        "helped": known.helped,
        "failed": known.failed,
        "created": known.created,
        "seen": known.seen,
        **({"shape": known.shape, "form": known.form} if CUT in known.error_text else {}),
    }


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
    batch: list[LessonEntry] = []
    count = 0
    for found in read_entries(source):
        if isinstance(found, RefusedEntry):
            report.refused += 1
            if len(report.refusals) < MAX_REFUSALS:
                report.refusals.append(found)
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


def _keep(store: LessonStore, entries: Sequence[LessonEntry], report: ImportReport) -> None:
    merged: dict[bytes, LessonEntry] = {}
    for entry in entries:
        identity = entry.new.identity
        merged[identity] = _larger(merged[identity], entry) if identity in merged else entry
    ids = {identity: find_identity(store.store, identity) for identity in merged}
    known = read_lessons(store.store, [id for id in ids.values() if id is not None])
    news: list[New] = []
    for identity, entry in merged.items():
        there = known.get(ids[identity] or 0)
        more = _added(entry) if there is None else _changed(entry, there)
        news += more
        report.added += there is None
        report.changed += there is not None and bool(more)
        report.same += there is not None and not more
    if news:
        store.add(news)


def _larger(one: LessonEntry, other: LessonEntry) -> LessonEntry:
    """Return one lesson for two that are the same."""
    first, second = one.new, other.new
    new = msgspec.structs.replace(
        first,
        count=max(first.count, second.count),
        helped=max(first.helped, second.helped),
        failed=max(first.failed, second.failed),
        ts=min(first.ts, second.ts),
    )
    return LessonEntry(new, max((seen for seen in (one.seen, other.seen) if seen is not None), default=None))


def _added(entry: LessonEntry) -> list[New]:
    """Return what makes an unknown lesson: a second record that counts nothing brings when it was last seen."""
    new, seen = entry.new, entry.seen
    later = seen is not None and seen > new.ts
    return [new, *([_counting(new, 0, 0, 0, seen)] if later and seen is not None else [])]


def _changed(entry: LessonEntry, known: Known) -> list[New]:
    """Return what a known lesson lacks."""
    new, seen = entry.new, known.seen if entry.seen is None else max(entry.seen, known.seen)
    count = max(new.count - known.count, 0)
    helped, failed = max(new.helped - known.helped, 0), max(new.failed - known.failed, 0)
    return [_counting(new, count, helped, failed, seen)] if count or helped or failed or seen > known.seen else []


def _counting(new: New, count: int, helped: int, failed: int, ts: float) -> New:
    return msgspec.structs.replace(new, count=count, helped=helped, failed=failed, ts=ts)
