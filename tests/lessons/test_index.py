"""The index of vectors: near to all cosines, and a file that is never torn, whatever becomes of its writers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.lessons import index as indexing
from coherence.lessons.index import LessonIndex

D = 12
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits, or files that are replaced in use")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 30)),
        st.tuples(st.just("remove"), st.integers(1, 60)),
        st.tuples(st.just("search"), st.integers(1, 60)),
        st.tuples(st.sampled_from(["save", "load"]), st.just(0)),
    ),
    max_size=25,
)


def vectors(ids: Iterable[int]) -> npt.NDArray[np.float16]:
    return np.array([np.random.default_rng(id).standard_normal(D) for id in ids], np.float16).reshape(-1, D)


def filled(ids: Iterable[int], owner: str = "f") -> LessonIndex:
    index = LessonIndex(owner, D)
    index.add(ids, vectors(ids), newest=max(ids, default=0))
    return index


def loaded(folder: Path, owner: str = "f") -> LessonIndex:
    return LessonIndex.load(folder, owner, D)


def save(index: LessonIndex, folder: Path, alive: Iterable[int]) -> None:
    index.save(folder, np.array([*alive], np.int64))


def holds(index: LessonIndex, ids: Iterable[int]) -> bool:
    """Return whether the index holds exactly these ids, each with its own vector."""
    found = [index.search(vectors([id])[0], 1)[0] for id in ids]
    right = all(there == id and cosine > 0.999 for id, (there, cosine) in zip(ids, found, strict=True))
    return right and len(index) == len(found)


KEPT = [*range(1, 7), *range(8, 31)]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder whose file holds 1 to 30 without 7."""
    save(filled(range(1, 31)), tmp_path / "index", KEPT)
    return tmp_path / "index"


