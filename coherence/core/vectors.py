"""Arithmetic on embedding vectors, in one place so that the same two texts always give the same cosine.

A cosine must not depend on which other texts are in the window, or a replay after a restart would differ in the last
bit. Matrix products (``@``) do depend on it: BLAS blocks rows and treats the remainder differently. ``numpy.vecdot``
reduces each row by itself, is symmetric in its arguments, and is as fast (10,000 rows of 384: 0.33 ms against 0.50).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from coherence.core.errors import VectorError

Matrix: TypeAlias = npt.NDArray[np.float32]
"""``(n, d)`` float32, rows of unit length (or all zero)."""

Vector: TypeAlias = npt.NDArray[np.float32]
"""``(d,)`` float32, of unit length (or all zero)."""

Half: TypeAlias = npt.NDArray[np.float16]
"""``(d,)`` float16: the recorded form of a vector, scaled by a power of two."""

Rows: TypeAlias = Sequence[Sequence[float]] | npt.NDArray[np.floating]
"""Any vectors a caller may have: a list of lists or a matrix, of any length and float type."""


def scale_exactly(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divide by the power of two that brings the largest entry into [0.5, 1); exact, so that squares cannot overflow.

    Works on the last axis; zero vectors stay zero.
    """
    peak = np.max(np.abs(vector), axis=-1, keepdims=True, initial=0.0)
    scaled: npt.NDArray[np.float64] = np.ldexp(vector, -np.frexp(peak)[1])
    return scaled


def to_half(vector: object, dimensions: int | None = None) -> Half:
    """Check what an embedder returned for one text and give its recorded form.

    Parameters
    ----------
    vector : array_like
        Expected: shape ``(d,)``, finite, not all zero.
    dimensions : int, optional
        The length it must have.

    Raises
    ------
    VectorError
        Says what was returned instead.
    """
    try:
        array = np.asarray(vector, dtype=np.float64)
    except Exception as error:  # what an embedder returns may do anything when it is read
        raise VectorError(f"returned {type(vector).__name__}, not a vector of numbers") from error
    if array.ndim == 2:
        raise VectorError(f"returned {len(array)} vectors for one text")
    if array.ndim != 1:
        raise VectorError(f"returned shape {array.shape}, expected ({dimensions or 'd'},)")
    if array.size == 0:
        raise VectorError("returned an empty vector")
    if dimensions is not None and array.size != dimensions:
        raise VectorError(f"returned {array.size} dimensions, expected {dimensions}")
    peak = float(np.abs(array).max())
    if not math.isfinite(peak):
        raise VectorError("returned NaN or infinity")
    if peak == 0.0:
        raise VectorError("returned a zero vector")
    scaled: npt.NDArray[np.float64] = np.ldexp(array, -math.frexp(peak)[1])
    return scaled.astype(np.float16)


def to_unit(half: Half) -> Vector:
    """Give the unit vector (float32) that is used for a recorded one.

    Examples
    --------
    >>> [float(x) for x in to_unit(to_half([3, 4]))]
    [0.6000000238418579, 0.800000011920929]
    """
    wide = half.astype(np.float64)
    return (wide / math.sqrt(np.vecdot(wide, wide))).astype(np.float32)


def dots(matrix: Matrix, vector: Vector) -> npt.NDArray[np.float32]:
    """Return the cosines ``(n,)`` of the unit rows of ``matrix`` with a unit vector, each independent of the others."""
    product: npt.NDArray[np.float32] = np.vecdot(matrix, vector)
    return product


def cosine(one: Half, other: Half) -> float:
    """Return the cosine of two vectors as they are recorded, in [-1, 1]."""
    left, right = one.astype(np.float64), other.astype(np.float64)
    mass = math.sqrt(float(np.vecdot(left, left)) * float(np.vecdot(right, right)))
    return max(-1.0, min(float(np.vecdot(left, right)) / mass, 1.0))


def cosine_table(rows: Matrix, columns: Matrix) -> Matrix:
    """Return all cosines ``(n, m)`` of two sets of unit rows, bit for bit what :func:`dots` gives for each pair."""
    if not rows.size or not columns.size:  # no rows, or rows without a single usable vector
        return np.zeros((len(rows), len(columns)), np.float32)
    table = np.empty((len(rows), len(columns)), np.float32)
    if len(rows) <= len(columns):
        for i, vector in enumerate(rows):
            table[i] = dots(columns, vector)
    else:
        for j, vector in enumerate(columns):
            table[:, j] = dots(rows, vector)
    return table


def exact_cosines(rows: Rows, columns: Rows) -> npt.NDArray[np.float64]:
    """Return all cosines ``(n, m)`` in float64 of vectors of any length; 0 where a vector is zero.

    Raises
    ------
    ValueError
        If the vectors do not all have the same dimension.
    """
    left, right = _wide(rows), _wide(columns)
    if not left.size or not right.size:
        return np.zeros((len(left), len(right)))
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"vectors differ in dimension: {left.shape[1]} and {right.shape[1]}")
    norms = np.outer(np.sqrt(np.sum(left**2, axis=1)), np.sqrt(np.sum(right**2, axis=1)))
    return np.divide(left @ right.T, norms, out=np.zeros_like(norms), where=norms > 0)


def _wide(rows: Rows) -> npt.NDArray[np.float64]:
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise ValueError(f"vectors differ in dimension: {' and '.join(map(str, sorted(lengths)))}")
    return scale_exactly(np.asarray(rows, dtype=np.float64).reshape(len(rows), max(lengths, default=0)))
