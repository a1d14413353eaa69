"""The index by sign codes: how near it comes to exact, and its file, whatever becomes of that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from coherence.lessons.index import kernels, snapshot
from coherence.lessons.index.base import Mark
from coherence.lessons.index.coded import CodedIndex
from coherence.lessons.index.exact import ExactIndex

D = 12
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits, or files that are replaced in use")


def vectors(ids: Iterable[int]) -> npt.NDArray[np.float64]:
    return np.array([np.random.default_rng(id).standard_normal(D) for id in ids]).reshape(-1, D)


def filled(ids: Iterable[int]) -> CodedIndex:
    index = CodedIndex(D)
    index.add([*ids], vectors(ids))
    return index


def holds(index: CodedIndex, ids: Iterable[int]) -> bool:
    """Return whether the index holds exactly these ids, each with its own vector."""
    found = [index.search(vectors([id])[0], 1) for id in ids]
    right = all(int(there[0]) == id and cosines[0] > 0.999 for id, (there, cosines) in zip(ids, found, strict=True))
    return right and index.stats().count == len(found)


def loaded(folder: Path) -> CodedIndex:
    index = CodedIndex(D)
    assert index.load(folder, "f") is not None
    return index


KEPT = [*range(1, 7), *range(8, 31)]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder whose file holds 1 to 30 without 7, with the mark (30, 1)."""
    index = filled(range(1, 31))
    index.save(tmp_path / "index", Mark("f", D, 30))
    index.remove([7])
    index.save(tmp_path / "index", Mark("f", D, 30, 1))
    return tmp_path / "index"


