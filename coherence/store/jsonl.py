"""The audit trail as JSON lines: one event a line, in files that rotate, that anybody can check and grep."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from coherence.store.errors import StoreError
from coherence.store.hash_chain import ChainFault
from coherence.store.open import alone
from coherence.store.rows import AuditRow, DecisionRow, EventRow, ReadingRow
from coherence.store.store import Store
from coherence.store.verify import Walk

_ROTATED = re.compile(r"-(\d+)\.jsonl\.gz$")
_TAIL_BYTES = 2**16
_UNREADABLE = (OSError, EOFError, zlib.error)


def export_jsonl(store: Store, folder_or_path: str | Path, *, max_bytes: int = 10_000_000, keep: int = 5) -> int:
    """Append what is new in a store to its audit trail.

    Parameters
    ----------
    store : Store
        Where the events are.
    folder_or_path : str or Path
        A folder (the file is ``audit.jsonl`` in it), or the path of a file that ends in ``.jsonl``.
    max_bytes : int
        A file that would grow beyond this is compressed to ``audit-<id of its first event>.jsonl.gz``, and a new one
        is begun.
    keep : int
        How many compressed files stay; older ones are deleted.

    Returns
    -------
    int
        How many events were appended.

    Raises
    ------
    StoreError
        The trail belongs to another store, or cannot be written.
    """
    if max_bytes < 1 or keep < 0:
        raise ValueError(f"max_bytes must be 1 or more and keep 0 or more, not {max_bytes} and {keep}")
    path = trail_path(folder_or_path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with alone(path.parent):
            return _append(store, path, max_bytes, keep)
    except OSError as error:
        raise StoreError(path, f"the audit trail cannot be written ({error.strerror or error})") from error


def trail_path(folder_or_path: str | Path) -> Path:
    """Return the file that is appended to: ``audit.jsonl`` in a folder, or a path that ends in ``.jsonl`` itself."""
    target = Path(folder_or_path)
    return target if target.suffix == ".jsonl" else target / "audit.jsonl"


class Trail(NamedTuple):
    """What the files of an audit trail hold.

    Compare number and hash with what you know: a trail that was cut off at an end is a shorter trail, and intact.
    """

    faults: list[ChainFault]
    """Empty = intact."""
    events: int
    """How many."""
    first: int
    """Id of the first one."""
    newest: str
    """Hash of the last one, hexadecimal."""


def verify_jsonl(paths: str | Path | Iterable[str | Path]) -> list[ChainFault]:
    """Check the chain in the files of an audit trail; an empty list = intact.

    The trail says nothing about events before its first line and after its last one.

    Parameters
    ----------
    paths : path or iterable of paths
        Files (plain or gzipped, in any order), or folders of them.
    """
    return read_trail(paths).faults


def read_trail(paths: str | Path | Iterable[str | Path]) -> Trail:
    """Check the chain as :func:`verify_jsonl` does, and tell how far the trail reaches."""
    files = _in_order(paths)
    walk = Walk(None, None)
    faults: list[ChainFault] = []
    count, first, newest = 0, 0, ""
    for path in files:
        try:
            for number, line in enumerate(_lines(path), 1):
                row = decode_line(line)
                if row is None:
                    faults.append(_bad(f"{path}:{number}: this line is no event, or only part of one"))
                else:
                    walk.step(row, f"{row.agent}\0{row.session}")
                    first = first if count else row.id
                    count, newest = count + 1, row.hash.hex()
        except _UNREADABLE as error:
            faults.append(_bad(f"{path}: the file cannot be read ({error})"))

    def find(hashes: set[bytes]) -> dict[bytes, int]:
        found: dict[bytes, int] = {}
        for path in files:
            with suppress(*_UNREADABLE):
                found.update({row.hash: row.id for row in map(decode_line, _lines(path)) if row and row.hash in hashes})
        return found

    return Trail(walk.faults(find) + faults, count, first, newest)


def trail_files(path: Path) -> list[Path]:
    """Return the files of the trail whose newest file is ``path``, oldest first."""
    rotated = [p for p in path.parent.glob(f"{path.stem}-*.jsonl.gz") if _ROTATED.search(p.name)]
    rotated = [p for p in rotated if p.name == f"{path.stem}-{_number(p)}.jsonl.gz"]
    return sorted(rotated, key=_number) + ([path] if path.exists() else [])


def _append(store: Store, path: Path, max_bytes: int, keep: int) -> int:
    _finish_rotation(path)
    last = _last_line(path)
    after = 0
    if last is not None:
        after = last[0]
        there = next(store.audit_rows(after=after - 1), None)
        if there is not None and last[1] != {after: there.hash, after + 1: there.prev_hash}.get(there.id, last[1]):
            raise StoreError(path, f"this audit trail is of another store than {store.path}; choose another folder")
        if there is None and store.count_events() and next(store.audit_rows()).id <= after:
            raise StoreError(path, f"this audit trail is longer than {store.path}; choose another folder")
    count = 0
    file = open(path, "ab")  # noqa: SIM115 - it is replaced on rotation
    try:
        size = file.tell()
        for row in store.audit_rows(after=after):
            line = encode_line(row)
            if size and size + len(line) > max_bytes:
                _close(file)
                _rotate(path, keep)
                file, size = open(path, "ab"), 0  # noqa: SIM115
            file.write(line)
            size += len(line)
            count += 1
    finally:
        _close(file)
    return count


def _last_line(path: Path) -> tuple[int, bytes] | None:
    """Return id and hash of the newest event of the trail; what a crash left half-written after it is cut off."""
    for file in reversed(trail_files(path)):
        if file == path:
            with open(path, "r+b") as handle:
                size = handle.seek(0, os.SEEK_END)
                start = size
                while start > 0:
                    start = max(start - _TAIL_BYTES, 0)
                    handle.seek(start)
                    tail = handle.read(size - start)
                    found = _last_whole(tail, whole=start == 0)
                    if found is not None:
                        end, row = found
                        handle.truncate(start + end)
                        return row
                handle.truncate(0)
        else:
            last = None
            for line in _lines(file):
                last = decode_line(line) or last
            if last is not None:
                return last.id, last.hash
    return None


def _last_whole(tail: bytes, whole: bool) -> tuple[int, tuple[int, bytes]] | None:
    """Return the last line that is an event, and where it ends; ``whole``: the first line is not cut."""
    end = tail.rfind(b"\n") + 1
    while end > 0:
        begin = tail.rfind(b"\n", 0, end - 1) + 1
        if begin == 0 and not whole:
            return None
        row = decode_line(tail[begin:end])
        if row is not None:
            return end, (row.id, row.hash)
        end = begin
    return None


def _rotate(path: Path, keep: int) -> None:
    target = path.with_name(f"{path.stem}-{_begins(path)}.jsonl.gz")
    part = target.with_suffix(".part")
    with open(path, "rb") as plain, open(part, "wb") as raw:
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 2**20)
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(part, target)
    os.unlink(path)
    for old in [p for p in trail_files(path) if p != path][: -keep or None]:
        os.unlink(old)


def _finish_rotation(path: Path) -> None:
    """Remove the plain file if it was compressed already when the last export was cut off."""
    if path.exists() and path.with_name(f"{path.stem}-{_begins(path)}.jsonl.gz").exists():
        os.unlink(path)


def _close(file: IO[bytes]) -> None:
    if not file.closed:
        file.flush()
        os.fsync(file.fileno())
        file.close()


def _in_order(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        files += [*path.glob("*.jsonl"), *path.glob("*.jsonl.gz")] if path.is_dir() else [path]
    return sorted(files, key=_begins)


def _begins(path: Path) -> float:
    """Return the id of the first event in a file; a file without one comes last."""
    try:
        return next((row.id for line in _lines(path) if (row := decode_line(line))), float("inf"))
    except _UNREADABLE:
        return float("inf")


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        yield from file


def _number(path: Path) -> int:
    found = _ROTATED.search(path.name)
    return int(found[1]) if found else 0


def _bad(message: str) -> ChainFault:
    return ChainFault(None, None, None, None, "damaged", message)


class _Reading(msgspec.Struct, forbid_unknown_fields=True):
    coherence_index: float | None
    band: str | None
    pressure: float | None
    mode: str | None
    data: msgspec.Raw


class _Decision(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    data: msgspec.Raw


class _Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    id: int
    session_id: int
    session: str
    agent: str
    seq: int
    ts: float
    kind: str
    source: str
    data: msgspec.Raw
    prev_hash: str
    hash: str
    reading: _Reading | None = None
    decision: _Decision | None = None
    texts: dict[str, str] = {}
    """The exact text of a ``data`` that a line cannot hold as it is: one with line breaks, or spaces around it."""


_decoder = msgspec.json.Decoder(_Line)
_encoder = msgspec.json.Encoder()
_skim = msgspec.json.Decoder(msgspec.Raw)


def encode_line(row: AuditRow) -> bytes:
    """Return the line of an event, with its line end."""
    event, texts = row.event, {}

    def raw(name: str, text: str) -> msgspec.Raw:
        try:
            _skim.decode(text)
            if not ("\n" in text or "\r" in text or text != text.strip()):
                return msgspec.Raw(text.encode())
            nested = _encoder.encode(msgspec.json.decode(text))
        except (msgspec.MsgspecError, RecursionError):  # SQLite takes it for JSON, other readers do not
            nested = b"null"
        texts[name] = text
        return msgspec.Raw(nested)

    line = _Line(
        id=row.id,
        session_id=row.session_id,
        session=row.session,
        agent=row.agent,
        seq=event.seq,
        ts=event.ts,
        kind=event.kind,
        source=row.source,
        data=raw("data", event.data),
        prev_hash=row.prev_hash.hex(),
        hash=row.hash.hex(),
        texts=texts,
    )
    if (read := event.reading) is not None:
        data = raw("reading", read.data)
        line.reading = _Reading(read.coherence_index, read.band, read.pressure, read.mode, data)
    if (decided := event.decision) is not None:
        line.decision = _Decision(decided.kind, raw("decision", decided.data))
    return _encoder.encode(line) + b"\n"


def decode_line(line: bytes) -> AuditRow | None:
    """Return the event of a line; ``None`` if the line is no event, or not a whole one."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = _decoder.decode(line)
        prev_hash, row_hash = bytes.fromhex(found.prev_hash), bytes.fromhex(found.hash)
        event = EventRow(found.seq, found.ts, found.kind, _text(found, "data", found.data), *_tick(found))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return AuditRow(found.id, found.session_id, found.session, found.agent, found.source, event, prev_hash, row_hash)


def _tick(line: _Line) -> tuple[ReadingRow | None, DecisionRow | None]:
    read, decided = line.reading, line.decision
    return (
        None
        if read is None
        else ReadingRow(read.coherence_index, read.band, read.pressure, read.mode, _text(line, "reading", read.data)),
        None if decided is None else DecisionRow(decided.kind, _text(line, "decision", decided.data)),
    )


def _text(line: _Line, name: str, raw: msgspec.Raw) -> str:
    return line.texts.get(name) or bytes(raw).decode()
