"""Traces as plain files of JSON lines: appended, rotated to gzip, compacted, and every row accounted for.

A line is ``{"n": 12, "trace": {...}}``. Rows are numbered from 1 without gaps, so that a reader can tell how many are
no longer there. ``traces.jsonl`` is appended to; ``traces-000000000012.jsonl.gz`` is an archive whose last row is 12.
Any number of threads and processes may append, read and compact at once: they take turns by ``traces.jsonl.lock``.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from coherence.core.redact import redact_value
from coherence.core.validation import check_count
from coherence.guard.safe_json import tagged

PATIENCE_S = 30.0
"""How long a process waits for its turn."""

_POLL_S = 0.002
_BLOCK = 4_096
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
_ENCODE = msgspec.json.Encoder().encode


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    n: int
    trace: Any


_DECODE = msgspec.json.Decoder(_Line).decode


class PlainContent(msgspec.Struct, frozen=True):
    """What plain files hold, and what they do not."""

    rows: list[Any]
    """The newest rows, oldest first."""
    removed: int
    """Rows before the oldest one that is there: archives beyond those kept, and compaction."""
    missing: int
    """Rows between two that are there: lines that were damaged afterwards, or a file that is gone."""
    unreadable: int
    """Lines, or rests of damaged archives, that are no rows. A line that a crash cut off is one; its row was never
    acknowledged, so that it is not missing."""


class Compacted(msgspec.Struct, frozen=True):
    """What a compaction did."""

    kept: int
    removed: int
    """Rows that are gone by it."""
    unreadable: int
    """Lines that were no rows, gone as well."""


class PlainTraces:
    """Rows in a file of JSON lines.

    Values that JSON cannot say are tagged, secrets replaced. A row is acknowledged when :meth:`append` returns: from
    then on the end of the process, however sudden, does not lose it, and with ``durable`` a power cut does not either.

    Parameters
    ----------
    path : str or Path
        The file that is appended to; its name ends in ``.jsonl``. Its folder is made if need be.
    max_bytes : int
        A file that has grown beyond this is archived before the next row is appended; 1 or more.
    keep : int
        Archives that are kept, 1 or more; the oldest are removed, and their rows count as removed.
    durable : bool
        Whether to wait until the disk has each row.

    Raises
    ------
    TypeError, ValueError
        If a parameter is none of these.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     traces = PlainTraces(f"{folder}/traces.jsonl")
    ...     numbers = [traces.append({"success": True}), traces.append({"success": False})]
    ...     traces.read()
    PlainContent(rows=[{'success': True}, {'success': False}], removed=0, missing=0, unreadable=0)
    >>> numbers
    [1, 2]
    """

    def __init__(self, path: str | Path, *, max_bytes: int = 10_000_000, keep: int = 5, durable: bool = False) -> None:
        self.path = Path(path)
        if self.path.suffix != ".jsonl":
            raise ValueError(f"path must end in .jsonl, not {self.path.name!r}")
        self.max_bytes = check_count("max_bytes", max_bytes, least=1)
        self.keep = check_count("keep", keep, least=1)
        self.durable = durable

    def append(self, row: object) -> int:
        """Append one row and return its number.

        Raises
        ------
        OSError
            If it cannot be written, or it is not this process's turn for :data:`PATIENCE_S` seconds; the row is then
            not acknowledged.
        """
        return self.extend([row])

    def extend(self, rows: Iterable[object]) -> int:
        """Append rows to one file and return the number of the last, 0 if there is none in any file.

        Raises
        ------
        OSError
            As :meth:`append`, for all of them.
        """
        plain = [redact_value(tagged(row)) for row in rows]
        with self.turn() as turn:
            return turn.extend(plain)

    @contextmanager
    def turn(self) -> Iterator[FileTurn]:
        """Keep everybody else from appending, reading and compacting, so that what comes next follows what is there.

        Raises
        ------
        OSError
            As :meth:`append`.
        """
        with self._turn():
            yield FileTurn(self)

    def read(self, newest: int | None = None) -> PlainContent:
        """Return the rows of all files in order, or the ``newest`` ones; nobody waits meanwhile.

        Raises
        ------
        OSError
            If it is not this process's turn for :data:`PATIENCE_S` seconds, or a file may not be read.
        """
        if newest is not None and newest < 0:
            raise ValueError(f"newest must be 0 or more, not {newest}")
        with ExitStack() as files:
            with self._turn():  # what is open stays as it is, whatever is renamed or removed afterwards
                handles = [files.enter_context(_open_to_read(path)) for path in self.files()]
                size = self.path.stat().st_size if self.path.exists() else 0
            found = _Found(newest)
            for handle in handles:
                found.observe(handle, size if handle.name == str(self.path) else None)
        return found.reading()

    def compact(self, newest: int) -> Compacted:
        """Keep only the newest rows, 1 or more, all in the file that is appended to; archives are removed.

        Raises
        ------
        ValueError
            If ``newest`` is below 1.
        OSError
            As :meth:`append`; nothing is changed then, or some archives are still there.
        """
        if newest < 1:
            raise ValueError(f"newest must be 1 or more, not {newest}")
        with self._turn():
            found = _Found(newest)
            for path in self.files():
                with _open_to_read(path) as handle:
                    found.observe(handle, None)
            if not found.kept:
                return Compacted(0, 0, 0)
            _write_whole(self.path, BytesIO(b"".join(line for _, line in found.kept)), packed=False)
            for _, path in self._archives():  # oldest first, so that no rows between two are gone if this is cut off
                path.unlink()
        return Compacted(len(found.kept), found.count - len(found.kept), found.unreadable)

    def files(self) -> list[Path]:
        """Return the files that are there, oldest rows first; the one that is appended to comes last."""
        archives = dict(self._archives())  # of two with one number the packed one
        return [*archives.values(), *([self.path] if self.path.exists() else [])]

    def _archives(self) -> list[tuple[int, Path]]:
        """Return the numbers of archives' last rows, and the archives; a plain one stands before its packed one."""
        name = re.compile(re.escape(self.path.stem) + r"-(\d{12,})\.jsonl(\.gz)?")
        there = os.listdir(self.path.parent) if self.path.parent.exists() else []
        return sorted((int(found[1]), self.path.with_name(found[0])) for found in map(name.fullmatch, there) if found)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A lock of its own each time, so that nothing is carried across a fork.
        with FileLock(f"{self.path}.lock", timeout=PATIENCE_S, thread_local=False).acquire(poll_interval=_POLL_S):
            yield

    def _append(self, plain: Sequence[Any]) -> int:
        with _open_active(self.path) as file:
            _finish_line(file)
            last, full = self._newest(file)
            if not full:
                self._write(file, last, plain)
        if full:
            self._rotate(last)
            with _open_active(self.path) as file:
                self._write(file, last, plain)
        return last + len(plain)

    def _write(self, file: IO[bytes], last: int, plain: Sequence[Any]) -> None:
        size = os.fstat(file.fileno()).st_size
        try:
            _write_all(file, b"".join(_ENCODE(_Line(n, trace)) + b"\n" for n, trace in enumerate(plain, last + 1)))
            if self.durable:
                os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
        if self.durable and not size:
            _sync_folder(self.path.parent)

    def _newest(self, file: IO[bytes]) -> tuple[int, bool]:
        """Return the number of the newest row in all files, and whether the file is to be set aside."""
        full = os.fstat(file.fileno()).st_size > self.max_bytes
        last = next((row.n for line in _lines_backwards(file) if (row := _row(line))), 0)
        if last and not full:
            return last, False
        archived = max((number for number, _ in self._archives()), default=0)
        return max(last, archived), full and last > archived  # else an archive would be written over

    def _rotate(self, last: int) -> None:
        """Set the file aside; each step can be the last one, and what is left is done by the next rotation."""
        os.rename(self.path, self.path.with_name(f"{self.path.stem}-{last:012d}.jsonl"))
        for _, path in self._archives():
            if path.suffix == ".jsonl":
                with open(path, "rb") as file:
                    _write_whole(path.with_name(f"{path.name}.gz"), file, packed=True)
                path.unlink()
        for _, path in self._archives()[: -self.keep]:
            path.unlink()


