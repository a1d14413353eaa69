"""An agent's trail as JSON lines, for those who want plain files."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from coherence.guard.traces import read_trail
from coherence.store.store import Store

PAGE = 200
"""Entries read at once; each is less than 500 kB."""

_ENCODE = msgspec.json.Encoder().encode


def export_trail(store: Store, agent: str, file: IO[bytes]) -> int:
    """Write an agent's calls and decisions in their order, one JSON object a line; return how many.

    A call has ``kind`` = ``call`` and the fields of :class:`~coherence.guard.traces.Trace`; a decision has its own kind
    and fields, with ``seq`` and ``at``.

    Parameters
    ----------
    store : Store
        Where the trail is; other processes may write meanwhile.
    agent : str
        Whose trail it is.
    file : file
        Open for bytes.
    """
    after = written = 0
    while rows := exported_rows(store, agent, after=after, limit=PAGE):
        file.writelines(_ENCODE(row) + b"\n" for row in rows)
        written += len(rows)
        after = rows[-1]["seq"]
    return written


def exported_rows(store: Store, agent: str, *, after: int, limit: int) -> list[dict[str, Any]]:
    """Return up to ``limit`` entries after entry ``after`` as :func:`export_trail` writes them, oldest first."""
    found = []
    for entry in read_trail(store, agent, after=after, limit=limit):
        told = msgspec.to_builtins(entry)
        decision = told.pop("decision", None)
        found.append(
            {"kind": "call", **told} if decision is None else {"kind": decision.pop("kind"), **told, **decision}
        )
    return found
