"""The real switches between the tiers, and how exact the codes are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from coherence.lessons.index import kernels, scan
from coherence.lessons.index.base import Mark
from coherence.lessons.index.local import LocalIndex

D = 61  # not a multiple of 8: the last byte of a code is padded


@pytest.fixture(scope="module")
def vectors() -> npt.NDArray[np.float32]:
    """60,000 vectors around 3,000 centres; a few directions hold most of the variance, as in real ones."""
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((3_000, D), np.float32)
    spread = centres[rng.integers(0, 3_000, 60_000)] + 0.5 * rng.standard_normal((60_000, D), np.float32)
    rows: npt.NDArray[np.float32] = spread * (np.arange(1, D + 1) ** -0.5).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows


def overlap(index: LocalIndex, rows: npt.NDArray[np.float32]) -> float:
    """Return recall@10 for 50 queries that are between two rows, against all cosines of the unrounded rows."""
    hits = 0
    for at in range(50):
        query = rows[at] + 0.3 * rows[at + 1]
        exact = np.argsort(-(rows @ query))[:10] + 1
        hits += len(np.intersect1d(exact, index.search(query, 10)[0]))
    return hits / 500


@pytest.mark.slow
def test_the_tier_follows_the_count_and_both_find_the_nearest(vectors: npt.NDArray[np.float32], tmp_path: Path) -> None:
    index = LocalIndex(D, tmp_path)
    index.add(range(1, 50_001), vectors[:50_000])
    assert index.stats().tier == "flat"
    assert overlap(index, vectors[:50_000]) >= 0.99  # all but ties within the rounding to float16
    index.add(range(50_001, 60_001), vectors[50_000:])
    assert index.stats().tier == "binary"
    assert overlap(index, vectors) >= 0.98
    index.save(tmp_path, Mark("f", D, 60_000))
    kept = LocalIndex(D)
    kept.load(tmp_path, "f")
    assert kept.stats().tier == "binary"
    for row in vectors[:20]:
        assert [a.tolist() for a in kept.search(row, 20)] == [a.tolist() for a in index.search(row, 20)]
    index.remove(range(40_001, 60_001))
    assert index.stats().tier == "binary"  # 40,000 are left, not fewer
    index.remove([40_000])
    assert index.stats().tier == "flat"
    assert overlap(index, vectors[:39_999]) >= 0.99


def test_index_tiers_codes_are_one_bit_a_dimension() -> None:
    rows = np.array([[1.0, -1.0, 0.0, 0.5, -0.0, 2.0, 3.0, 4.0, 5.0]])
    assert kernels.sign_codes(rows).tolist() == [[0b10010111, 0b10000000, *[0] * 6]]
    assert kernels.sign_codes(rows[0]).tolist() == kernels.sign_codes(rows)[0].tolist()
    # 1 to 32 and 64 bytes as faiss likes them; above, whole groups of 64 dimensions
    lengths = {1: 8, 64: 8, 65: 16, 256: 32, 257: 64, 384: 64, 512: 64, 513: 72, 768: 96, 1024: 128}
    assert {dimensions: kernels.code_bytes(dimensions) for dimensions in lengths} == lengths


def test_the_nearest_codes_differ_in_the_fewest_bits() -> None:
    codes = np.array([[0b1111_0000], [0b1111_1111], [0b0000_1111], [0b1111_0001]], np.uint8)
    # differing bits from 1111_0000: 0, 4, 8, 1
    for limit in (0, kernels.MAX_COUNTED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "MAX_COUNTED", limit)
            assert kernels.nearest_codes(codes, codes[0], 3).tolist() == [0, 3, 1]


def test_index_tiers_a_scan_leaves_the_number_of_threads_as_it_was() -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        kernels.nearest_rows(np.eye(8, dtype=np.float16), np.ones(8, np.float32), 2)
        assert faiss.omp_get_max_threads() == 3
    finally:
        faiss.omp_set_num_threads(before)


def test_index_tiers_few_rows_need_no_faiss(tmp_path: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        import numpy as np
        from coherence.lessons.index.base import Mark
        from coherence.lessons.index.local import LocalIndex
        index = LocalIndex(16)
        index.add(range(2000), np.random.default_rng(0).standard_normal((2000, 16)))
        index.search(np.ones(16), 10)
        index.save(Path(sys.argv[1]), Mark("f", 16, 1999))
        index.load(Path(sys.argv[1]), "f")
        index.search(np.ones(16), 10)
        assert "faiss" not in sys.modules and "qdrant_client" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)


def test_index_tiers_few_rows_and_many_rows_give_the_same_cosines_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).standard_normal((500, D))
    index = LocalIndex(D)
    index.add(range(500), rows)
    view = index._table.view()
    query = np.full(D, D**-0.5, np.float32)
    few, many = scan.search(view, query, 50), scan.search(view._replace(wide=None), query, 50)
    assert few[0].tolist() == many[0].tolist()
    assert few[1].tobytes() == many[1].tobytes()