@given(STEPS)
@examples(40)
def test_lesson_index_in_any_order_of_steps_agrees_with_all_cosines(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for constant, value in (("CANDIDATES", 8), ("CANDIDATES_EACH", 1), ("CHUNK_ROWS", 7)):
            patch.setattr(indexing, constant, value)
        folder, index, held, alive, newest = Path(name), LessonIndex("f", D), set[int](), set[int](), 0
        for step, number in steps:
            if step == "add":
                ids = range(newest + 1, newest + 1 + number)
                newest += number
                index.add(ids, vectors(ids) * np.float16(number), newest)
                held, alive = held | {*ids}, alive | {*ids}
            elif step == "remove":
                alive -= {number}
            elif step == "search":
                query = vectors([number])[0]
                found = index.search(query, number)
                assert len({id for id, _ in found}) == len(found) == min(number, len(held))
                assert found == sorted(found, key=lambda each: (-each[1], each[0]))
                wide, rows = query.astype(float), vectors(id for id, _ in found).astype(float)
                exact = rows @ wide / np.linalg.norm(rows, axis=1) / np.linalg.norm(wide)
                assert np.allclose([cosine for _, cosine in found], exact, atol=1e-3)  # rows of the file are float16
                assert number not in held or found[0][0] == number  # nothing is nearer to a vector than itself
            elif step == "save":
                save(index, folder, alive)
                held = held & alive if index.tier == "binary" or not alive else held
            elif loaded(folder).newest == newest:
                index = loaded(folder)
            assert (len(index), index.newest) == (len(held), newest)


@pytest.mark.slow
def test_search_by_codes_finds_nearly_what_all_cosines_find(tmp_path: Path) -> None:
    """10,000 vectors around 500 centres; a few directions hold most of the variance, as in real ones."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((500, 61))  # 61: the last byte of a code is padded
    spread = centres[rng.integers(0, 500, 10_000)] + 0.5 * rng.standard_normal((10_000, 61))
    rows = (spread * np.arange(1, 62) ** -0.5).astype(np.float16)
    exact, coded = LessonIndex("f", 61), LessonIndex("f", 61)
    for index in (exact, coded):
        index.add(range(10_000), rows, newest=1)
    save(coded, tmp_path, range(10_000))
    queries = rows[:50] + np.float16(0.3) * rows[1:51]
    assert (exact.tier, coded.tier) == ("flat", "binary")
    found = [[{id for id, _ in index.search(each, 10)} for each in queries] for index in (exact, coded)]
    assert sum(len(one & other) for one, other in zip(*found, strict=True)) / 500 >= 0.98


def test_search_lengths_make_no_difference_and_equal_vectors_come_by_id() -> None:
    index = LessonIndex("f", D)
    index.add([30, 4, 17], np.array([[6e-5] * D, [6e4] * D, [1.0] * D], np.float16), newest=3)
    found = index.search(np.ones(D, np.float16), 3)
    assert [id for id, _ in found] == [4, 17, 30]
    assert [cosine for _, cosine in found] == pytest.approx([1.0, 1.0, 1.0])
    assert LessonIndex("f", D).search(np.ones(D, np.float16), 3) == []


def test_code_bytes_are_one_bit_a_dimension_in_lengths_that_faiss_likes() -> None:
    rows = np.array([[1.0, -1.0, 0.0, 0.5, -0.0, 2.0, 3.0, 4.0, 5.0]])
    assert indexing.sign_codes(rows).tolist() == [[0b10010111, 0b10000000, *[0] * 6]]
    # 1 to 32 and 64 bytes; above, whole groups of 64 dimensions
    lengths = {1: 8, 64: 8, 65: 16, 256: 32, 257: 64, 384: 64, 512: 64, 513: 72, 768: 96, 1024: 128}
    assert {dimensions: indexing.code_bytes(dimensions) for dimensions in lengths} == lengths


@pytest.mark.parametrize("limit", [0, indexing.MAX_COUNTED])
def test_nearest_codes_differ_in_the_fewest_bits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MAX_COUNTED", limit)
    codes = np.array([[0b1111_0000], [0b1111_1111], [0b0000_1111], [0b1111_0001]], np.uint8)
    # differing bits from 1111_0000: 0, 4, 8, 1
    assert indexing.nearest_codes(codes, codes[0], 3).tolist() == [0, 3, 1]


def test_nearest_rows_leaves_the_number_of_faiss_threads_as_it_was() -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        indexing.nearest_rows(np.eye(8, dtype=np.float16), np.ones(8, np.float32), 2)
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


@posix
def test_save_replaces_the_file_and_who_reads_the_old_one_goes_on(kept: Path) -> None:
    index, reader = loaded(kept), loaded(kept)
    for name in ("head", "rows-12ab", "index.new"):  # of an earlier format, and of a writer that was killed
        (kept / name).write_bytes(b"old")
    save(index, kept, range(21, 31))
    assert {each.name for each in kept.iterdir()} <= {"index", "lock"}
    assert holds(index, range(21, 31)) and holds(loaded(kept), range(21, 31))
    assert holds(reader, KEPT)


def test_save_leaves_a_file_that_is_as_far_and_goes_on_with_it(kept: Path) -> None:
    one, other = loaded(kept), loaded(kept)
    one.add([31, 32], vectors([31, 32]), newest=32)
    other.add([31], vectors([31]), newest=31)
    save(one, kept, [*KEPT, 31, 32])
    save(other, kept, [*KEPT, 31, 32])
    for index in (one, other, loaded(kept)):
        assert holds(index, [*KEPT, 31, 32])


def test_load_nothing_of_another_owner_or_length_which_save_replaces(kept: Path, tmp_path: Path) -> None:
    assert len(loaded(tmp_path / "none")) == len(loaded(kept, "g")) == len(LessonIndex.load(kept, "f", D + 1)) == 0
    save(filled([1], "g"), kept, [1])
    assert holds(loaded(kept, "g"), [1]) and not len(loaded(kept))


def flip(data: bytearray, at: int) -> None:
    data[at] ^= 0x40


SPOILED: dict[str, Callable[[bytearray], None]] = {
    "truncated": lambda data: data.__delitem__(slice(-3, None)),
    "empty": bytearray.clear,
    "zeros": lambda data: data.__setitem__(slice(None), bytes(len(data))),
    "zeros in the rows": lambda data: data.__setitem__(slice(-100, None), bytes(100)),
    "another number": lambda data: data.__setitem__(slice(None), data.replace(b'"newest":30', b'"newest":31')),
    "a bit of the ids": lambda data: flip(data, indexing.HEAD_BYTES + 8),
    "a bit of the codes": lambda data: flip(data, indexing.HEAD_BYTES + 8 * 29 + 3),
    "another format": lambda data: data.__setitem__(slice(None), data.replace(b'"format":3', b'"format":1')),
}


@pytest.mark.parametrize("how", SPOILED)
def test_load_a_torn_file_is_none_and_is_replaced(kept: Path, how: str) -> None:
    path = kept / "index"
    data = bytearray(path.read_bytes())
    SPOILED[how](data)
    assert data != path.read_bytes()
    path.write_bytes(data)
    assert not len(loaded(kept))
    save(filled([1, 2]), kept, [1, 2])
    assert holds(loaded(kept), [1, 2])


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from coherence.lessons.index import LessonIndex
folder = Path(sys.argv[1])
index = LessonIndex.load(folder, "f", 12)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
rows = np.random.default_rng(0).standard_normal((3000, 12)).astype(np.float16)
index.add(range(100, 3100), rows, newest=3100)
try:
    index.save(folder, np.arange(3100))
except OSError as error:
    print(error)
assert len(index) == 3029
assert all(index.search(row, 1)[0][0] == 100 + at for at, row in enumerate(rows))
"""


@pytest.mark.slow
@posix
def test_save_on_a_full_disk_is_an_error_and_nothing_is_lost(kept: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, kept], capture_output=True, text=True, check=False)
    assert (done.returncode, "File too large" in done.stdout) == (0, True), done.stderr
    assert holds(loaded(kept), KEPT)