class FileTurn:
    """What may be done with plain files while everybody else waits; see :meth:`PlainTraces.turn`."""

    def __init__(self, traces: PlainTraces) -> None:
        self._traces = traces

    def backwards(self) -> Iterator[Any]:
        """Yield the rows of the file that is appended to, newest first; to be left before anything is appended."""
        if self._traces.path.exists():
            with _open_to_read(self._traces.path) as file:
                yield from (row.trace for line in _lines_backwards(file) if (row := _row(line)))

    def extend(self, plain: Sequence[Any]) -> int:
        """Append rows as they are and return the number of the last; they are JSON-like data without secrets.

        Raises
        ------
        OSError
            If they cannot be written; none of them is there then.
        """
        return self._traces._append(plain)


class _Kept(NamedTuple):
    n: int
    line: bytes


class _Found:
    """Rows that are met, in order; of archives that overlap after a crash each row once."""

    def __init__(self, newest: int | None) -> None:
        self.kept: deque[_Kept] = deque(maxlen=newest)
        self.count = self.first = self.last = self.missing = self.unreadable = 0

    def observe(self, file: IO[bytes], size: int | None) -> None:
        """Read a file, up to ``size`` bytes of it; a line without an end is still being written, or was cut off."""
        lines = gzip.GzipFile(fileobj=file) if file.name.endswith(".gz") else file
        at = 0
        try:
            for line in lines:
                at += len(line)
                if size is not None and at > size:
                    return
                self._take_line(line)
        except _DAMAGED:
            self.unreadable += 1

    def _take_line(self, line: bytes) -> None:
        row = _row(line) if line.endswith(b"\n") else None
        if row is None:
            self.unreadable += 1
        elif row.n > self.last:
            self.missing += row.n - self.last - 1 if self.count else 0
            self.first = self.first or row.n
            self.last = row.n
            self.count += 1
            self.kept.append(_Kept(row.n, line))

    def reading(self) -> PlainContent:
        rows = [_DECODE(line).trace for _, line in self.kept]
        return PlainContent(rows, max(self.first - 1, 0), self.missing, self.unreadable)


