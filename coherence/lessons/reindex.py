"""Lessons that another version of this package has kept, brought to the normal form of this one."""

from __future__ import annotations

from coherence.lessons import normal, table
from coherence.lessons.names import kept_names
from coherence.lessons.records import Known
from coherence.lessons.table import New
from coherence.store.store import Store
from coherence.store.transaction import Transaction

AT_ONCE = 64
"""Lessons that are renewed in one transaction."""

OTHER_FORM = "form < :form OR form > :form"


def any_outdated(store: Store) -> bool:
    """Tell whether any lesson is in the normal form of another version."""
    return bool(store.fetch(f"SELECT 1 FROM lessons WHERE {OTHER_FORM} LIMIT 1", {"form": normal.FORM}))  # noqa: S608


def renew(store: Store) -> int:
    """Derive shape, signature, slots, names and identity of such lessons anew from their errors; return how many.

    Lessons that become one are merged, and their counts added. A vector whose text changes is dropped, to be made
    anew. Killed half-way, it is gone on with by calling it again; other processes may do the same, record and ask.
    """
    renewed = 0
    while True:
        rows = store.fetch(
            f"SELECT id FROM lessons WHERE {OTHER_FORM} LIMIT :most",  # noqa: S608 - a constant
            {"form": normal.FORM, "most": AT_ONCE},
        )
        if not rows:
            return renewed
        known = table.read_lessons(store, [row[0] for row in rows])
        made = [(lesson, _derived(lesson)) for lesson in known.values()]
        renewed += len(made)
        with store.transaction() as transaction:
            for lesson, new in made:
                _renew(transaction, lesson, new)


def _derived(lesson: Known) -> New:
    """Return what the normal form of this version makes of an error; where it makes nothing of it, the old shape."""
    found = normal.normalise(lesson.error_text)
    shape = found if found.text.strip() else lesson.shape
    return New(
        pattern=lesson.pattern,
        error_text=lesson.error_text,
        fix_text=lesson.fix_text,
        tool=lesson.tool,
        shape=shape,
        names=kept_names(shape, lesson.error_text, lesson.fix_text),
        ts=lesson.created,
    )


def _renew(transaction: Transaction, lesson: Known, new: New) -> None:
    id = lesson.id
    if not transaction.execute("SELECT 1 FROM lessons WHERE id = ? AND form <> ?", (id, normal.FORM)):
        return  # another process has renewed or removed it meanwhile
    same = transaction.execute("SELECT id FROM lessons WHERE identity = ?", (new.identity,))
    if same:
        kept, gone = sorted((id, int(same[0][0])))  # the older id stays: someone may have noted it
        _merge(transaction, kept, gone)
        id = kept
    texts = transaction.execute("SELECT json_extract(shape, '$.text') FROM lessons WHERE id = ?", (id,))
    if texts != [(new.shape.text,)]:
        transaction.execute("DELETE FROM lesson_vectors WHERE lesson_id = ?", (id,))
    table.set_shape(transaction, id, new)


def _merge(transaction: Transaction, kept: int, gone: int) -> None:
    """Make one lesson of two: with the counts, origins and outcomes of both."""
    for name in ("lesson_origins", "lesson_outcomes"):
        transaction.execute(f"UPDATE OR IGNORE {name} SET lesson_id = ? WHERE lesson_id = ?", (kept, gone))  # noqa: S608
    transaction.execute(
        "UPDATE lessons SET count = lessons.count + other.count, helped = lessons.helped + other.helped, "
        "failed = lessons.failed + other.failed, retired = lessons.retired AND other.retired, "
        "created = min(lessons.created, other.created), seen = max(lessons.seen, other.seen), "
        "used = max(lessons.used, other.used) FROM lessons AS other WHERE lessons.id = ? AND other.id = ?",
        (kept, gone),
    )
    transaction.execute("DELETE FROM lessons WHERE id = ?", (gone,))