WORLD = """
import os, random, signal, sys, time
import filelock  # or most of a child's life would go into importing it
from pathlib import Path
import numpy as np
from coherence.lessons.index import LessonIndex
from lessons.test_index import holds, loaded, save, vectors
folder = Path(sys.argv[1])

def alive(newest):
    return range(max(newest - 59, 1), newest + 1)

def step_on(step, last):
    # The database of this world: number n adds lesson n and removes lesson n - 60.
    index = loaded(folder)
    while index.newest < last:
        until = min(index.newest + step, last)
        ids = range(index.newest + 1, until + 1)
        index.add(ids, vectors(ids), until)
        save(index, folder, alive(until))

def check():
    # The file holds what its number says, each lesson with its own vector; gives how far it is.
    index = loaded(folder)
    assert holds(index, alive(index.newest)), index.newest
    return index.newest
"""

KILLER = """
rng, reached, kills = random.Random(3), 0, 0
while kills < 20 or reached <= 100:  # a busy machine may kill many before they have begun
    kills += 1
    child = os.fork()
    if child == 0:
        step_on(3, 10**6)
    time.sleep(rng.uniform(0.0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    now = check()
    assert now >= reached, (now, reached)
    reached = now
print(reached)
"""


def run(program: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    paths = f"import sys; sys.path[:0] = {sys.path}\n"
    command = [sys.executable, "-c", f"{paths}{WORLD}{program}", str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> int:
    """Return the number that a process has printed, once it has ended well."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return int(output)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_save_whoever_is_killed_at_it_leaves_a_whole_index(tmp_path: Path) -> None:
    assert result(run(KILLER, tmp_path)) > 100


@pytest.mark.slow
def test_save_several_processes_write_the_same_file(tmp_path: Path) -> None:
    program = "step_on(int(sys.argv[2]), int(sys.argv[3])); print(check())"
    children = [run(program, tmp_path, str(step), "600") for step in (1, 3, 7)]
    assert result(run("reached = 0\nwhile reached < 300: reached = check()\nprint(reached)", tmp_path)) >= 300
    for child in children:
        assert result(child) == 600
