"""The tables of lessons: what is written and read, in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from coherence.lessons import normal
from coherence.lessons.names import digest, keys_of, number, told_names
from coherence.lessons.normal import ErrorShape
from coherence.lessons.records import Known, Lesson, Origin
from coherence.store.store import Store
from coherence.store.transaction import Transaction

FIELDS = ("id", "pattern", "error_text", "fix_text", "tool", "count", "helped", "failed", "created", "seen", "form")
"""Columns that a :class:`Known` has under the same name."""

COLUMNS = f"retired, shape, {', '.join(FIELDS)}"

AMONG = "{} IN (SELECT value FROM json_each(?))"
"""Condition on a column to be among :func:`json_ids`."""

PAGE = 500

MAX_ORIGINS, MAX_OUTCOMES = 32, 128
"""Origins and outcomes of one lesson that are kept, the newest; its counts go on."""

FORGET = (
    "DELETE FROM {0} WHERE lesson_id = :id AND rowid NOT IN "
    "(SELECT rowid FROM {0} WHERE lesson_id = :id ORDER BY rowid DESC LIMIT :most)"
)

MAX_REJECTED = 100_000
"""Origins of lessons that somebody removed, that are remembered, the newest."""

RETIRE_AFTER = 4
"""Failures from which a fix that helped in less than a fifth of all cases is no longer offered."""

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(ErrorShape)
_SEQS = msgspec.json.Decoder(tuple[int, ...])


class New(msgspec.Struct, frozen=True):
    """A lesson that is to be kept."""

    pattern: str
    error_text: str
    fix_text: str
    tool: str
    shape: ErrorShape
    names: bytes
    """As :func:`~coherence.lessons.names.kept_names` gives them."""
    ts: float
    """Time of its first record, Unix seconds."""
    origin: Origin | None = None
    seen: float | None = None
    """Time of its last record; ``None``: ``ts``."""
    count: int = 1
    helped: int = 0
    failed: int = 0

    @property
    def identity(self) -> bytes:
        """A digest that equal lessons share: of shape, names, tool and fix, in one normal form."""
        parts = (
            str(normal.FORM),
            self.shape.signature.hex(),
            *keys_of(self.shape),
            "",
            self.tool.lower(),
            " ".join(self.fix_text.split()),
        )
        return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


class LessonState(msgspec.Struct, frozen=True):
    """The counts and numbers that tell how far the tables are."""

    count: int
    token: str
    """Changes whenever vectors are made anew."""
    fingerprint: str | None
    dimensions: int | None
    newest: int
    """Number of the newest vector that was ever there."""


def read_state(store: Store) -> LessonState:
    """Return how far the tables are."""
    rows = store.fetch(
        "SELECT count, token, fingerprint, dimensions, "
        "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'lesson_vectors') FROM lesson_state"
    )
    return LessonState(*rows[0])


def find_identity(store: Store, identity: bytes) -> int | None:
    """Return the id of a lesson that is there already."""
    rows = store.fetch("SELECT id FROM lessons WHERE identity = ?", (identity,))
    return int(rows[0][0]) if rows else None


def find_vector(store: Store, identity: bytes) -> bytes | None:
    """Return the vector of a lesson that is there already, ``None`` if it has none or there is no such lesson."""
    rows = store.fetch(
        "SELECT vector FROM lesson_vectors WHERE lesson_id = (SELECT id FROM lessons WHERE identity = ?)", (identity,)
    )
    return bytes(rows[0][0]) if rows else None


def add(transaction: Transaction, new: New, cap: int) -> int:
    """Keep a lesson, or count it once more if it is there; return its id. Makes room first if the cap is reached.

    Of events whose lesson somebody removed nothing is kept or counted: then the id may be 0.
    """
    origin = new.origin
    known = transaction.execute("SELECT id FROM lessons WHERE identity = ?", (new.identity,))
    if known and origin is not None and origin.seqs:  # one success may solve two errors: the lesson counts too
        counted = transaction.execute(
            "SELECT 1 FROM lesson_origins WHERE agent = ? AND session = ? AND seq = ? AND lesson_id = ?",
            (origin.agent, origin.session, origin.seqs[-1], known[0][0]),
        )
        if counted:  # the same events again, after a crash between two writes
            return int(known[0][0])
    if origin is not None and _is_rejected(transaction, origin):
        return int(known[0][0]) if known else 0
    used = tick(transaction)
    if known:
        id = int(known[0][0])
        transaction.execute(
            "UPDATE lessons SET count = count + ?, helped = helped + ?, failed = failed + ?, seen = max(seen, ?), "
            "used = ?, retired = retired AND ? WHERE id = ?",
            # What is recorded once more has worked once more.
            (new.count, new.helped, new.failed, _seen(new), used, bool(new.helped or new.failed), id),
        )
    else:
        make_room(transaction, cap)
        id = _insert(transaction, new, used)
    if new.helped or new.failed:
        _judge(transaction, id)
    if origin is not None and origin.seqs:
        transaction.execute(
            "INSERT INTO lesson_origins (agent, session, seq, lesson_id, seqs) VALUES (?, ?, ?, ?, ?)",
            (origin.agent, origin.session, origin.seqs[-1], id, _ENCODER.encode(origin.seqs).decode()),
        )
        transaction.execute(FORGET.format("lesson_origins"), {"id": id, "most": MAX_ORIGINS})
    return id


def merge(transaction: Transaction, new: New, cap: int) -> int:
    """Keep a lesson of another store; a known one gets the larger of both counts and the later time. Return its id."""
    known = transaction.execute("SELECT id FROM lessons WHERE identity = ?", (new.identity,))
    if not known:
        return add(transaction, new, cap)
    id = int(known[0][0])
    transaction.execute(
        "UPDATE lessons SET count = max(count, :count), helped = max(helped, :helped), failed = max(failed, :failed), "
        "seen = max(seen, coalesce(:seen, seen)) WHERE id = :id",
        {"count": new.count, "helped": new.helped, "failed": new.failed, "seen": new.seen, "id": id},
    )
    _judge(transaction, id)
    return id


def _is_rejected(transaction: Transaction, origin: Origin) -> bool:
    """Tell whether somebody removed what these events have taught: folded again, they must not bring it back."""
    if not origin.seqs:
        return False
    sql = "SELECT 1 FROM lesson_rejected WHERE agent = ? AND session = ? AND seq = ? AND error = ?"
    return bool(transaction.execute(sql, (origin.agent, origin.session, origin.seqs[-1], origin.seqs[0])))


def _insert(transaction: Transaction, new: New, used: int) -> int:
    rows = transaction.execute(
        "INSERT INTO lessons (identity, signature, slots, shape, form, names, pattern, tool, error_text, fix_text, "
        "count, helped, failed, created, seen, used) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "RETURNING id",
        (
            *_derived(new),
            new.pattern,
            new.tool,
            new.error_text,
            new.fix_text,
            new.count,
            new.helped,
            new.failed,
            float(new.ts),
            _seen(new),
            used,
        ),
    )
    id = int(rows[0][0])
    _add_slots(transaction, id, new)
    return id


def _seen(new: New) -> float:
    return float(new.ts if new.seen is None else new.seen)


def set_shape(transaction: Transaction, id: int, new: New) -> None:
    """Exchange what of a lesson is derived from its error."""
    transaction.execute(
        "UPDATE lessons SET identity = ?, signature = ?, slots = ?, shape = ?, form = ?, names = ? WHERE id = ?",
        (*_derived(new), id),
    )
    transaction.execute("DELETE FROM lesson_slots WHERE lesson_id = ?", (id,))
    _add_slots(transaction, id, new)


def _derived(new: New) -> tuple[bytes, int, int, str, int, bytes]:
    shape = new.shape
    text = _ENCODER.encode(shape).decode()
    return new.identity, number(shape.signature), digest(keys_of(shape)), text, normal.FORM, new.names


def _add_slots(transaction: Transaction, id: int, new: New) -> None:
    signature = number(new.shape.signature)
    for value in sorted({digest([key]) for key in keys_of(new.shape)} | told_names(new.names).headed):
        transaction.execute(
            "INSERT INTO lesson_slots (signature, value, lesson_id) VALUES (?, ?, ?)", (signature, value, id)
        )


def add_vector(transaction: Transaction, id: int, vector: bytes) -> None:
    """Keep the vector of a lesson; the first one stays."""
    transaction.execute("INSERT OR IGNORE INTO lesson_vectors (lesson_id, vector) VALUES (?, ?)", (id, vector))


def tick(transaction: Transaction) -> int:
    """Move the clock of use on, and return it."""
    return int(transaction.execute("UPDATE lesson_state SET clock = clock + 1 RETURNING clock")[0][0])


def make_room(transaction: Transaction, cap: int) -> int:
    """Remove what was not used for longest, if the cap is reached: a hundredth of it at once. Return how many."""
    count = int(transaction.execute("SELECT count FROM lesson_state")[0][0])
    return drop_oldest(transaction, count - cap + max(cap // 100, 1)) if count >= cap else 0


def drop_oldest(transaction: Transaction, number: int) -> int:
    """Remove so many lessons, those first that were not used for longest."""
    transaction.execute("DELETE FROM lessons WHERE id IN (SELECT id FROM lessons ORDER BY used, id LIMIT ?)", (number,))
    return _changes(transaction)


def prune(transaction: Transaction, *, keep: int | None, retired: bool) -> int:
    """Remove retired lessons, and all but so many of the most recently used; return how many."""
    gone = 0
    if retired:
        gone += _reject(transaction, "retired = 1", ())
    if keep is not None:
        count = int(transaction.execute("SELECT count FROM lesson_state")[0][0])
        oldest = "id IN (SELECT id FROM lessons ORDER BY used, id LIMIT ?)"
        gone += _reject(transaction, oldest, (max(count - keep, 0),))
    return gone


def remove(transaction: Transaction, id: int) -> int:
    """Remove a lesson; return how many there were of this id."""
    return _reject(transaction, "id = ?", (id,))


def reword(transaction: Transaction, id: int, new: New) -> int:
    """Let a lesson have other words; return the id of what holds them: another one, unless it is the same lesson."""
    ((identity,),) = transaction.execute("SELECT identity FROM lessons WHERE id = ?", (id,))
    if identity == new.identity:
        words = (new.pattern, new.error_text, new.fix_text, id)
        transaction.execute("UPDATE lessons SET pattern = ?, error_text = ?, fix_text = ? WHERE id = ?", words)
        return id
    made = add(transaction, new, 2**62)  # one goes, so there is room
    remove(transaction, id)
    return made


def _reject(transaction: Transaction, which: str, values: tuple[int, ...]) -> int:
    """Remove lessons that somebody does not want, with what they were learned from; return how many."""
    transaction.execute(
        "INSERT OR IGNORE INTO lesson_rejected (agent, session, error, seq) "  # noqa: S608 - a constant
        "SELECT agent, session, json_extract(seqs, '$[0]'), seq FROM lesson_origins "
        f"WHERE lesson_id IN (SELECT id FROM lessons WHERE {which})",
        values,
    )
    transaction.execute(
        "DELETE FROM lesson_rejected WHERE number <= (SELECT max(number) FROM lesson_rejected) - ?", (MAX_REJECTED,)
    )
    transaction.execute(f"DELETE FROM lessons WHERE {which}", values)  # noqa: S608 - a constant
    return _changes(transaction)


def _changes(transaction: Transaction) -> int:
    return int(transaction.execute("SELECT changes()")[0][0])


def add_outcome(transaction: Transaction, id: int, *, helped: bool, ts: float, origin: str | None) -> bool:
    """Count whether a fix helped; return whether the lesson is there. One origin counts once."""
    if not transaction.execute("SELECT 1 FROM lessons WHERE id = ?", (id,)):
        return False
    transaction.execute(
        "INSERT INTO lesson_outcomes (lesson_id, helped, ts, origin) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (origin) DO NOTHING",
        (id, int(helped), float(ts), origin),
    )
    if not _changes(transaction):  # this origin was counted before
        return True
    transaction.execute(FORGET.format("lesson_outcomes"), {"id": id, "most": MAX_OUTCOMES})
    transaction.execute(
        "UPDATE lessons SET helped = helped + :helped, failed = failed + 1 - :helped, "
        "used = iif(:helped, :used, used) WHERE id = :id",
        {"helped": int(helped), "used": tick(transaction), "id": id},
    )
    _judge(transaction, id)
    return True


def _judge(transaction: Transaction, id: int) -> None:
    """Retire a lesson that keeps failing, or offer it again."""
    transaction.execute(
        "UPDATE lessons SET retired = failed >= ? AND helped * 4 < failed WHERE id = ?", (RETIRE_AFTER, id)
    )


def read_lessons(store: Store, ids: Sequence[int]) -> dict[int, Known]:
    """Return the lessons of these ids that are there."""
    rows = store.fetch(f"SELECT {COLUMNS} FROM lessons WHERE {AMONG.format('id')}", (json_ids(ids),))  # noqa: S608
    return {known.id: known for known in map(known_of, rows)}


def json_ids(ids: Sequence[int]) -> str:
    """Return ids as the one value of a statement with :data:`AMONG`: SQLite keeps statements whose text is the same."""
    return _ENCODER.encode(ids).decode()


def known_of(row: tuple[Any, ...]) -> Known:
    """Return the lesson of a row of :data:`COLUMNS`."""
    retired, shape, *others = row
    return Known(retired=bool(retired), shape=_shape(shape), **dict(zip(FIELDS, others, strict=True)))


@lru_cache(4_096)  # a store is asked about the same lessons again and again
def _shape(text: str) -> ErrorShape:
    return _DECODER.decode(text)


def walk(store: Store, *, limit: int | None, pattern: str | None) -> Iterator[Lesson]:
    """Yield lessons, the most recently used first, page by page."""
    left = 2**62 if limit is None else limit
    bound = (2**62, 0)
    while left > 0:
        rows = store.fetch(
            f"SELECT used, {COLUMNS} FROM lessons WHERE (used, id) < (?, ?) AND (? IS NULL OR pattern = ?) "  # noqa: S608
            "ORDER BY used DESC, id DESC LIMIT ?",
            (*bound, pattern, pattern, min(left, PAGE)),
        )
        for row in rows:
            yield known_of(row[1:]).as_lesson()
        if len(rows) < min(left, PAGE):
            return
        bound, left = (rows[-1][0], rows[-1][1]), left - len(rows)


def read_whole(store: Store, id: int) -> Lesson | None:
    """Return a lesson with where it was learned, ``None`` if it is not there."""
    known = read_lessons(store, [id]).get(id)
    return None if known is None else msgspec.structs.replace(known.as_lesson(), origins=origins(store, id))


def count_records(store: Store) -> tuple[int, int, int, int]:
    """Return how many lessons are retired, how many outcomes are known, how many helped, how many vectors there are."""
    row = store.fetch(
        "SELECT (SELECT count(*) FROM lessons WHERE retired = 1), (SELECT count(*) FROM lesson_outcomes), "
        "(SELECT count(*) FROM lesson_outcomes WHERE helped = 1), (SELECT count(*) FROM lesson_vectors)"
    )[0]
    return int(row[0]), int(row[1]), int(row[2]), int(row[3])


def origins(store: Store, id: int, most: int = 5) -> tuple[Origin, ...]:
    """Return where a lesson was learned, the newest first."""
    rows = store.fetch(
        "SELECT agent, session, seqs FROM lesson_origins WHERE lesson_id = ? ORDER BY rowid DESC LIMIT ?",
        (id, most),
    )
    return tuple(Origin(agent, session, _SEQS.decode(seqs)) for agent, session, seqs in rows)
