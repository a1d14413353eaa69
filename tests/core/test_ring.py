from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.ring import Ring


def ring_of(size: int, *seqs: int) -> Ring[str]:
    ring = Ring[str](size)
    for seq in seqs:
        ring.add(seq, f"item {seq}")
    return ring


def test_since_items_are_ordered_by_number_whatever_the_order_they_came_in() -> None:
    ring = ring_of(5, 3, 1, 5, 2, 4)
    assert ring.newest() == ["item 5", "item 4", "item 3", "item 2", "item 1"]
    assert ring.since(0) == ["item 1", "item 2", "item 3", "item 4", "item 5"]
    assert ring.latest == "item 5"


def test_ring_equal_numbers_stay_in_the_order_they_came() -> None:
    ring = Ring[str](3)
    for item in ("first", "second", "third"):
        ring.add(7, item)
    assert ring.newest() == ["third", "second", "first"]
    assert ring.latest == "third"


def test_newest_the_lowest_number_leaves_a_full_buffer_even_if_it_came_last() -> None:
    ring = ring_of(2, 5, 6, 1)
    assert ring.newest() == ["item 6", "item 5"]
    assert ring.latest == "item 6"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (None, ["item 3", "item 2", "item 1"]),
        (0, []),
        (-1, []),
        (2, ["item 3", "item 2"]),
        (3, ["item 3", "item 2", "item 1"]),
        (99, ["item 3", "item 2", "item 1"]),
    ],
)
def test_newest_returns_up_to_the_count_asked_for(count: int | None, expected: list[str]) -> None:
    assert ring_of(3, 1, 2, 3).newest(count) == expected


@pytest.mark.parametrize("count", [1.7, True, "2"])
def test_newest_refuses_a_count_that_is_no_int(count: object) -> None:
    with pytest.raises(TypeError, match=f"n must be an int, not {count!r}"):
        ring_of(3, 1).newest(count)  # type: ignore[arg-type]


def test_what_newest_returns_is_a_copy() -> None:
    ring = ring_of(3, 1, 2)
    ring.newest().clear()
    ring.since(0).clear()
    assert ring.newest() == ["item 2", "item 1"]


def test_since_returns_what_is_above_the_number_oldest_first() -> None:
    ring = ring_of(4, 10, 20, 30)
    assert ring.since(10) == ["item 20", "item 30"]
    assert ring.since(15) == ["item 20", "item 30"]
    assert ring.since(30) == []
    assert ring.since(10).missed == 0


def test_since_tells_how_many_above_the_number_have_left() -> None:
    ring = ring_of(2, 1, 2, 3, 4)  # 1 and 2 have left
    assert ring.since(0) == ["item 3", "item 4"]
    assert ring.since(0).missed == 2
    assert ring.since(1).missed == 1
    assert ring.since(2).missed == 0


def test_since_missed_is_counted_up_to_the_size() -> None:
    ring = ring_of(2, 1, 2, 3, 4, 5, 6)  # 1, 2, 3, 4 have left, 3 and 4 are remembered
    assert ring.since(0).missed == 2


def test_since_a_latecomer_does_not_push_a_higher_number_out_of_what_is_remembered_as_missed() -> None:
    ring = ring_of(1, 5, 6, 1)  # 5 left first, then 1; one number is remembered
    assert ring.since(4).missed == 1  # it is 5


@pytest.mark.parametrize("seq", [1.0, True, None])
def test_since_refuses_a_number_that_is_no_int(seq: object) -> None:
    with pytest.raises(TypeError, match=f"seq must be an int, not {seq!r}"):
        ring_of(3, 1).since(seq)  # type: ignore[arg-type]


def test_replace_puts_the_new_item_in_the_place_of_the_old_one() -> None:
    ring = ring_of(3, 1, 2, 3)
    old = ring.newest()[1]
    ring.replace(old, "new")
    assert ring.newest() == ["item 3", "new", "item 1"]
    assert ring.latest == "item 3"


