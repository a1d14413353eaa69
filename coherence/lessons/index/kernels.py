"""Sign codes of vectors, and the scans that faiss does.

faiss is imported only here, and only when the first scan comes. It would spread even one query over all cores; inside a
host that has own threads this costs more than it gains, so each scan runs on the calling thread. The setting for this
belongs to the thread (OpenMP's ``nthreads-var``) and is put back after each scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.core.vectors import Vector
from coherence.lessons.index.base import Cosines, HalfRows

MAX_COUNTED = 8_192
"""Up to so many neighbours are collected in buckets by distance (34 MB at 64 bytes), above in a heap."""

QUICK_BYTES = (8, 16, 32, 64)
"""Lengths of codes that faiss counts fast: 1,000,000 codes of 64 bytes take 6 ms, of 48 bytes 11 ms."""


def nearest_rows(rows: HalfRows, query: Vector, k: int) -> tuple[npt.NDArray[np.int64], Cosines]:
    """Return places and cosines of the ``k`` nearest rows; faiss widens float16 some ten times faster than numpy."""
    with _one_thread() as faiss:
        index = faiss.IndexScalarQuantizer(rows.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        flat = rows.reshape(-1).view(np.uint8)
        owner = faiss.MaybeOwnedVectorUInt8().owner  # numpy owns the memory and outlives this call
        index.codes = faiss.MaybeOwnedVectorUInt8.create_view(faiss.swig_ptr(flat), flat.size, owner)
        index.ntotal = len(rows)
        products, places = index.search(query[None, :], min(k, len(rows)))
    return places[0], products[0]


def nearest_codes(codes: npt.NDArray[np.uint8], code: npt.NDArray[np.uint8], k: int) -> npt.NDArray[np.int64]:
    """Return the places of the ``k`` codes that differ from ``code`` in the fewest bits.

    Parameters
    ----------
    codes : ndarray
        ``(n, bytes)`` uint8, contiguous, ``n >= k``.
    code : ndarray
        ``(bytes,)`` uint8.
    k : int
        1 or above.
    """
    with _one_thread() as faiss:
        _, places = faiss.knn_hamming(code[None, :], codes, k, "mc" if k <= MAX_COUNTED else "hc")
    found: npt.NDArray[np.int64] = places[0]
    return found


def code_bytes(dimensions: int) -> int:
    """Return the length of a sign code.

    Examples
    --------
    >>> code_bytes(8), code_bytes(384), code_bytes(1024)
    (8, 64, 128)
    """
    least = (dimensions + 7) // 8
    return next((quick for quick in QUICK_BYTES if quick >= least), -least // 8 * -8)


def sign_codes(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return one bit a dimension, set where the component is above 0; padded with zeros to :func:`code_bytes`.

    Examples
    --------
    >>> import numpy as np
    >>> sign_codes(np.array([[0.6, -0.8, 0.0]])).tolist()
    [[128, 0, 0, 0, 0, 0, 0, 0]]
    """
    bits = np.packbits(rows > 0, axis=-1)
    codes = np.zeros((*bits.shape[:-1], code_bytes(rows.shape[-1])), np.uint8)
    codes[..., : bits.shape[-1]] = bits
    return codes


@contextmanager
def _one_thread() -> Iterator[Any]:
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(threads)
