"""Lessons as JSON lines: all of a store written, and read again, into the same or another store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import msgspec

from coherence.lessons.entries import RefusedEntry, read_entries
from coherence.lessons.records import Known
from coherence.lessons.store import LessonStore
from coherence.lessons.table import PAGE, New, find_identity, read_lessons

CUT = "[…]"
"""Stands where a text was shortened: the rest may not show what its error is, so its shape is written too."""

BATCH = 256
"""Lessons that are kept in one transaction."""

MAX_REFUSALS = 50
"""Refused lines that are reported one by one."""


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
