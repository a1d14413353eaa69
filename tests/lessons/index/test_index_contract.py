"""The contract of every index, with vectors added, removed, searched, saved and loaded in any order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from coherence.lessons.index import coded, snapshot
from coherence.lessons.index.base import Mark, VectorIndex
from coherence.lessons.index.coded import CodedIndex
from coherence.lessons.index.exact import ExactIndex

D = 12
COSINE_ERROR = 1e-3
"""Rows in float16: each component is off by 2**-11 of itself at most, a cosine by as much."""


@pytest.fixture(params=["flat", "binary"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name the kind of index, with its numbers where tests can reach them."""
    monkeypatch.setattr(coded, "CANDIDATES", 8)
    monkeypatch.setattr(coded, "CANDIDATES_EACH", 1)
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 7)
    name: str = request.param
    return name


def make(tier: str) -> VectorIndex:
    return ExactIndex(D) if tier == "flat" else CodedIndex(D)


@pytest.fixture
def index(tier: str) -> VectorIndex:
    return make(tier)


def vectors(ids: Any, length: float = 1.0) -> npt.NDArray[np.float32]:
    rows = [length * np.random.default_rng(int(id)).standard_normal(D) for id in ids]
    return np.array(rows, np.float32).reshape(len(rows), D)


def cosines(query: npt.NDArray[Any], ids: list[int]) -> npt.NDArray[np.float64]:
    wide = vectors(ids).astype(np.float64)
    result: npt.NDArray[np.float64] = wide @ query / np.linalg.norm(wide, axis=1) / np.linalg.norm(query)
    return result


class Machine(RuleBasedStateMachine):
    """An index beside a set of ids; the oracle computes every cosine."""

    tier = "flat"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.index = make(self.tier)
        self.ids: set[int] = set()
        self.next = 1
        self.removals = 0
        self.kept: tuple[set[int], Mark] | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(count=st.integers(1, 30), reverse=st.booleans())
    def add(self, count: int, reverse: bool) -> None:
        ids = list(range(self.next, self.next + count))[:: -1 if reverse else 1]
        self.index.add(ids, vectors(ids, length=float(1 + self.next % 3)))
        self.ids |= set(ids)
        self.next += count

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), how=st.sampled_from(["remove", "replace"]))
    def remove(self, data: st.DataObject, how: str) -> None:
        there = sorted(data.draw(st.sets(st.sampled_from(sorted(self.ids)), min_size=1)))
        if how == "replace":
            self.index.add(there, vectors(there))  # the same again, as after an attempt that broke off
            return
        self.removals += 1
        self.index.remove([*there, 10**6])  # the million was never there
        self.ids -= set(there)

    @rule(query=st.integers(0, 200), k=st.integers(1, 60))
    def search(self, query: int, k: int) -> None:
        vector = vectors([query])[0]
        ids, found = self.index.search(vector, k)
        assert (str(ids.dtype), str(found.dtype)) == ("int64", "float32")
        assert len(ids) == len(found) == len(set(ids.tolist())) == min(k, len(self.ids))
        assert set(ids.tolist()) <= self.ids
        assert [*zip(-found, ids, strict=True)] == sorted(zip(-found, ids, strict=True))
        assert np.allclose(found, cosines(vector, ids.tolist()), atol=COSINE_ERROR)
        if self.tier != "binary" and self.ids:
            best = np.sort(cosines(vector, sorted(self.ids)))[::-1][: len(ids)]
            assert np.allclose(found, best, atol=COSINE_ERROR)
        if query in self.ids:
            assert ids[0] == query  # nothing is nearer to a vector than itself, in codes too

    @rule()
    def save(self) -> None:
        mark = Mark("f", D, self.next - 1, self.removals)
        assert self.index.save(self.folder, mark) == (self.tier != "binary" or mark != (self.kept or (0, 0))[1])
        self.kept = set(self.ids), mark

    @precondition(lambda self: self.tier == "binary" and self.kept)
    @rule()
    def load(self) -> None:
        fresh = make(self.tier)
        ids, mark = self.kept  # type: ignore[misc]
        assert fresh.load(self.folder, "f") == mark
        assert set(fresh.search(np.ones(D), 10**6)[0].tolist()) == ids
        if ids == self.ids:
            self.index = fresh

    @invariant()
    def counted(self) -> None:
        assert self.index.stats().count == len(self.ids)


@pytest.mark.slow
def test_index_contract_whatever_happens_in_any_order_agrees_with_an_oracle(tier: str) -> None:
    machine = type("Machine", (Machine,), {"tier": tier})
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=slow,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
        ),
    )


def test_search_in_an_empty_index_finds_nothing(index: VectorIndex) -> None:
    ids, found = index.search(np.ones(D), 3)
    assert (ids.shape, found.shape) == ((0,), (0,))
    index.remove([1])
    assert index.stats().count == 0


@pytest.mark.parametrize("bad", [np.full(D, np.nan), np.r_[np.inf, np.zeros(D - 1)], np.zeros(D), np.ones(D + 1)])
def test_add_and_search_refuse_what_is_no_vector(index: VectorIndex, bad: npt.NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"holds NaN, infinity or only zeros|must have shape"):
        index.add([7], [bad])
    with pytest.raises(ValueError, match=r"holds NaN, infinity or only zeros|must have shape"):
        index.search(bad, 1)
    assert index.stats().count == 0


def test_search_lengths_near_the_ends_of_float_make_no_difference(index: VectorIndex) -> None:
    index.add([1, 2], np.array([[1e300] + [1e300] * (D - 1), [1e-300] + [-1e-300] * (D - 1)]))
    ids, found = index.search(np.full(D, 1e-30), 2)
    assert ids.tolist() == [1, 2]
    # a = (1, .., 1) and b = (1, -1, .., -1): cosine (1 - 11) / 12
    assert found.tolist() == pytest.approx([1.0, -10 / 12], abs=COSINE_ERROR)


def test_search_equal_vectors_come_by_id(index: VectorIndex) -> None:
    index.add(range(30, 0, -1), np.ones((30, D)))
    assert index.search(np.ones(D), 30)[0].tolist() == [*range(1, 31)]


def test_remove_neighbours_do_not_hide_the_ones_behind_them(index: VectorIndex) -> None:
    index.add(range(100), np.ones((100, D)) + np.linspace(0, 0.01, 100 * D).reshape(100, D))
    index.add(range(100, 140), -np.ones((40, D)) + 0.5 * vectors(range(40)))
    index.remove(range(1, 100))
    ids, _ = index.search(np.ones(D), 5)
    assert ids[0] == 0
    assert len(ids) == 5
    assert set(ids[1:].tolist()) <= set(range(100, 140))


def test_add_a_removed_id_may_come_back_with_another_vector(index: VectorIndex) -> None:
    index.add([1, 2], vectors([1, 2]))
    index.remove([2, 2])
    index.add([2], vectors([3]))
    assert index.search(vectors([3])[0], 1)[0].tolist() == [2]
