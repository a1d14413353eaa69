"""Items that left a memory are known to have been there, and hardly any other is; both filters are bounded."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from coherence.detect.bloom_filter import BITS, CAPACITY, HASHES, BloomFilter, BloomWindow
from coherence.detect.sources import MAX_FADED, MAX_FADED_WORDS
from coherence.detect.values import digest


def test_bloom_filter_that_is_full_knows_all_of_its_own_and_one_in_a_hundred_others() -> None:
    for most, size in ((MAX_FADED, 1 << 15), (MAX_FADED_WORDS, 1 << 16)):
        faded = BloomFilter()
        assert faded.add([digest(f"word {at}") for at in range(most)], most=most)
        assert len(faded.table) == size
        assert all(digest(f"word {at}") in faded for at in range(0, most, 7))
        # 5 places of 10.49 bits each: (1 - exp(-5 / 10.49)) ** 5 = 0.0078
        assert sum(digest(f"other {at}") in faded for at in range(10_000)) < 120
        assert not faded.add([1], most=most)
        assert (faded.count, faded.table, digest("word 0") in faded) == (0, bytearray(), False)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_bloom_filter_sets_each_place_of_each_digest_also_of_several_in_one_cell(digests: list[int]) -> None:
    faded = BloomFilter()
    faded.add(digests, most=60)  # 1,024 bits
    places = {(digest * factor % 2**64) >> 54 for digest in digests for factor in HASHES}
    assert {place for place in range(1_024) if faded.table[place >> 3] >> (place & 7) & 1} == places


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50), st.lists(st.text(max_size=20)))
def test_bloom_filters_know_what_was_added_also_when_they_are_taken_up_again(
    digests: list[int], tokens: list[str]
) -> None:
    faded, seen = BloomFilter(), BloomWindow()
    faded.add(digests, most=1_000)
    assert seen.add(tokens) <= set(tokens)
    for codec in (msgspec.json, msgspec.msgpack):
        again = codec.decode(codec.encode(faded), type=BloomFilter)
        assert again == faded and all(each in again for each in digests)
        window = codec.decode(codec.encode(seen), type=BloomWindow)
        assert window == seen and not window.add(tokens)


def test_bloom_window_takes_few_unknown_tokens_for_known_in_any_order() -> None:
    names = [f"known{number}" for number in range(10_000)]
    forth, back = BloomWindow(), BloomWindow()
    assert forth.add(names) == back.add(reversed(names)) == set(names)  # tokens that come together hide none
    assert forth == back
    # two bits of 2**17 each: (1 - exp(-2 * 10,000 / 2**17))**2 = 2 % are expected
    assert 950 <= len(forth.add(f"other{number}" for number in range(1_000))) <= 1_000


def test_bloom_window_is_bounded_and_forgets_the_oldest_but_not_what_keeps_coming() -> None:
    seen = BloomWindow()
    seen.add(["first"])
    for number in range(20):
        assert seen.add(["again"]) == ({"again"} if number == 0 else set())
        seen.add(f"{number}-{each}" for each in range(CAPACITY // 4))
    assert len(msgspec.msgpack.encode(seen)) < 2 * BITS // 8 + 100
    assert seen.add(["first"]) == {"first"}
    assert not seen.add(["19-0"])
