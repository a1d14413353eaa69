"""Arithmetic on vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from coherence.core.errors import VectorError
from coherence.core.vectors import Matrix, cosine_table, dots, exact_cosines, scale_exactly, to_half, to_unit


def unit_rows(rng: np.random.Generator, n: int, d: int = 384) -> Matrix:
    return np.array([to_unit(to_half(row)) for row in rng.standard_normal((n, d))], np.float32).reshape(n, d)


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_dots_a_cosine_is_bit_for_bit_the_same_in_every_window(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, vector = unit_rows(rng, n), unit_rows(rng, 1)[0]
    together = dots(matrix, vector)
    alone = [dots(matrix[i : i + 1], vector)[0] for i in range(n)]
    mirrored = [dots(vector[None], matrix[i])[0] for i in range(n)]
    assert together.tolist() == alone == mirrored


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_a_table_holds_what_dots_gives_in_either_orientation(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = unit_rows(rng, n), unit_rows(rng, m)
    table = cosine_table(rows, columns)
    assert table.shape == (n, m)
    assert table.tolist() == cosine_table(columns, rows).T.tolist()
    for i in range(n):
        assert table[i].tolist() == dots(columns, rows[i]).tolist()


@given(arrays(np.float64, 5, elements=st.floats(-1e300, 1e300, allow_subnormal=False)).filter(lambda v: bool(v.any())))
def test_to_unit_any_finite_vector_becomes_one_of_unit_length(vector: np.ndarray) -> None:
    unit = to_unit(to_half(vector))
    assert abs(float(np.linalg.norm(unit.astype(np.float64))) - 1) < 1e-6
    exact = vector / np.abs(vector).max()
    exact /= np.linalg.norm(exact)
    # float16 has 11 bits: an entry moves by 2**-12 of the largest at most, five entries together by sqrt(5) of that
    assert np.abs(unit - exact).max() < 2.0**-10


def test_scale_exactly_scaling_by_a_power_of_two_is_exact() -> None:
    vector = np.array([3.0, -4.0, 0.1])
    assert (scale_exactly(vector) * 8 == vector).all()


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([], "empty vector"),
        ([0.0, 0.0], "zero vector"),
        ([1.0, float("nan")], "NaN or infinity"),
        ([1.0, float("inf")], "NaN or infinity"),
        ([[1.0, 2.0], [3.0, 4.0]], "2 vectors for one text"),
        ([1.0, 2.0, 3.0], "3 dimensions, expected 2"),
        (3.0, r"shape \(\)"),
        ("words", "not a vector of numbers"),
        (None, "NaN or infinity|not a vector|shape"),
        ([[1.0], [1.0, 2.0]], "not a vector of numbers"),
    ],
)
def test_to_half_what_is_not_one_usable_vector_is_named(vector: object, message: str) -> None:
    with pytest.raises(VectorError, match=message):
        to_half(vector, 2)


def test_exact_cosines_refuse_vectors_of_different_dimensions() -> None:
    with pytest.raises(ValueError, match="2 and 3"):
        exact_cosines([[1, 0]], [[1, 0, 0]])
    with pytest.raises(ValueError, match="1 and 2"):
        exact_cosines([[1], [1, 0]], [[1, 0]])


def test_exact_cosines_are_zero_for_zero_vectors_and_do_not_overflow() -> None:
    assert exact_cosines([[0, 0], [1e200, 0], [1e-200, 0]], [[1e200, 0]]).tolist() == [[0], [1], [1]]
