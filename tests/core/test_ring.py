from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.ring import Ring


def ring_of(size: int, *seqs: int) -> Ring[str]:
    ring = Ring[str](size)
    for seq in seqs:
        ring.add(seq, f"item {seq}")
    return ring


BAD: list[tuple[str, Callable[[Any], object], Any]] = [
    ("history_size must be an int", Ring, "3"),
    ("history_size must be an int", Ring, True),
    ("history_size must be 0 or more", Ring, -1),
    ("n must be an int", ring_of(3, 1).newest, 1.7),
    ("seq must be an int", ring_of(3, 1).since, None),
]


@pytest.mark.parametrize(("message", "use", "number"), BAD)
def test_ring_a_wrong_number_is_refused_by_name(message: str, use: Callable[[Any], object], number: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{message}, not {number!r}"):
        use(number)


def test_replace_puts_the_new_item_in_the_place_of_the_old_one() -> None:
    ring = ring_of(3, 1, 2, 3)
    old = ring.newest()[1]
    ring.replace(old, "new")
    assert ring.newest() == ["item 3", "new", "item 1"]
    assert ring.latest == "item 3"


def test_replace_of_an_item_that_has_left_changes_nothing() -> None:
    ring = ring_of(2, 1)
    gone = ring.newest()[0]
    ring.add(2, "item 2")
    ring.add(3, "item 3")
    ring.replace(gone, "new")
    assert ring.newest() == ["item 3", "item 2"]


@given(size=st.integers(0, 6), seqs=st.lists(st.integers(0, 12), max_size=30), above=st.integers(-1, 13))
def test_ring_it_behaves_like_a_sorted_list_cut_to_size(size: int, seqs: list[int], above: int) -> None:
    ring = Ring[tuple[int, int]](size)
    for arrival, seq in enumerate(seqs):
        ring.add(seq, (seq, arrival))
    everything = sorted((seq, arrival) for arrival, seq in enumerate(seqs))
    cut = max(len(everything) - size, 0)
    lost, kept = everything[:cut], everything[cut:]

    assert ring.newest() == kept[::-1]
    assert ring.newest(above) == kept[::-1][: max(above, 0)]
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
