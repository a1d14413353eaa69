"""The index on a Qdrant server, tried in Qdrant's local mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coherence.core.errors import MissingExtraError
from coherence.lessons.qdrant import IndexServerError, QdrantIndex
from lessons.stores import VAGUE, found, learn, missing, near, open_store


def test_qdrant_index_lessons_are_found_after_a_store_and_its_server_are_opened_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []
    add = QdrantIndex.add

    def noting(self: QdrantIndex, ids: list[int], *more: Any) -> None:
        added.extend(ids)
        add(self, ids, *more)

    monkeypatch.setattr(QdrantIndex, "add", noting)
    for first in (0, 3, 6):
        index = QdrantIndex(64, tmp_path / "server")
        with open_store(path, index=index) as store:
            for number in range(first, first + 3):
                learn(store, f"mod{number}")
            assert near(store) == set(range(1, first + 4))
            assert found(store, f"{VAGUE}, it is called mod{first}", k=1, least=0.0) == [first + 1]
            assert store.stats().tier == "remote" and len(index) == first + 3
        index.close()
    assert added == list(range(1, 10))  # each one once
    assert not Path(f"{path}.lessons").exists()


def test_qdrant_index_a_removed_lesson_is_not_found_and_many_make_the_collection_new(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coherence.lessons.search.MAX_REMOVED", 3)
    index = QdrantIndex(64, ":memory:")
    with open_store(path, index=index) as store:
        for number in range(9):
            learn(store, f"mod{number}")
        assert near(store) == set(range(1, 10))
        for removed, held in (([2, 9], 9), ([1, 3], 5)):  # two of nine are still in it, four are too many
            store.remove(removed)
            left = {lesson.id for lesson in store.lessons()}
            assert near(store) == left and len(index) == held
            assert set(found(store, VAGUE, k=9, least=0.0)) <= left


def test_qdrant_index_each_owner_has_a_collection_of_its_own_and_many_go_in_several_requests() -> None:
    from qdrant_client import QdrantClient  # takes a second to load

    client = QdrantClient(location=":memory:")
    one, other = QdrantIndex(2, client).load("one"), QdrantIndex(2, client).load("other")
    angles = np.linspace(0.0, 3.0, 600)
    one.add(range(1, 601), np.stack([np.cos(angles), np.sin(angles)], axis=1), newest=600)
    other.add([1, 2], np.array([[0.0, 1.0], [np.nan, np.inf]]), newest=7)
    assert [id for id, _ in one.search(np.array([np.cos(angles[449]), np.sin(angles[449])]), 1)] == [450]
    assert other.search(np.array([1.0, 0.0], np.float16), 5) == [(1, 0.0), (2, 0.0)]
    for owner, newest, count in (("one", 600, 600), ("other", 7, 2)):
        again = QdrantIndex(2, client).load(owner)
        assert (again.newest, len(again)) == (newest, count)


def test_qdrant_index_a_server_that_does_not_answer_is_a_clear_error_and_lessons_are_kept(path: Path) -> None:
    from qdrant_client import QdrantClient

    index = QdrantIndex(64, QdrantClient(location="http://127.0.0.1:9", check_compatibility=False))
    with open_store(path, index=index) as store:
        learn(store, "mod1")
        assert found(store, missing("mod1"), tool="Bash", k=1) == [1]  # an equal signature needs no index
        with pytest.raises(IndexServerError, match="the Qdrant server does not do what it was asked"):
            store.query(VAGUE)


def test_qdrant_index_a_wrong_place_and_another_length_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="where must be a URL, a folder, ':memory:' or a QdrantClient, not 5"):
        QdrantIndex(2, 5)
    with pytest.raises(ValueError, match="index must have 64 dimensions, not 32"):
        open_store(path, index=QdrantIndex(32, ":memory:"))


def test_qdrant_index_a_missing_package_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(MissingExtraError, match=r'pip install "coherence-sensor\[qdrant\]"'):
        QdrantIndex(2, ":memory:")
