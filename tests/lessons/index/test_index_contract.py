"""What every tier must do, whatever is added, removed, searched, saved and loaded, in any order."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from coherence.lessons.index import base, local, rows, scan, table
from coherence.lessons.index.base import Mark, VectorIndex
from coherence.lessons.index.local import LocalIndex
from coherence.lessons.index.remote import QdrantIndex

D = 12
TIERS = ("few", "flat", "binary", "auto", "remote")
COSINE_ERROR = 1e-3
"""Both vectors in float16: each component is off by 2**-11 of itself at most, a cosine by twice that at most."""


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Move the switches between the tiers to where tests can reach them."""
    name: str = request.param
    if name != "few":
        monkeypatch.setattr(table, "FEW_ROWS", 12 if name == "auto" else 0)
        monkeypatch.setattr(table, "MAX_FLAT", {"binary": 0, "auto": 40}.get(name, 10**6))
        monkeypatch.setattr(table, "LEAST_BINARY", {"binary": 0, "auto": 30}.get(name, 0))
    monkeypatch.setattr(table, "DEAD_ROWS", 10)
    monkeypatch.setattr(scan, "CANDIDATES", 8)
    monkeypatch.setattr(scan, "CANDIDATES_EACH", 1)
    monkeypatch.setattr(scan, "WORTH_CODES", 1)
    monkeypatch.setattr(scan, "SPARE", 2)
    monkeypatch.setattr(local, "IN_MEMORY_ROWS", 15)
    monkeypatch.setattr(rows, "CHUNK_ROWS", 7)
    monkeypatch.setattr(base, "CHUNK_ROWS", 5)
    return name


def make(tier: str) -> VectorIndex:
    return QdrantIndex(D, ":memory:", "f") if tier == "remote" else LocalIndex(D)


@pytest.fixture
def index(tier: str) -> Iterator[VectorIndex]:
    made = make(tier)
    yield made
    if isinstance(made, QdrantIndex):
        made.close()


def vectors(ids: Any, length: float = 1.0) -> npt.NDArray[np.float32]:
    rows = [length * np.random.default_rng(int(id)).standard_normal(D) for id in ids]
    return np.array(rows, np.float32).reshape(len(rows), D)


def cosines(query: npt.NDArray[Any], ids: list[int]) -> npt.NDArray[np.float64]:
    wide = vectors(ids).astype(np.float64)
    result: npt.NDArray[np.float64] = wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)
    return result


class Machine(RuleBasedStateMachine):
    """An index beside a set of ids; the oracle computes every cosine."""

    tier = "few"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.index = make(self.tier)
        self.ids: set[int] = set()
        self.next = 1
        self.removals = 0
        self.kept: tuple[set[int], Mark] | None = None

    def teardown(self) -> None:
        if isinstance(self.index, QdrantIndex):
            self.index.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def mark(self) -> Mark:
        return Mark("f", D, self.next - 1, self.removals)

    @rule(count=st.integers(1, 30), reverse=st.booleans())
    def add(self, count: int, reverse: bool) -> None:
        ids = list(range(self.next, self.next + count))[:: -1 if reverse else 1]
        self.index.add(ids, vectors(ids, length=float(1 + self.next % 3)))
        self.ids |= set(ids)
        self.next += count

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        there = data.draw(st.sets(st.sampled_from(sorted(self.ids)), min_size=1))
        self.removals += 1
        assert self.index.remove([*sorted(there), 10**6]) == len(there)  # the million was never there
        self.ids -= there

    @rule(query=st.integers(0, 200), k=st.integers(1, 60))
    def search(self, query: int, k: int) -> None:
        vector = vectors([query])[0]
        ids, found = self.index.search(vector, k)
        assert ids.dtype == np.int64
        assert found.dtype == np.float32
        assert len(ids) == len(found) == len(set(ids.tolist())) == min(k, len(self.ids))
        assert set(ids.tolist()) <= self.ids
        assert [*zip(-found, ids, strict=True)] == sorted(zip(-found, ids, strict=True))
        assert np.allclose(found, cosines(vector, ids.tolist()), atol=COSINE_ERROR)
        if self.index.stats().tier != "binary" and self.ids:
            best = np.sort(cosines(vector, sorted(self.ids)))[::-1][: len(ids)]
            assert np.allclose(found, best, atol=COSINE_ERROR)
        if query in self.ids:
            assert ids[0] == query  # nothing is nearer to a vector than itself, in codes too

    @rule()
    def save(self) -> None:
        self.index.save(self.folder, self.mark)
        self.kept = set(self.ids), self.mark

    @precondition(lambda self: self.tier != "remote")  # what is on a server needs no loading
    @rule()
    def load(self) -> None:
        fresh = make(self.tier)
        mark = fresh.load(self.folder, "f")
        if self.kept is None:
            assert mark is None
            return
        ids, kept = self.kept
        assert mark == kept
        assert fresh.missing(range(self.next)).tolist() == sorted(set(range(self.next)) - ids)
        if ids == self.ids:
            self.index = fresh

    @invariant()
    def counted(self) -> None:
        assert self.index.stats().count == len(self.ids)
        assert self.index.missing([*sorted(self.ids)[:3], 10**6]).tolist() == [10**6]


