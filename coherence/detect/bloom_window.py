"""Which tokens an agent has come across, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import msgspec

BITS = 1 << 17
"""Bits of a table: 16 KiB."""

CAPACITY = 15_000
"""Tokens of a table; a further one begins the next. A full table takes 4 % of unknown tokens for known ones."""


_EMPTY = bytes(BITS // 8)


class Seen(msgspec.Struct):
    """The 15,000 to 30,000 different tokens that came last, as two tables of bits (Bloom filters with two hashes).

    What has been added is always found while its table lasts; of what has not, up to 4 % a table are found all the
    same. The tables are empty until needed, and constant in size from then on.

    References
    ----------
    B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.

    Examples
    --------
    >>> seen = Seen()
    >>> sorted(seen.add(["anna", "2024"])), sorted(seen.add(["anna", "bert"]))
    (['2024', 'anna'], ['bert'])
    """

    now: bytearray = msgspec.field(default_factory=bytearray)
    before: bytearray = msgspec.field(default_factory=bytearray)
    count: int = 0
    """Tokens in the table ``now``."""

    def add(self, tokens: Iterable[str]) -> set[str]:
        """Take in tokens and return those that were new."""
        if not self.now:
            self.now = bytearray(BITS // 8)
        now, before, new = self.now, self.before or _EMPTY, set()
        places: list[int] = []
        for token in frozenset(tokens):
            code = crc32(token.encode("utf-8", "surrogatepass"))
            first, second = code % BITS, (code * 2_654_435_761 >> 15) % BITS  # Knuth's multiplicative hash
            one, two = 1 << (first & 7), 1 << (second & 7)
            if now[first >> 3] & one and now[second >> 3] & two:
                continue
            places += (first, second)  # set once all are looked up: in whatever order they come
            if not (before[first >> 3] & one and before[second >> 3] & two):
                new.add(token)
        for place in places:
            now[place >> 3] |= 1 << (place & 7)
        self.count += len(places) // 2
        if self.count > CAPACITY:
            self.before, self.now, self.count = now, bytearray(), 0
        return new
