"""The files of the local index: what is kept, what is noticed, and what several writers do to each other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from coherence.core.errors import CoherenceError
from coherence.lessons.index import files, local, table
from coherence.lessons.index.base import IndexFileError, IndexMismatch, Mark
from coherence.lessons.index.local import LocalIndex

D = 12
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits, or files that are replaced in use")


def vectors(ids: Iterable[int]) -> npt.NDArray[np.float64]:
    return np.array([np.random.default_rng(id).standard_normal(D) for id in ids]).reshape(-1, D)


def filled(ids: Iterable[int], folder: Path | None = None) -> LocalIndex:
    index = LocalIndex(D, folder)
    index.add([*ids], vectors(ids))
    return index


def holds(index: LocalIndex, ids: Iterable[int]) -> bool:
    """Return whether the index holds exactly these ids, each with its own vector."""
    expected = [*ids]
    if index.stats().count != len(expected) or index.missing(expected).size:
        return False
    found = [index.search(vectors([id])[0], 1) for id in expected]
    return all(int(ids[0]) == id and cosines[0] > 0.999 for id, (ids, cosines) in zip(expected, found, strict=True))


def mark(lesson: int, removal: int = 0) -> Mark:
    return Mark("f", D, lesson, removal)


def loaded(folder: Path) -> LocalIndex:
    index = LocalIndex(D)
    assert index.load(folder, "f") is not None
    return index


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder that holds 1 to 30 without 7, with the mark (30, 1)."""
    index = filled(range(1, 31))
    index.save(tmp_path / "index", mark(30))
    index.remove([7])
    index.save(tmp_path / "index", mark(30, 1))
    return tmp_path / "index"


def test_index_files_nothing_there_is_no_index(tmp_path: Path) -> None:
    index = filled([1])
    assert index.load(tmp_path / "none", "f") is None
    assert holds(index, [1])
    assert not (tmp_path / "none").exists()


def test_index_files_an_empty_index_is_kept_and_goes_on(tmp_path: Path) -> None:
    LocalIndex(D).save(tmp_path, mark(3, 3))
    index = LocalIndex(D)
    assert index.load(tmp_path, "f") == mark(3, 3)
    index.add([4], vectors([4]))
    index.save(tmp_path, mark(4, 3))
    assert holds(loaded(tmp_path), [4])


def test_index_files_what_was_removed_stays_removed(kept: Path) -> None:
    index = LocalIndex(D)
    assert index.load(kept, "f") == mark(30, 1)
    assert holds(index, [*range(1, 7), *range(8, 31)])


def test_disk_bytes_only_what_is_new_is_written(kept: Path) -> None:
    name = next(kept.glob("rows-*"))
    before, head = name.stat(), (kept / "head").stat()
    index = loaded(kept)
    index.save(kept, mark(30, 1))  # nothing new
    assert ((kept / "head").stat().st_ino, name.stat().st_mtime_ns) == (head.st_ino, before.st_mtime_ns)
    index.add([31], vectors([31]))
    index.save(kept, mark(31, 1))
    assert [*kept.glob("rows-*")] == [name]
    assert name.stat().st_ino == before.st_ino
    assert name.stat().st_size == before.st_size + 2 * D
    assert index.stats().disk_bytes == 31 * (2 * D + 8 + 8) + 4  # rows, ids, codes; 31 bits for removed ones


@posix
def test_index_files_many_removed_rows_are_left_out_and_readers_of_the_old_files_go_on(kept: Path) -> None:
    index, reader = loaded(kept), loaded(kept)
    (kept / "rows-killed").write_bytes(b"left behind by a compaction that was killed")
    index.remove(range(1, 21))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "DEAD_ROWS", 5)
        index.save(kept, mark(30, 21))
    assert len([*kept.glob("rows-*")]) == 1
    assert next(kept.glob("rows-*")).stat().st_size == 10 * 2 * D
    assert holds(index, range(21, 31))
    assert holds(loaded(kept), range(21, 31))
    assert holds(reader, [*range(1, 7), *range(8, 31)])


