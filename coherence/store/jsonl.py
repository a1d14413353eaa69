"""The audit trail as JSON lines: one event a line, that anybody can check and grep."""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from coherence.core.files import check_output, make_folder, open_input, open_output
from coherence.store.errors import StoreError
from coherence.store.hash_chain import ChainFault
from coherence.store.open import alone
from coherence.store.rows import AuditRow, DecisionRow, EventRow, ReadingRow
from coherence.store.store import Store
from coherence.store.verify import ChainWalk, damaged

MAX_LINE = 1 << 26
"""Longest line that is read, 64 MiB: a line without an end would fill the memory."""

_UNREADABLE = (OSError, EOFError, zlib.error)


def export_jsonl(store: Store, folder_or_path: str | Path) -> int:
    """Append what is new in a store to its audit trail.

    Files of the trail that were moved aside or gzipped within the same folder still count: what they hold is not
    written again.

    Parameters
    ----------
    store : Store
        Where the events are.
    folder_or_path : str or Path
        A folder (the file is ``audit.jsonl`` in it), or the path of a file that ends in ``.jsonl``.

    Returns
    -------
    int
        How many events were appended.

    Raises
    ------
    StoreError
        The trail belongs to another store, or cannot be written.
    """
    path = trail_path(folder_or_path)
    try:
        make_folder(path.parent)
        # Two exports at once would both append the same events.
        with alone(path.parent):
            return _append(store, path)
    except OSError as error:
        raise StoreError(path, f"the audit trail cannot be written ({error.strerror or error})") from error


def trail_path(folder_or_path: str | Path) -> Path:
    """Return the file that is appended to: ``audit.jsonl`` in a folder, or a path that ends in ``.jsonl`` itself."""
    target = Path(folder_or_path)
    return target if target.suffix == ".jsonl" else target / "audit.jsonl"


class Trail(NamedTuple):
    """The reach of an audit trail, and what is wrong with it.

    Compare number and hash with what you know: a trail that was cut off at an end is a shorter trail, and intact.
    """

    faults: list[ChainFault]
    """The first break; empty = intact."""
    events: int
    """Number of events, up to the break."""
    first: int
    """Id of the first one."""
    newest: str
    """Hash of the last one, hexadecimal."""
    purged: int = 0
    """Number of events whose content was purged."""


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
    """Check the chain as :func:`verify_jsonl` does, and return how far the trail reaches."""
    walk = ChainWalk()
    first = 0
    for path in _in_order(paths):
        found = None
        try:
            for number, line in enumerate(_lines(path), 1):
                row = decode_line(line)
                if row is None:
                    found = damaged(f"{path}:{number}: this line is no event, or only part of one")
                else:
                    first = first if walk.rows else row.id
                    found = walk.step(row)
                if found is not None:
                    break
        except _UNREADABLE as error:
            found = damaged(f"{path}: the file cannot be read ({error})")
        if found is not None:
            return Trail([found], walk.rows, first, (walk.newest or b"").hex())
    unvouched = walk.end_purged()
    return Trail([] if unvouched is None else [unvouched], walk.rows, first, (walk.newest or b"").hex(), walk.purged)


def _append(store: Store, path: Path) -> int:
    last = _last_row(path)
    after = 0 if last is None else last.id
    if last is not None:
        there = next(store.audit_rows(after=after - 1), None)
        # By its own row or, once pruned, by the hash that its successor follows; after a gap nothing can be compared.
        if there is not None and last.hash != {after: there.hash, after + 1: there.prev_hash}.get(there.id, last.hash):
            raise StoreError(path, f"this audit trail is of another store than {store.path}; choose another folder")
        if there is None and store.count_events() and next(store.audit_rows()).id <= after:
            raise StoreError(path, f"this audit trail is longer than {store.path}; choose another folder")
    count = 0
    with open_output(path, "ab") as file:
        for row in store.audit_rows(after=after):
            file.write(encode_line(row))
            count += 1
        file.flush()
        os.fsync(file.fileno())
    return count


def _last_row(path: Path) -> AuditRow | None:
    """Return the newest event of the trail, also of its files that were moved aside in the same folder."""
    check_output(path)
    if path.exists() and path.stat().st_size:
        with open_output(path, "r+b") as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                end = whole.rfind(b"\n") + 1
                last = whole[whole.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
            file.truncate(end)  # cuts off a line that a crash left half-written
        if last:
            row = decode_line(last)
            if row is None:
                raise StoreError(path, "the last line of this audit trail is no event; choose another folder")
            return row
    moved = [file for file in _in_order(path.parent.glob(f"{path.stem}*.jsonl*")) if file != path]
    newest = None
    for line in _lines(moved[-1]) if moved else ():
        newest = decode_line(line) or newest
    return newest


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
    with open_input(path) as raw, gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else nullcontext(raw) as file:
        while line := file.readline(MAX_LINE):
            if len(line) == MAX_LINE:
                raise OSError(f"a line is longer than {MAX_LINE} bytes")
            yield line


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
