"""An agent's trail as JSON lines, for those who want plain files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import msgspec

from coherence.guard.traces import read_calls, read_decisions
from coherence.store.store import Store

PAGE = 1_000
"""Calls read at once."""

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
    decisions = {past.seq: past for past in read_decisions(store, agent, -1)}
    waiting = sorted(decisions, reverse=True)
    written = 0
    for seq, line in _calls(store, agent):
        while waiting and waiting[-1] < seq:
            written += _write(file, _decision(decisions[waiting.pop()]))
        written += _write(file, line)
    while waiting:
        written += _write(file, _decision(decisions[waiting.pop()]))
    return written


def _calls(store: Store, agent: str) -> Iterator[tuple[int, bytes]]:
    after = 0
    while page := read_calls(store, agent, after=after, limit=PAGE):
        for trace in page:
            yield trace.seq, _ENCODE({"kind": "call", **msgspec.structs.asdict(trace)})
        after = page[-1].seq


def _decision(past: object) -> bytes:
    told = msgspec.to_builtins(past)
    return _ENCODE({"kind": told["decision"].pop("kind"), "seq": told["seq"], "at": told["at"], **told["decision"]})


def _write(file: IO[bytes], line: bytes) -> int:
    file.write(line + b"\n")
    return 1
