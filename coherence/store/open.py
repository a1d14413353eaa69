"""Opening the file: ours, new, too new, someone else's, or damaged."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

from coherence.core.files import make_folder, open_new
from coherence.store import schema
from coherence.store.connections import (
    Synchronous,
    code,
    connect,
    connect_writer,
    explained,
    in_use,
    is_damage,
    patiently,
    refuse_unusable,
)
from coherence.store.errors import StoreError

if sys.platform != "win32":
    import fcntl

MAGIC = b"SQLite format 3\x00"
HEADER_BYTES = 100
CHUNK_BYTES = 2**20
_OWNER = """
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
  (SELECT count(*) FROM sqlite_master)
"""


class Recovery(NamedTuple):
    """Recovery of a damaged file."""

    moved_to: Path
    message: str


FileId: TypeAlias = tuple[int, int]
"""Device and inode: a file, whatever its name is now."""


def file_id(path: str | Path) -> FileId | None:
    """Return which file is at a path, ``None`` = none is."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class OpenFiles(NamedTuple):
    """The file that was opened, and the two that SQLite keeps beside it."""

    main: FileId | None
    sides: tuple[FileId | None, ...]


SIDES = ("-wal", "-shm")


def open_files(path: Path) -> OpenFiles:
    """Return which files are at the paths of a store that was just opened."""
    return OpenFiles(file_id(path), tuple(file_id(f"{path}{side}") for side in SIDES))


def open_store(
    path: Path, timeout_s: float, synchronous: Synchronous, *, recovers: bool = True
) -> tuple[sqlite3.Connection, Recovery | None]:
    """Open, make or migrate the file.

    Returns
    -------
    connection : sqlite3.Connection
        The connection that writes.
    recovery : Recovery or None
        What was done about a damaged file.

    Raises
    ------
    StoreError
        Another program's file, a newer schema, no permission, a folder, locked for longer than ``timeout_s``, or, with
        ``recovers=False``, damaged.
    """
    refuse_unusable(path)
    if path.name == ":memory:":
        raise StoreError(path, "a store is a file, and none in memory; choose a path in a temporary folder")
    try:
        is_folder, is_other, is_link = path.is_dir(), path.exists() and not path.is_file(), path.is_symlink()
    except OSError as error:  # a name that is too long
        raise StoreError(path, f"the file cannot be opened ({error.strerror})") from error
    if is_folder:
        raise StoreError(path, "this is a folder; a store is one file")
    if is_link:
        where = os.path.realpath(path)
        raise StoreError(path, f"this is a symbolic link, and none is written through; name {where} itself")
    if is_other:
        raise StoreError(path, "this is no regular file")
    try:
        make_folder(path.parent)
    except OSError as error:
        raise StoreError(path, f"its folder cannot be made ({error.strerror})") from error
    with explained(path):
        if not path.exists():
            with alone(path.parent):
                _make(path)
        try:
            return _open(path, timeout_s, synchronous), None
        except sqlite3.DatabaseError as error:
            moving = code(error) == sqlite3.SQLITE_CANTOPEN and os.access(path.parent, os.R_OK)
            # another process may be moving a damaged file at this moment
            if not recovers or not (is_damage(error) or moving):
                raise
        with alone(path.parent):
            try:  # another process may have moved the damaged file aside meanwhile
                _make(path)
                return _open(path, timeout_s, synchronous), None
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                recovery = _move_aside(path, error)
            _make(path)
            return _open(path, timeout_s, synchronous), recovery


def open_again(
    path: Path, timeout_s: float, synchronous: Synchronous, old: OpenFiles, damage: Exception | None
) -> tuple[sqlite3.Connection, Recovery | None, str]:
    """Open what is at the path now, or begin a new file, after the one that was open is gone or was found damaged.

    Its connections must be closed.

    Returns
    -------
    connection : sqlite3.Connection
        The connection that writes.
    recovery : Recovery or None
        What was done about a damaged file.
    message : str
        What happened, for people.

    Raises
    ------
    StoreError
        As :func:`open_store`.
    """
    moved, there = None, file_id(path)
    if path.parent.is_dir():
        with explained(path), alone(path.parent):
            there = file_id(path)
            if damage is not None and there == old.main:
                moved = _set_aside(path, damage)
            else:
                _remove_sides(path, old)
    connection, recovery = open_store(path, timeout_s, synchronous)
    recovery = recovery or moved
    if recovery is not None:
        return connection, recovery, recovery.message
    how = "deleted or renamed" if there is None else "replaced by another one"
    return connection, None, f"{path}: the store's file was {how} while it was in use; what is still held goes on there"


def _remove_sides(path: Path, old: OpenFiles) -> None:
    """Remove what SQLite left beside a file that is gone: a new file of its name must not take it for its own."""
    for side, known in zip(SIDES, old.sides, strict=True):
        if known is not None and file_id(f"{path}{side}") == known:
            with suppress(OSError):
                os.unlink(f"{path}{side}")


def _make(path: Path) -> None:
    """Make an empty file if there is none, for its owner alone; SQLite gives its log the same rights."""
    if os.path.lexists(path):
        return
    # Of a file that is gone: processes that still have it open go on sharing them.
    for side in SIDES:
        with suppress(OSError):
            os.unlink(f"{path}{side}")
    try:
        open_new(path).close()
    except FileExistsError:  # where folders cannot be locked, another process may be faster
        pass
    except OSError as error:
        raise StoreError(path, f"the file cannot be made; is its folder read-only? ({error.strerror})") from error