def test_discard_another_embedder_or_length_is_a_mismatch(kept: Path) -> None:
    index = filled([1])
    with pytest.raises(IndexMismatch, match=r"'f \(12 dimensions\)', not with 'g \(12 dim.*coherence lessons rebuild"):
        index.load(kept, "g")
    with pytest.raises(IndexMismatch, match="13 dimensions"):
        LocalIndex(D + 1).load(kept, "f")
    with pytest.raises(IndexMismatch):
        index.save(kept, Mark("g", D, 99, 99))
    with pytest.raises(ValueError, match="13 dimensions"):
        index.save(kept, Mark("g", D + 1))
    assert holds(index, [1])
    assert holds(loaded(kept), [*range(1, 7), *range(8, 31)])
    files.discard(kept)
    index.save(kept, Mark("g", D, 1))
    assert LocalIndex(D).load(kept, "g") == Mark("g", D, 1)
    assert issubclass(IndexMismatch, CoherenceError)


def spoil(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def on(path: Path) -> None:
        data = bytearray(path.read_bytes())
        change(data)
        path.write_bytes(data)

    return on


def flip(data: bytearray) -> None:
    data[len(data) // 2] ^= 0x40


SPOILED = {
    "truncated": spoil(lambda data: data.__delitem__(slice(-3, None))),
    "empty": spoil(lambda data: data.clear()),
    "garbage": spoil(lambda data: data.__setitem__(slice(None), b"\xff" * len(data))),
    "zeros": spoil(lambda data: data.__setitem__(slice(None), bytes(len(data)))),
    "one bit": spoil(flip),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("what", ["head", "rows", "ids", "codes"])
def test_index_files_a_torn_file_is_no_index_and_is_replaced(kept: Path, what: str, how: str) -> None:
    if (what, how) == ("rows", "one bit"):
        pytest.skip("one bit of one component is no torn file: the vector stays nearly what it was")
    SPOILED[how](next(kept.glob(f"{what}*")))
    index = filled([1, 2])
    assert index.load(kept, "f") is None
    assert holds(index, [1, 2])
    index.save(kept, mark(2))
    assert holds(loaded(kept), [1, 2])


def test_index_files_another_version_of_the_format_is_no_index(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAGIC", b"coherence lesson index 2\n")
    assert LocalIndex(D).load(kept, "f") is None


def test_index_files_files_that_went_away_under_an_index_are_written_again(kept: Path) -> None:
    index = loaded(kept)
    next(kept.glob("ids-*")).unlink()
    index.add([31], vectors([31]))
    index.save(kept, mark(31, 1))
    assert holds(loaded(kept), [*range(1, 7), *range(8, 32)])


def test_bytes_that_the_head_does_not_count_are_overwritten(kept: Path) -> None:
    for path in kept.glob("*-*"):
        with path.open("ab") as file:
            file.write(b"\x7f" * 1000)  # a writer was killed before it replaced the head
    index = loaded(kept)
    index.add([31], vectors([31]))
    index.save(kept, mark(31, 1))
    assert holds(loaded(kept), [*range(1, 7), *range(8, 32)])


def test_index_files_who_is_further_adds_to_what_another_has_saved(kept: Path) -> None:
    one, other = loaded(kept), loaded(kept)
    one.add([31, 33], vectors([31, 33]))
    one.remove([1])
    one.save(kept, mark(33, 2))
    other.add([33, 32, 31, 34], vectors([33, 32, 31, 34]))  # in another order
    other.remove([1, 2])
    other.save(kept, mark(34, 3))
    expected = [*range(3, 7), *range(8, 35)]
    assert holds(other, expected)
    assert holds(loaded(kept), expected)
    one.add([32, 34, 35], vectors([32, 34, 35]))
    one.remove([2])
    one.save(kept, mark(35, 3))
    assert holds(one, [*expected, 35])
    assert holds(loaded(kept), [*expected, 35])


@pytest.mark.parametrize("late", [mark(31, 1), mark(33, 2), mark(32, 5), mark(40, 1)])
def test_index_files_who_is_behind_in_anything_saves_nothing(kept: Path, late: Mark) -> None:
    one, other = loaded(kept), loaded(kept)
    one.add([33], vectors([33]))
    one.save(kept, mark(33, 2))
    other.add([31], vectors([31]))
    other.save(kept, late)
    assert LocalIndex(D).load(kept, "f") == mark(33, 2)
    assert holds(loaded(kept), [*range(1, 7), *range(8, 31), 33])
    assert holds(other, [*range(1, 7), *range(8, 32)])


def test_while_somebody_else_is_writing_nothing_is_saved(kept: Path) -> None:
    index = loaded(kept)
    index.add([31], vectors([31]))
    with files.writing(kept) as free:
        assert free
        index.save(kept, mark(31, 1))
        assert LocalIndex(D).load(kept, "f") == mark(30, 1)
    index.save(kept, mark(31, 1))
    assert LocalIndex(D).load(kept, "f") == mark(31, 1)


def test_index_files_many_unsaved_rows_go_to_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "IN_MEMORY_ROWS", 10)
    index, only_memory = LocalIndex(D, tmp_path), LocalIndex(D)
    for id in range(1, 101):
        index.add([id], vectors([id]))
        only_memory.add([id], vectors([id]))
    # 10 rows of 24 bytes at most stay in memory; without a folder all 100 do
    assert only_memory.stats().memory_bytes - index.stats().memory_bytes >= 90 * 2 * D
    assert [*tmp_path.iterdir()] == []
    assert holds(index, range(1, 101))
    index.save(tmp_path, mark(100))
    assert holds(index, range(1, 101))
    for id in range(101, 131):
        index.add([id], vectors([id]))
    index.save(tmp_path, mark(130))
    assert holds(index, range(1, 131))
    assert holds(loaded(tmp_path), range(1, 131))


def test_index_files_a_folder_that_cannot_be_written_is_a_clear_error_and_the_index_works_on(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("no folder")
    index = filled([1, 2])
    with pytest.raises(IndexFileError, match=f"the lesson index cannot be written to {taken}: "):
        index.save(taken, mark(2))
    assert holds(index, [1, 2])
    assert taken.read_text() == "no folder"


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from coherence.lessons.index import local
from coherence.lessons.index.base import IndexFileError, Mark
from coherence.lessons.index.local import LocalIndex
folder, spilling = Path(sys.argv[1]), sys.argv[2] == "spilling"
if spilling:
    local.IN_MEMORY_ROWS = 100
index = LocalIndex(12)
assert index.load(folder, "f") is not None
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
rows = np.random.default_rng(0).standard_normal((3000, 12))
for start in range(0, 3000, 50):
    index.add(range(100 + start, 150 + start), rows[start:start + 50])
try:
    index.save(folder, Mark("f", 12, 3100, 1))
except IndexFileError as error:
    print(error)
assert index.stats().count == 3029
assert all(index.search(row, 1)[0][0] == 100 + at for at, row in enumerate(rows))
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize("rows", ["spilling", "in memory"])
def test_index_files_a_full_disk_is_a_clear_error_and_nothing_is_lost(kept: Path, rows: str) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, kept, rows], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"the lesson index cannot be written to {kept}: ")
    assert holds(loaded(kept), [*range(1, 7), *range(8, 31)])


@posix
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="root may write everywhere")
def test_index_files_a_read_only_folder_is_read(kept: Path) -> None:
    kept.chmod(0o555)
    index = loaded(kept)
    index.add([31], vectors([31]))
    with pytest.raises(IndexFileError):
        index.save(kept, mark(31, 1))
    kept.chmod(0o755)
    assert holds(index, [*range(1, 7), *range(8, 32)])
