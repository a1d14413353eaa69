"""Results that are kept, for as long as they are short."""

from __future__ import annotations

import msgspec

from coherence.detect.misplaced import misplaced
from coherence.detect.records import MAX_KEPT, MAX_RESULT, Kept, keep_result

FLATS = "flat 3: Kowalski\nflat 4: Okafor\nflat 5: Lindqvist"


def test_keep_result_says_nothing_once_a_result_was_too_long() -> None:
    kept = Kept()
    keep_result(kept, 3, FLATS)
    assert list(misplaced(kept, "Lindqvist lives in flat 4.", ()))
    keep_result(kept, 4, "x" * (MAX_RESULT + 1))
    assert not list(misplaced(kept, "Lindqvist lives in flat 4.", ()))


def test_keep_result_forgets_the_oldest_and_can_be_stored() -> None:
    kept = Kept()
    for at in range(10):
        keep_result(kept, at, "y" * MAX_RESULT)
    assert sum(len(each.text) for each in kept.results) <= MAX_KEPT
    assert not kept.whole
    keep_result(kept, 11, "\ud800 a lone surrogate")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Kept) == kept