def _open(path: Path, timeout_s: float, synchronous: Synchronous) -> sqlite3.Connection:
    if _size(path):
        _refuse_strangers(path, timeout_s)
    connection = connect_writer(path, timeout_s, synchronous)
    try:
        for number in range(1, schema.newest_version() + 1):
            if patiently(path, timeout_s, partial(schema.version, connection)) < number:
                patiently(path, timeout_s, partial(schema.migrate, connection, number))
        patiently(path, timeout_s, lambda: _glance(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_strangers(path: Path, timeout_s: float) -> None:
    """Look at the file without the right to change it: a writer's close would already touch another program's file."""
    # The first ignores the log and so leaves no log files beside another's; the second sees what is in the log only.
    looks: tuple[Literal["ro&immutable=1", "ro"], ...] = ("ro&immutable=1", "ro")
    for mode in looks:
        connection = connect(path, mode)
        try:
            if mode != "ro" and _is_ours(connection):  # told by the header; for the rest SQLite reads the whole schema
                _refuse_stranger(path, schema.APPLICATION_ID, schema.version(connection), 0)
                continue
            found = patiently(path, timeout_s, partial(_owner, connection))
        except sqlite3.DatabaseError as error:
            if mode == "ro" and not (code(error) == sqlite3.SQLITE_READONLY and _was_being_made(path)):
                raise
            continue  # another process was writing; the second look is orderly
        finally:
            connection.close()
        _refuse_stranger(path, *found)


def _was_being_made(path: Path) -> bool:
    """Tell whether whoever made the file was killed or lost power in its first transaction: to undo it empties it."""
    with suppress(OSError), open(f"{path}-journal", "rb") as journal:
        return journal.read(20)[16:] == bytes(4)  # the pages that the file had before
    return False


def _is_ours(connection: sqlite3.Connection) -> bool:
    found: int = connection.execute("PRAGMA application_id").fetchone()[0]
    return found == schema.APPLICATION_ID


def _owner(connection: sqlite3.Connection) -> Any:
    return connection.execute(_OWNER).fetchone()


def _refuse_stranger(path: Path, owner: int, version: int, tables: int) -> None:
    # An empty SQLite file is taken: another process may have made it and not migrated it yet.
    if owner != schema.APPLICATION_ID and (owner or tables or version):
        raise StoreError(
            path, f"this is a SQLite file of another program (application_id {owner:#x}); choose another path"
        )
    newest = schema.newest_version()
    if version > newest:
        raise StoreError(
            path,
            f"it was written by a newer version of this package (schema {version}, this one knows up to {newest}); "
            "upgrade: pip install -U coherence-sensor",
        )


def _glance(connection: sqlite3.Connection) -> None:
    """Read the ends of what matters, to notice most damage at once; a full check takes too long for every opening."""
    connection.execute("SELECT count, length(head), first_id FROM chain").fetchone()
    connection.execute("SELECT * FROM events ORDER BY id DESC LIMIT 1").fetchone()
    connection.execute("SELECT * FROM events ORDER BY id LIMIT 1").fetchone()
    connection.execute("SELECT * FROM sessions ORDER BY id DESC LIMIT 1").fetchone()


def _move_aside(path: Path, error: sqlite3.DatabaseError) -> Recovery:
    if in_use(path):  # it is ours, and closing a plain handle on it would drop the locks of that store
        return _set_aside(path, error)
    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
        # All zeros is what a crash may leave of any file, and nothing in it can be lost.
        if not _was_ours(path, header) and any(chunk.strip(b"\0") for chunk in _chunks(header, file)):
            raise StoreError(path, f"this is no store of evidence or lessons, but {kind_in_words(header)}")
    owner = int.from_bytes(header[68:72], "big")
    if header.startswith(MAGIC) and len(header) == HEADER_BYTES and owner != schema.APPLICATION_ID:
        raise StoreError(
            path, f"this damaged SQLite file belongs to another program (application_id {owner:#x}; {error})"
        )
    return _set_aside(path, error)


def _set_aside(path: Path, error: Exception) -> Recovery:
    """Give a damaged store another name; whoever has it open notices."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    aside, number = path.with_name(f"{path.name}.damaged-{stamp}"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    try:
        os.rename(path, aside)
    except OSError as problem:
        raise StoreError(path, f"it is damaged ({error}) and cannot be moved aside ({problem.strerror})") from problem
    # The newest commits may be in the log only; whoever repairs the file needs both.
    for suffix in SIDES:
        with suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    return Recovery(aside, f"{path}: the store was damaged ({error}); it is now {aside.name}, and a new one was begun")


def _was_ours(path: Path, header: bytes) -> bool:
    """Tell whether a file that SQLite cannot read was one of its own: nobody's other file may be moved."""
    if header.startswith(MAGIC) or MAGIC.startswith(header):
        return True
    # where a SQLite header has its application id; the damage may be in its first bytes alone
    if header[68:72] == schema.APPLICATION_ID.to_bytes(4, "big"):
        return True
    return any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm", ".lessons"))


def _chunks(header: bytes, rest: IO[bytes]) -> Iterator[bytes]:
    yield header
    while chunk := rest.read(CHUNK_BYTES):
        yield chunk


def is_sqlite(path: str | Path) -> bool:
    """Tell whether a path is that of a regular SQLite file."""
    try:
        if not Path(path).is_file():  # a pipe would be waited for
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def kind_in_words(header: bytes) -> str:
    """Return in words what a file is that somebody has taken for a store, and what to do."""
    if header.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        return "JSON; lessons in JSON are read by `coherence lessons import FILE`"
    if header.startswith(b"PK"):
        return "a zip archive; choose another path"
    return "a file of another kind; choose another path, or move it away if it once was one"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StoreError(path, f"the file cannot be opened ({error.strerror})") from error


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep others that call this for the same folder out (threads and processes), without leaving a file behind."""
    if sys.platform == "win32":  # an open file cannot be moved there in the first place
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network drives have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
