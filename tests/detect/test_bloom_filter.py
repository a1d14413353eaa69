"""Values that left a memory are known to have been there; hardly anything else is."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.bloom_filter import BloomFilter
from coherence.detect.sources import MAX_FADED, MAX_FADED_WORDS
from coherence.detect.values import digest


def test_a_full_table_knows_all_of_its_own_and_one_in_a_hundred_others() -> None:
    for most, size in ((MAX_FADED, 1 << 15), (MAX_FADED_WORDS, 1 << 16)):
        faded = BloomFilter()
        assert all(
            faded.add([digest(f"word {at + step}") for at in range(250)], most=most) for step in range(0, most, 250)
        )
        assert len(faded.table) == size
        assert all(digest(f"word {at}") in faded for at in range(0, most, 7))
        # 5 places of 10.49 bits each: (1 - exp(-5 / 10.49)) ** 5 = 0.0078
        assert sum(digest(f"other {at}") in faded for at in range(10_000)) < 120
        assert not faded.add([1], most=most)
        assert (faded.count, faded.table) == (0, bytearray())
        assert digest("word 0") not in faded


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_faded_it_is_the_same_when_taken_up_again(digests: list[int]) -> None:
    faded = BloomFilter()
    faded.add(digests, most=1_000)
    again = msgspec.json.decode(msgspec.json.encode(faded), type=BloomFilter)
    assert again == msgspec.msgpack.decode(msgspec.msgpack.encode(faded), type=BloomFilter) == faded
    assert all(each in again for each in digests)
    assert 5 not in BloomFilter()