def _row(line: bytes) -> _Line | None:
    try:
        row = _DECODE(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return row if row.n >= 1 else None


def _private(path: str | Path, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _open_active(path: Path) -> IO[bytes]:
    """Open for appending; the mode is that of a file that may hold what users wrote."""
    return open(path, "ab+", buffering=0, opener=_private)


def _open_to_read(path: Path) -> IO[bytes]:
    return open(str(path), "rb")


def _finish_line(file: IO[bytes]) -> None:
    """End a line that a crash cut off, so that it does not eat the next one."""
    if size := os.fstat(file.fileno()).st_size:
        file.seek(size - 1)
        if file.read(1) != b"\n":
            _write_all(file, b"\n")


def _write_all(file: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _lines_backwards(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, last one first."""
    at = os.fstat(file.fileno()).st_size
    rest: list[bytes] = []  # pieces of a line whose beginning is not read yet, last piece first
    while at > 0:
        begin = max(at - _BLOCK, 0)
        file.seek(begin)
        pieces = file.read(at - begin).split(b"\n")
        at = begin
        for piece in reversed(pieces[1:]):
            yield b"".join([piece, *reversed(rest)])
            rest = []
        rest.append(pieces[0])
    yield b"".join(reversed(rest))


def _write_whole(path: Path, source: IO[bytes], *, packed: bool) -> None:
    """Write a file that is either there as a whole or not at all, even after a power cut."""
    part = path.with_name(f"{path.name}.part")
    with open(part, "wb", opener=_private) as raw:
        if packed:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as file:
                shutil.copyfileobj(source, file, 2**20)
        else:
            shutil.copyfileobj(source, raw, 2**20)
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(part, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make names durable; only POSIX can, and needs it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