@pytest.mark.slow
def test_index_contract_whatever_happens_in_any_order_agrees_with_an_oracle(tier: str) -> None:
    steps, examples = (12, 8) if tier == "remote" else (25, 40)
    machine = type("Machine", (Machine,), {"tier": tier})
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=slow,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
        ),
    )


def test_index_contract_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    ids, found = index.search(np.ones(D), 3)
    assert (ids.shape, found.shape) == ((0,), (0,))
    assert index.remove([1]) == 0
    assert index.stats().count == 0


@pytest.mark.parametrize("k", [0, -1, True, 1.5])
def test_index_contract_k_must_be_a_positive_int(index: VectorIndex, k: Any) -> None:
    with pytest.raises(ValueError, match="k must be an int of 1 or above"):
        index.search(np.ones(D), k)


BAD = {
    "holds NaN or infinity": np.array([1.0, np.nan] + [0.0] * (D - 2)),
    "id 8 holds NaN or infinity": np.array([np.inf] + [0.0] * (D - 1)),
    "id 8 holds only zeros": np.zeros(D),
}


@pytest.mark.parametrize("message", BAD)
def test_index_contract_a_vector_that_is_none_is_refused_and_nothing_is_added(index: VectorIndex, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        index.add([7, 8], np.array([np.ones(D), BAD[message]]))
    with pytest.raises(ValueError, match="the vector holds"):
        index.search(BAD[message], 1)
    assert index.stats().count == 0


def test_index_contract_wrong_shapes_and_ids_are_refused(index: VectorIndex) -> None:
    for shape in [(1, D + 1), (2, D), (D,)]:
        with pytest.raises(ValueError, match=r"vectors must have shape \(1, 12\)"):
            index.add([1], np.ones(shape))
    with pytest.raises(ValueError, match=r"must have shape \(12,\)"):
        index.search(np.ones(D + 1), 1)
    with pytest.raises(ValueError, match="ids must be integers"):
        index.add([1.5], np.ones((1, D)))
    with pytest.raises(ValueError, match="ids must be 0 or above"):
        index.add([-1], np.ones((1, D)))
    with pytest.raises(ValueError, match="id 3 is given twice"):
        index.add([3, 4, 3], np.ones((3, D)))
    index.add([5], np.ones((1, D)))
    with pytest.raises(ValueError, match="id 5 is in the index already"):
        index.add([4, 5], np.ones((2, D)))
    assert index.missing([5, 4]).tolist() == [4]


def test_index_contract_lengths_near_the_ends_of_float_make_no_difference(index: VectorIndex) -> None:
    index.add([1, 2], np.array([[1e300] + [1e300] * (D - 1), [1e-300] + [-1e-300] * (D - 1)]))
    ids, found = index.search(np.full(D, 1e-30), 2)
    assert ids.tolist() == [1, 2]
    # a = (1, .., 1) and b = (1, -1, .., -1): cosine (1 - 11) / 12
    assert found.tolist() == pytest.approx([1.0, -10 / 12], abs=COSINE_ERROR)


def test_index_contract_equal_vectors_come_by_id(index: VectorIndex) -> None:
    ids = list(range(30, 0, -1))
    index.add(ids, np.ones((30, D)))
    found, _ = index.search(np.ones(D), 30)
    assert found.tolist() == sorted(ids)


def test_index_contract_removed_neighbours_do_not_hide_the_ones_behind_them(index: VectorIndex) -> None:
    near = np.ones((100, D)) + np.linspace(0, 0.01, 100 * D).reshape(100, D)
    index.add(range(100), near)
    index.add(range(100, 140), -np.ones((40, D)) + 0.5 * vectors(range(40)))
    index.remove(range(1, 100))
    ids, _ = index.search(np.ones(D), 5)
    assert ids[0] == 0
    assert len(ids) == 5
    assert set(ids[1:].tolist()) <= set(range(100, 140))


def test_index_contract_a_removed_id_may_come_back(index: VectorIndex) -> None:
    index.add([1, 2], vectors([1, 2]))
    assert index.remove([2, 2]) == 1
    index.add([2], vectors([3]))
    assert index.search(vectors([3])[0], 1)[0].tolist() == [2]


@pytest.mark.parametrize("bad", [0, -3, 1.5, True, "8"])
def test_index_contract_dimensions_must_be_a_positive_int(bad: Any) -> None:
    with pytest.raises(ValueError, match="dimensions must be an int of 1 or above"):
        LocalIndex(bad)
    with pytest.raises(ValueError, match="dimensions must be an int of 1 or above"):
        QdrantIndex(bad, ":memory:")
