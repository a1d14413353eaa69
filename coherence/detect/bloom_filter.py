"""Bloom filters: membership of many digests or tokens in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from zlib import crc32

import msgspec
import numpy as np

HASHES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
"""Odd factors of multiplicative hashing, modulo 2**64; the highest bits of a product are a place in the table."""

_FACTORS = np.array(HASHES, dtype=np.uint64)

BITS_EACH = 10
"""Bits of the table for each digest it is for, at least: 0.8 % of others are taken for known ones when it is full."""


class BloomFilter(msgspec.Struct):
    """The digests that left a table, as a Bloom filter; empty until one does, constant in size from then on.

    References
    ----------
    B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.

    Examples
    --------
    >>> faded = BloomFilter()
    >>> faded.add([17, 2**32 - 1], most=25_000)
    True
    >>> 17 in faded, 18 in faded, len(faded.table)
    (True, False, 32768)
    """

    table: bytearray = msgspec.field(default_factory=bytearray)
    count: int = 0
    """Digests that were added; one that was added twice counts twice."""

    def add(self, digests: Sequence[int], *, most: int) -> bool:
        """Take in digests (in [0, 2**32)), and return whether there was room: a full table begins anew without them.

        Parameters
        ----------
        digests : sequence of int
            What has left.
        most : int
            How many the table is for; always the same for one table.
        """
        if self.count + len(digests) > most:
            self.table, self.count = bytearray(), 0
            return False
        bits = (BITS_EACH * most - 1).bit_length()
        self.table = self.table or bytearray(1 << bits - 3)
        codes = np.array(digests, dtype=np.uint64)
        cells = np.frombuffer(self.table, dtype=np.uint8)
        places = (np.outer(_FACTORS, codes) >> np.uint64(64 - bits)).ravel()
        at, marks = (places >> np.uint64(3)).astype(np.intp), np.uint8(1) << (places & np.uint64(7)).astype(np.uint8)
        while at.size:
            cells[at] |= marks
            lost = (cells[at] & marks) == 0  # of two in one cell, one was written
            at, marks = at[lost], marks[lost]
        self.count += len(digests)
        return True

    def __contains__(self, digest: int) -> bool:
        """Tell whether a digest was added, or looks as if."""
        table = self.table
        if not table:
            return False
        shift = 64 - (8 * len(table) - 1).bit_length()
        places = ((digest * factor & 0xFFFF_FFFF_FFFF_FFFF) >> shift for factor in HASHES)
        return all(table[place >> 3] >> (place & 7) & 1 for place in places)


BITS = 1 << 17
"""Bits of a table: 16 KiB."""

CAPACITY = 15_000
"""Tokens of a table; a further one begins the next. A full table takes 4 % of unknown tokens for known ones."""


_EMPTY = bytes(BITS // 8)


@lru_cache(maxsize=20_000)  # the words of one task come again and again
def _bits_of(token: str) -> tuple[int, int, int, int]:
    """Return the two bytes of a token in a table, each with its bit."""
    code = crc32(token.encode("utf-8", "surrogatepass"))
    first, second = code % BITS, (code * 2_654_435_761 >> 15) % BITS  # Knuth's multiplicative hash
    return first >> 3, 1 << (first & 7), second >> 3, 1 << (second & 7)


class BloomWindow(msgspec.Struct):
    """The 15,000 to 30,000 different tokens that came last, as two tables of bits (Bloom filters with two hashes).

    What has been added is always found while its table lasts; of what has not, up to 4 % a table are found all the
    same. The tables are empty until needed, and constant in size from then on.

    References
    ----------
    B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.

    Examples
    --------
    >>> seen = BloomWindow()
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
        added = [
            (token, bits)
            for token in frozenset(tokens)
            if not (now[(bits := _bits_of(token))[0]] & bits[1] and now[bits[2]] & bits[3])
        ]
        for token, (first, one, second, two) in added:  # set once all are looked up: in whatever order they come
            now[first] |= one
            now[second] |= two
            if not (before[first] & one and before[second] & two):
                new.add(token)
        self.count += len(added)
        if self.count > CAPACITY:
            self.before, self.now, self.count = now, bytearray(), 0
        return new
