"""Rows without text: of each text a fingerprint and its length, of everything else the numbers and the decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from coherence.core.decisions import Decision, Signal
from coherence.core.events import Event
from coherence.core.files import check_output, open_input, open_new
from coherence.core.readings import Evidence
from coherence.monitor.codec import ReadingData, encode_record
from coherence.monitor.tick_result import Record
from coherence.policy.rules import reserved_names
from coherence.store.errors import StoreError
from coherence.store.rows import EventRow

KEY_BYTES = 32


def read_key(store: Path) -> bytes:
    """Return the key of a store's fingerprints, from the file beside it, which is made if missing.

    Raises
    ------
    StoreError
        It cannot be read or made.
    """
    path = Path(f"{store}.key")
    try:
        check_output(path)
        with suppress(FileExistsError), open_new(path) as file:
            file.write(os.urandom(KEY_BYTES))
        with open_input(path) as file:
            key = file.read(KEY_BYTES + 1)
    except OSError as error:
        raise StoreError(path, f"the key of fingerprints cannot be read or made ({error.strerror})") from error
    if len(key) != KEY_BYTES:
        raise StoreError(path, f"the key of fingerprints must have {KEY_BYTES} bytes, not {len(key)}; delete the file")
    return key


class NoText:
    """Encoder of records that leaves their texts out.

    Equal texts have equal fingerprints in all sessions of a store. Without its key nobody finds out a text by trying.

    Parameters
    ----------
    key : bytes
        Of the fingerprints.
    rules : iterable of str
        Names of rules that are not this package's own, which are kept as they are.

    Examples
    --------
    >>> blank = NoText(bytes(32))
    >>> blank.fingerprint("hello")
    '#633b2e350774f8a5:5'
    """

    def __init__(self, key: bytes, rules: Iterable[str] = ()) -> None:
        self._key = key
        self._words = frozenset({*words(), *reserved_names(), *rules})

    def fingerprint(self, text: str) -> str:
        """Return what is kept of a text: a keyed hash and the number of characters."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), key=self._key, digest_size=8)
        return f"#{digest.hexdigest()}:{len(text)}"

    def row(self, record: Record) -> EventRow:
        """Return the row of a record, with a fingerprint in place of each text."""
        made, known = encode_record(record), self._words
        result = record.result
        if result is not None:
            # Names of metrics and ids of guidance are made by code, whatever the agent does.
            names = {outcome.firing for outcome in result.outcomes}
            if result.reading is not None:
                names |= result.reading.metrics.keys()
            if (guidance := result.decision.guidance) is not None:
                names |= {guidance.id, guidance.pattern}
            known |= names
        if made.delivered is not None:
            known |= {made.delivered}
        read, decided, firing = made.reading, made.decision, made.firing
        replace = msgspec.structs.replace
        return replace(
            made,
            data=self._blank(made.data, known),
            reading=None if read is None else replace(read, data=self._blank(read.data, known)),
            decision=None if decided is None else replace(decided, data=self._blank(decided.data, known)),
            firing=None if firing is None else replace(firing, text=""),
        )

    def _blank(self, data: str, known: frozenset[str]) -> str:
        def walk(value: Any) -> Any:
            if isinstance(value, str):
                return word(value)
            if isinstance(value, dict):
                return {word(key): walk(item) for key, item in value.items()}
            return [walk(item) for item in value] if isinstance(value, list) else value

        def word(text: str) -> str:
            return text if not text or text in known else self.fingerprint(text)

        return msgspec.json.encode(walk(msgspec.json.decode(data))).decode()


@cache
def words() -> frozenset[str]:
    """Return the names of all fields of what is recorded, and all values that can be nothing but one of a few words."""
    # the last two stand in dicts of ours, whose values the schema leaves open
    kinds = (ReadingData, Decision, Event, Evidence, Signal)
    tops, parts = msgspec.json.schema_components(kinds, schema_hook=lambda _: {"type": "object"})
    found: set[str] = set()
    waiting: list[Any] = [*tops, *parts.values()]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found.update(each.get("properties", ()))
            found.update(value for value in (*each.get("enum", ()), each.get("const")) if isinstance(value, str))
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
    return frozenset(found)