def test_replace_of_the_latest_shows_in_latest() -> None:
    ring = ring_of(2, 1, 2)
    ring.replace(ring.newest(1)[0], "new")
    assert ring.latest == "new"
    assert ring.newest() == ["new", "item 1"]


def test_replace_goes_by_identity_and_only_once() -> None:
    ring = Ring[list[int]](3)
    equal = [[0], [0]]
    for seq, item in enumerate(equal):
        ring.add(seq, item)
    ring.replace(equal[0], [1])
    assert ring.newest() == [[0], [1]]


def test_replace_of_an_item_that_has_left_changes_nothing() -> None:
    ring = ring_of(2, 1)
    gone = ring.newest()[0]
    ring.add(2, "item 2")
    ring.add(3, "item 3")
    ring.replace(gone, "new")
    assert ring.newest() == ["item 3", "item 2"]


def test_since_size_zero_keeps_nothing_but_the_latest() -> None:
    ring = ring_of(0, 1, 3, 2)
    assert ring.newest() == []
    assert ring.since(0) == []
    assert ring.since(0).missed == 1  # at least one number is remembered
    assert ring.latest == "item 3"


def test_newest_size_one_keeps_the_highest() -> None:
    ring = ring_of(1, 2, 3, 1)
    assert ring.newest() == ["item 3"]
    assert ring.latest == "item 3"


def test_ring_an_empty_buffer_has_no_latest() -> None:
    ring = Ring[str](3)
    assert ring.latest is None
    assert ring.newest() == []
    assert ring.since(0) == []


@pytest.mark.parametrize("size", [1.5, "3", None, True])
def test_ring_a_size_that_is_no_int_is_refused(size: object) -> None:
    with pytest.raises(TypeError, match=f"history_size must be an int, not {size!r}"):
        Ring(size)  # type: ignore[arg-type]


def test_ring_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="history_size must be 0 or more, not -1"):
        Ring(-1)


@given(size=st.integers(0, 6), seqs=st.lists(st.integers(0, 12), max_size=30), above=st.integers(-1, 13))
def test_ring_it_behaves_like_a_sorted_list_cut_to_size(size: int, seqs: list[int], above: int) -> None:
    ring = Ring[tuple[int, int]](size)
    for arrival, seq in enumerate(seqs):
        ring.add(seq, (seq, arrival))
    everything = sorted((seq, arrival) for arrival, seq in enumerate(seqs))
    cut = max(len(everything) - size, 0)
    lost, kept = everything[:cut], everything[cut:]

    assert ring.newest() == kept[::-1]
    assert ring.latest == (everything[-1] if everything else None)
    found = ring.since(above)
    assert found == [item for item in kept if item[0] > above]
    remembered = lost[-max(size, 1) :]
    assert found.missed == sum(seq > above for seq, _ in remembered)


@pytest.fixture
def _eager_threads() -> Iterator[None]:
    """Switch threads as often as possible, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_eager_threads")
def test_ring_many_threads_adding_at_once_lose_nothing() -> None:
    threads, each = 8, 250
    ring = Ring[int](threads * each // 2)
    together = Barrier(threads)

    def add(offset: int) -> None:
        together.wait()
        for seq in range(offset, threads * each, threads):
            ring.add(seq, seq)

    workers = [Thread(target=add, args=(offset,)) for offset in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = ring.since(-1)
    assert found == list(range(1000, 2000))  # the upper half of 2,000 numbers
    assert len(found) + found.missed == 2000


def test_ring_memory_is_bounded_by_the_size() -> None:
    ring = Ring[bytes](50)
    for seq in range(1000):
        ring.add(seq, bytes(1000))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for seq in range(1000, 101_000):
            ring.add(seq, bytes(1000))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # 50 items of 1,033 bytes and their numbers; unbounded, 100,000 items would take 100 MB
    assert after - before < 200_000
    assert len(ring.newest()) == 50
