"""An agent's trail as JSON lines, for those who want plain files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

import msgspec

from coherence.core.files import open_new
from coherence.core.validation import shown
from coherence.guard.patch_events import Decision, GuardedCall
from coherence.guard.traces import read_trail
from coherence.monitor.arguments import check_name
from coherence.store.store import Store

_ENCODE = msgspec.json.Encoder().encode


def export_trail(store: Store, agent: str, file: str | Path | IO[bytes]) -> int:
    """Write an agent's calls and decisions in their order, one JSON object a line; return how many.

    A call has ``kind`` = ``call`` and the fields of :class:`~coherence.guard.traces.Trace`; a decision has its own kind
    and fields, with ``seq`` and ``at``. Each has ``agent``.

    Parameters
    ----------
    store : Store
        Where the trail is. Other processes may write meanwhile: what was there at the beginning is exported.
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
    if not callable(getattr(file, "write", None)):
        raise TypeError(f"file must be a path or a binary file, not {shown(file)}")
    written = 0
    for seq, at, happening in read_trail(store, agent):
        file.write(_ENCODE(plain_entry(agent, seq, at, happening)) + b"\n")
        written += 1
    return written


def _export_whole(store: Store, agent: str, path: Path) -> int:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    # a link that leads nowhere is in the way as well
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already; nothing was written, choose another name")
    try:
        with open_new(part) as file:
            count = export_trail(store, agent, file)
        # a reader never meets half a file under this name
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return count


def plain_entry(agent: str, seq: int, at: float, happening: GuardedCall | Decision) -> dict[str, Any]:
    """Return an entry as a line has it.

    Examples
    --------
    >>> from coherence.guard.patch_events import Decision
    >>> plain_entry("support", 7, 1.0, Decision("serving"))
    {'kind': 'serving', 'agent': 'support', 'seq': 7, 'at': 1.0}
    """
    if isinstance(happening, GuardedCall):
        return {"kind": "call", "agent": agent, "seq": seq, "at": at, **msgspec.structs.asdict(happening)}
    fields = msgspec.to_builtins(happening)
    return {"kind": fields.pop("kind"), "agent": agent, "seq": seq, "at": at, **fields}
