"""An agent's trail as JSON lines: written for those who want plain files, and read again to be checked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, get_args

import msgspec
from msgspec import Meta

from coherence.core.errors import CoherenceError
from coherence.core.validation import check_number, shown
from coherence.guard.patch_events import Accepted, Decision, GuardedCall
from coherence.guard.traces import Past, Trace, newest_seq, read_trail
from coherence.monitor.arguments import check_name
from coherence.store.store import Store

PAGE = 200
"""Entries read at once; each is less than 500 kB."""

MAX_LINE = 8_000_000
"""Bytes of a line that is read; a longer one is an error."""

KNOWN_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(Decision))

_ENCODE = msgspec.json.Encoder().encode


class TrailError(CoherenceError, ValueError):
    """A file is not the trail of one agent. The message names the line, counted from 1."""


def export_trail(store: Store, agent: str, file: str | Path | IO[bytes]) -> int:
    """Write an agent's calls and decisions in their order, one JSON object a line; return how many.

    A call has ``kind`` = ``call`` and the fields of :class:`~coherence.guard.traces.Trace`; a decision has its own kind
    and fields, with ``seq`` and ``at``. Each has ``agent``.

    Parameters
    ----------
    store : Store
        Where the trail is. Other processes may write meanwhile: what was there at the beginning is exported. They
        should not prune, or calls are missing in the middle.
    agent : str
        Whose trail it is.
    file : path or file
        A path of a new file, which is written whole or not at all; or a file that is open for bytes.

    Raises
    ------
    TypeError
        For a file of another kind.
    FileExistsError, OSError
        If the file is there already, or cannot be written.
    StoreError
        If the store cannot be read.
    """
    agent = check_name("agent", agent)
    if isinstance(file, str | Path):
        return _export_whole(store, agent, Path(file))
    if not callable(getattr(file, "writelines", None)):
        raise TypeError(f"file must be a path or a binary file, not {shown(file)}")
    newest, after, written = newest_seq(store, agent), 0, 0
    while after < newest and (rows := exported_rows(store, agent, after=after, limit=PAGE)):
        after = rows[-1]["seq"]
        rows = [row for row in rows if row["seq"] <= newest]
        file.writelines(_ENCODE(row) + b"\n" for row in rows)
        written += len(rows)
    return written


def _export_whole(store: Store, agent: str, path: Path) -> int:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already; nothing was written, choose another name")
    try:
        with part.open("xb") as file:
            count = export_trail(store, agent, file)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return count


def exported_rows(store: Store, agent: str, *, after: int, limit: int) -> list[dict[str, Any]]:
    """Return up to ``limit`` entries after entry ``after`` as :func:`export_trail` writes them, oldest first."""
    return [plain_entry(agent, entry) for entry in read_trail(store, agent, after=after, limit=limit)]


def plain_entry(agent: str, entry: Trace | Past) -> dict[str, Any]:
    """Return an entry as a line has it.

    Examples
    --------
    >>> from coherence.guard.patch_events import Serving
    >>> plain_entry("support", Past(7, 1.0, Serving()))
    {'kind': 'serving', 'agent': 'support', 'seq': 7, 'at': 1.0}
    """
    if isinstance(entry, Trace):
        return {"kind": "call", "agent": agent, **msgspec.structs.asdict(entry)}
    told = msgspec.to_builtins(entry.decision)
    return {"kind": told.pop("kind"), "agent": agent, "seq": entry.seq, "at": entry.at, **told}


class TrailEntry(msgspec.Struct, frozen=True):
    """One entry of a trail, as it was read."""

    line: int
    """Where it stands, 1 or more."""
    kind: str
    seq: int
    at: float
    """Wall time, Unix seconds."""
    happening: GuardedCall | Decision | None
    """None = of a kind that this version does not know."""


class _Head(msgspec.Struct):
    kind: str
    seq: Annotated[int, Meta(ge=1, le=2**53)]
    at: float
    agent: str | None = None


class _Call(msgspec.Struct):
    success: bool
    duration_s: float | None
    cost: float | None
    index: float | None
    epoch: Annotated[int, Meta(ge=-1, le=2**53)]
    patched: bool


_HEAD, _CALL = msgspec.json.Decoder(_Head).decode, msgspec.json.Decoder(_Call).decode
_DECISION = msgspec.json.Decoder(Decision).decode


def read_entries(file: IO[bytes]) -> Iterator[TrailEntry]:
    r"""Yield the entries that :func:`export_trail` has written; a line at a time is kept.

    Only each line is checked, and that all are about one agent; see :mod:`coherence.guard.verifier` for the rest.

    Raises
    ------
    TrailError
        For a line that is no entry, is torn, longer than :data:`MAX_LINE`, or about another agent.

    Examples
    --------
    >>> import io
    >>> [entry.kind for entry in read_entries(io.BytesIO(b'{"kind":"serving","seq":7,"at":1.0}\n'))]
    ['serving']
    """
    number, whose = 0, None
    while text := file.readline(MAX_LINE + 1):
        number += 1
        if len(text) > MAX_LINE:
            raise TrailError(f"line {number} is longer than {MAX_LINE:,} bytes")
        if text.isspace():
            continue
        try:
            head = _HEAD(text)
            happening = _happening(head.kind, text)
        except (msgspec.MsgspecError, RecursionError, UnicodeError, ValueError) as error:
            raise TrailError(f"line {number} is no entry of a guard's trail: {error}") from error
        whose = head.agent if whose is None else whose
        if head.agent not in (whose, None):
            raise TrailError(f"line {number} is about {head.agent!r:.80}, the lines before it are about {whose!r:.80}")
        yield TrailEntry(number, head.kind, head.seq, head.at, happening)


def _happening(kind: str, text: bytes) -> GuardedCall | Decision | None:
    if kind == "call":
        return GuardedCall(*msgspec.structs.astuple(_CALL(text)))
    if kind not in KNOWN_KINDS:
        return None
    found: Decision = _DECISION(text)
    if isinstance(found, Accepted):
        check_number("share", found.share, least=0.01, most=1)
    return found