@pytest.mark.slow
def test_search_by_codes_finds_nearly_what_all_cosines_find() -> None:
    """10,000 vectors around 500 centres; a few directions hold most of the variance, as in real ones."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((500, 61))
    spread = centres[rng.integers(0, 500, 10_000)] + 0.5 * rng.standard_normal((10_000, 61))
    rows = spread * np.arange(1, 62) ** -0.5
    exact, coded = ExactIndex(61), CodedIndex(61)  # 61: the last byte of a code is padded
    for index in (exact, coded):
        index.add(range(10_000), rows)
    queries = rows[:50] + 0.3 * rows[1:51]
    hits = [len(np.intersect1d(exact.search(each, 10)[0], coded.search(each, 10)[0])) for each in queries]
    assert sum(hits) / 500 >= 0.98


def test_sign_codes_are_one_bit_a_dimension() -> None:
    rows = np.array([[1.0, -1.0, 0.0, 0.5, -0.0, 2.0, 3.0, 4.0, 5.0]])
    assert kernels.sign_codes(rows).tolist() == [[0b10010111, 0b10000000, *[0] * 6]]
    # 1 to 32 and 64 bytes as faiss likes them; above, whole groups of 64 dimensions
    lengths = {1: 8, 64: 8, 65: 16, 256: 32, 257: 64, 384: 64, 512: 64, 513: 72, 768: 96, 1024: 128}
    assert {dimensions: kernels.code_bytes(dimensions) for dimensions in lengths} == lengths


@pytest.mark.parametrize("limit", [0, kernels.MAX_COUNTED])
def test_nearest_codes_differ_in_the_fewest_bits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MAX_COUNTED", limit)
    codes = np.array([[0b1111_0000], [0b1111_1111], [0b0000_1111], [0b1111_0001]], np.uint8)
    # differing bits from 1111_0000: 0, 4, 8, 1
    assert kernels.nearest_codes(codes, codes[0], 3).tolist() == [0, 3, 1]


def test_nearest_rows_leaves_the_number_of_faiss_threads_as_it_was() -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        kernels.nearest_rows(np.eye(8, dtype=np.float16), np.ones(8, np.float32), 2)
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


def test_load_where_nothing_is_changes_nothing(tmp_path: Path) -> None:
    index = filled([1])
    assert index.load(tmp_path / "none", "f") is None
    assert holds(index, [1])
    assert not (tmp_path / "none").exists()


def test_save_an_empty_index_that_goes_on(tmp_path: Path) -> None:
    CodedIndex(D).save(tmp_path, Mark("f", D, 3, 3))
    index = loaded(tmp_path)
    index.add([4], vectors([4]))
    index.save(tmp_path, Mark("f", D, 4, 3))
    assert holds(loaded(tmp_path), [4])


@posix
def test_save_replaces_the_file_and_who_reads_the_old_one_goes_on(kept: Path) -> None:
    index, reader = loaded(kept), loaded(kept)
    for name in ("head", "rows-12ab", "index.new"):  # of an earlier format, and of a writer that was killed
        (kept / name).write_bytes(b"old")
    index.remove(range(1, 21))
    assert index.save(kept, Mark("f", D, 30, 21))
    assert {each.name for each in kept.iterdir()} <= {"index", "lock"}
    for one in (index, loaded(kept)):
        assert holds(one, range(21, 31))
    assert holds(reader, KEPT)


def test_save_leaves_a_file_that_is_as_far(kept: Path) -> None:
    one, other = loaded(kept), loaded(kept)
    one.add([31, 32], vectors([31, 32]))
    assert one.save(kept, Mark("f", D, 32, 1))
    other.add([31], vectors([31]))
    assert not other.save(kept, Mark("f", D, 31, 1))
    assert holds(other, [*KEPT, 31])
    assert holds(loaded(kept), [*KEPT, 31, 32])


def test_load_nothing_of_another_embedder_or_length_which_save_replaces(kept: Path) -> None:
    assert CodedIndex(D).load(kept, "g") is None
    assert CodedIndex(D + 1).load(kept, "f") is None
    assert filled([1]).save(kept, Mark("g", D, 1))
    assert CodedIndex(D).load(kept, "f") is None
    assert CodedIndex(D).load(kept, "g") == Mark("g", D, 1)


def cut(data: bytearray) -> None:
    del data[-3:]


def flip(data: bytearray, at: int) -> None:
    data[at] ^= 0x40


SPOILED: dict[str, Callable[[bytearray], None]] = {
    "truncated": cut,
    "empty": bytearray.clear,
    "zeros": lambda data: data.__setitem__(slice(None), bytes(len(data))),
    "zeros in the rows": lambda data: data.__setitem__(slice(-100, None), bytes(100)),
    "a bit of the mark": lambda data: flip(data, data.index(b'"removal":1') + 10),
    "a bit of the ids": lambda data: flip(data, snapshot.HEAD_BYTES + 8),
    "a bit of the codes": lambda data: flip(data, snapshot.HEAD_BYTES + 8 * 29 + 3),
    "another format": lambda data: data.__setitem__(slice(11), b'{"format":1'),
}


@pytest.mark.parametrize("how", SPOILED)
def test_load_a_torn_file_is_none_and_is_replaced(kept: Path, how: str) -> None:
    path = kept / "index"
    data = bytearray(path.read_bytes())
    SPOILED[how](data)
    path.write_bytes(data)
    index = filled([1, 2])
    assert index.load(kept, "f") is None
    assert holds(index, [1, 2])
    assert index.save(kept, Mark("f", D, 2))
    assert holds(loaded(kept), [1, 2])


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from coherence.lessons.index.base import Mark
from coherence.lessons.index.coded import CodedIndex
folder = Path(sys.argv[1])
index = CodedIndex(12)
assert index.load(folder, "f") is not None
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
rows = np.random.default_rng(0).standard_normal((3000, 12))
index.add(range(100, 3100), rows)
try:
    index.save(folder, Mark("f", 12, 3100, 1))
except OSError as error:
    print(error)
assert index.stats().count == 3029
assert all(index.search(row, 1)[0][0] == 100 + at for at, row in enumerate(rows))
"""


@pytest.mark.slow
@posix
def test_save_on_a_full_disk_is_an_error_and_nothing_is_lost(kept: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, kept], capture_output=True, text=True, check=False)
    assert (done.returncode, "File too large" in done.stdout) == (0, True), done.stderr
    assert holds(loaded(kept), KEPT)
