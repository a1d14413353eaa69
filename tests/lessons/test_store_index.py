"""The index beside the database: followed, saved, and made anew whatever lies there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from coherence.lessons import search as searching
from coherence.lessons.errors import EmbedderMismatchError
from coherence.lessons.index import LessonIndex
from coherence.lessons.table import New
from coherence.providers import HashingEmbedder
from lessons.stores import VAGUE, check_file, found, learn, missing, near, open_store


class Counting(HashingEmbedder):
    """Counts what it is asked for."""

    def __init__(self, dimensions: int = 64, *, fingerprint: str | None = None) -> None:
        super().__init__(dimensions)
        self.fingerprint = fingerprint or self.fingerprint
        self.asked = 0

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        self.asked += 1
        return super().embed(text)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an index be saved after every 3 new lessons."""
    monkeypatch.setattr(searching, "SAVE_EVERY", 3)
    monkeypatch.setattr(searching, "MAX_REMOVED", 3)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many vectors come from a file, each time that one is looked for."""
    counts: list[int] = []
    load = LessonIndex.load

    def noting(folder: Path, owner: str, dimensions: int) -> LessonIndex:
        index = load(folder, owner, dimensions)
        counts.append(len(index))
        return index

    monkeypatch.setattr(LessonIndex, "load", noting)
    return counts


def fill(path: Path, count: int, first: int = 0) -> set[int]:
    with open_store(path) as store:
        for number in range(first, first + count):
            learn(store, f"mod{number}")
        return near(store)


def test_store_index_few_lessons_need_no_files_and_no_faiss(path: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from lessons.test_store_index import fill
        fill(Path(sys.argv[1]), 20)
        assert "faiss" not in sys.modules and "qdrant_client" not in sys.modules
    """
    subprocess.run(
        [sys.executable, "-c", program, path], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert [each.name for each in path.parent.iterdir()] == ["lessons.db"]


@pytest.mark.usefixtures("small")
def test_stats_the_index_is_by_codes_once_there_are_many_lessons(path: Path) -> None:
    assert fill(path, 2) == {1, 2}
    with open_store(path) as store:
        assert store.stats().tier == "flat"
        learn(store, "one more")
        assert near(store) == {1, 2, 3} and store.stats().tier == "binary"


@pytest.mark.usefixtures("small")
def test_prune_a_saved_index_is_used_and_caught_up_with(path: Path, loaded: list[int]) -> None:
    assert fill(path, 9) == set(range(1, 10))
    assert Path(f"{path}.lessons", "index").exists()
    with open_store(path, embedder=False) as store:  # behind the index's back
        store.remove([2, 9])  # the newest one too
        store.prune(keep=6)
    loaded.clear()
    with open_store(path) as store:
        held = {lesson.id for lesson in store.lessons()}
        assert len(held) == 6 and near(store) == held
        assert loaded == [9]
        assert store.stats().index_disk_bytes > 0  # and what was loaded is used
        learn(store, "later")
        assert near(store) == {*held, 10}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("harm", ["torn", "a file", "foreign", "of a lost database"])
def test_lessons_whatever_lies_beside_the_database_it_is_made_anew(
    path: Path, tmp_path: Path, harm: str, loaded: list[int]
) -> None:
    fill(path, 8)
    folder = Path(f"{path}.lessons")
    if harm == "torn":
        file = folder / "index"
        file.write_bytes(file.read_bytes()[:-100])
    elif harm == "a file":
        shutil.rmtree(folder)
        folder.write_bytes(b"x")
    elif harm == "foreign":
        other = LessonIndex("another model", 8)
        other.add([1, 2], np.eye(8)[:2], newest=2)
        shutil.rmtree(folder)
        other.save(folder, np.array([1, 2]))
    else:
        path.unlink()
        fill(path, 6)
    with open_store(path) as store:
        held = {lesson.id for lesson in store.lessons()}
        assert near(store) == held
        learn(store, "later")
    if harm == "a file":
        assert folder.read_bytes() == b"x"
        return
    loaded.clear()
    with open_store(path) as store:  # what is made anew is saved again
        assert near(store) == {*held, max(held) + 1}
        assert loaded[0] >= 6


@pytest.mark.usefixtures("small")
def test_rebuild_a_rebuilt_index_replaces_the_files(path: Path, loaded: list[int]) -> None:
    ids = fill(path, 8)
    with open_store(path) as store:
        assert store.rebuild() == 0
        assert near(store) == ids
    loaded.clear()
    with open_store(path) as store:
        assert near(store) == ids
        assert loaded == [8]
    with open_store(path, embedder=HashingEmbedder(32), rebuild=True) as store:
        assert near(store) == ids
    loaded.clear()
    with open_store(path, embedder=HashingEmbedder(32)) as store:
        assert near(store) == ids
        assert loaded == [8]


@pytest.mark.usefixtures("small")
def test_vectors_a_store_that_lagged_behind_a_rebuild_does_not_write_the_old_index(
    path: Path, loaded: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    ids = fill(path, 8)
    with open_store(path) as old:
        assert near(old) == ids
        learn(old, "unsaved")
        old.query(VAGUE)
        with open_store(path, embedder=HashingEmbedder(32), rebuild=True) as new:
            assert new.stats().vectors == 9
    assert caplog.text == ""
    loaded.clear()
    with open_store(path, embedder=HashingEmbedder(32)) as store:
        assert near(store) == {*ids, 9}
        assert loaded == [9]


def test_rebuild_vectors_of_two_models_never_mix(path: Path) -> None:
    ids = fill(path, 3)
    other = HashingEmbedder(32)
    with pytest.raises(EmbedderMismatchError, match=r"hashing-3-5-64-v1.*hashing-3-5-32-v1.*rebuild=True"):
        open_store(path, embedder=other)
    with open_store(path) as old:
        with open_store(path, embedder=other, rebuild=True) as new:
            assert near(new) == ids
        assert found(old, missing("mod1"), tool="Bash", k=1) == [2]  # an equal signature needs no vector
        assert old.rebuild() == 3  # and back
        assert near(old) == ids
    assert check_file(path) == 3
    with open_store(path, embedder=False) as neither:
        assert not neither.stats().by_meaning


def test_a_store_that_stays_open_with_the_old_model_goes_on_without_vectors(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(path, 3)
    other = HashingEmbedder(32)
    with open_store(path) as old:
        assert old.query(VAGUE, least=0.0) and old.stats().by_meaning
        open_store(path, embedder=other, rebuild=True).close()
        for _ in range(2):
            assert found(old, "Error: No module named 'mod1' in sight", tool="Bash", k=1, least=0.0) == [2]
            old.query(VAGUE)
            assert learn(old, "later") == 4  # kept, and counted where it is known
            assert learn(old, "mod1") == 2
        assert caplog.text.count("have been embedded by 'hashing-3-5-32-v1' since it was opened") == 1
        stats = old.stats()
        assert (stats.by_meaning, stats.tier, stats.lessons, stats.vectors) == (False, "none", 4, 3)
        assert stats.embedder == other.fingerprint
        with open_store(path, embedder=other) as new:
            assert near(new) == {1, 2, 3}
            assert new.rebuild() == 1  # what waited for its vector
            assert near(new) == {1, 2, 3, 4} and new.stats().by_meaning
        assert old.rebuild() == 4  # and back
        assert near(old) == {1, 2, 3, 4} and old.stats().by_meaning
    assert check_file(path) == 4


def test_rebuild_a_model_that_changes_between_embedding_and_writing_leaves_no_mixed_vectors(path: Path) -> None:
    fill(path, 1)
    with open_store(path) as old:
        searching = old._searching
        assert searching is not None
        embed = searching.vector

        def overtaken(new: New) -> bytes | None:
            vector = embed(new)
            open_store(path, embedder=HashingEmbedder(32), rebuild=True).close()
            return vector

        searching.vector = overtaken  # type: ignore[method-assign]
        assert learn(old, "late") == 2
    with open_store(path, embedder=HashingEmbedder(32)) as new:
        assert near(new) == {1} and new.rebuild() == 1 and near(new) == {1, 2}


def test_store_index_one_name_with_another_length_is_another_model(path: Path) -> None:
    ids = fill(path, 3)
    other = Counting(32, fingerprint=HashingEmbedder(64).fingerprint)
    with pytest.raises(EmbedderMismatchError, match=r"64 dimensions.*32 dimensions"):
        open_store(path, embedder=other)
    with open_store(path, embedder=other, rebuild=True) as store:
        assert near(store) == ids


@pytest.mark.parametrize("vector", [np.full(64, np.nan, np.float16).tobytes(), bytes(128), b"x"])
def test_query_a_damaged_vector_hides_no_other_lesson(path: Path, vector: bytes) -> None:
    fill(path, 4)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE lesson_vectors SET vector = ? WHERE lesson_id = 2", (vector,))
    connection.commit()
    connection.close()
    with open_store(path) as store:
        assert near(store, k=3) == {1, 3, 4}
        assert found(store, missing("mod1"), tool="Bash", k=1) == [2]


def test_query_an_attempt_that_broke_off_half_way_is_gone_on_with(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "PAGE", 2)
    ids = fill(path, 7)
    add = LessonIndex.add
    newest: list[int] = []

    def failing(self: LessonIndex, *given: Any) -> None:
        newest.append(given[-1])
        if len(newest) == 3:
            raise RuntimeError("in the middle")
        add(self, *given)

    monkeypatch.setattr(LessonIndex, "add", failing)
    with open_store(path) as store:
        with pytest.raises(RuntimeError, match="in the middle"):
            store.query(VAGUE)
        assert near(store) == ids
    assert newest == [2, 4, 6, 6, 7]
