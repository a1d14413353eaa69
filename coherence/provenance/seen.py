"""Which tokens an agent has come across, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import msgspec

BITS = 1 << 17
"""Bits of a table: 16 KiB."""

CAPACITY = 15_000
"""Tokens of a table; a further one begins the next. A full table takes 4 % of unknown tokens for known ones."""


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
        new = {token for token in tokens if self._put(token)}
        if self.count > CAPACITY:
            self.before, self.now, self.count = self.now, bytearray(), 0
        return new

    def _put(self, token: str) -> bool:
        """Take in a token, one of the older table anew, and tell whether it was in neither."""
        code = crc32(token.encode("utf-8", "surrogatepass"))
        first, second = code % BITS, (code * 2_654_435_761 >> 15) % BITS  # Knuth's multiplicative hash
        if self._has(self.now, first, second):
            return False
        self.now[first >> 3] |= 1 << (first & 7)
        self.now[second >> 3] |= 1 << (second & 7)
        self.count += 1
        return not self._has(self.before, first, second)

    @staticmethod
    def _has(table: bytearray, first: int, second: int) -> bool:
        return bool(table and table[first >> 3] & 1 << (first & 7) and table[second >> 3] & 1 << (second & 7))
