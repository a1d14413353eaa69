from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.providers import HashingEmbedder
from coherence.providers.hashing import MAX_CHARS


def cosine(left: str, right: str) -> float:
    embedder = HashingEmbedder()
    return float(embedder.embed(left) @ embedder.embed(right))


def test_hashing_a_text_has_the_same_vector_in_every_process() -> None:
    vector = HashingEmbedder(8).embed("the same text, ü 日本")
    counts = np.array([-1, 1, 1, 0, -3, 0, 0, -1])  # of n-grams by bucket and sign, as they were on another machine
    assert vector == pytest.approx(np.sign(counts) * np.sqrt(np.abs(counts) / 7))


def test_hashing_similar_spellings_are_nearer_than_different_ones() -> None:
    assert cosine("refund the payment", "refunded payments") > 0.5
    assert abs(cosine("refund the payment", "quick brown fox jumps")) < 0.2
    assert cosine("Fix   the\nLogin", "fix the login") == pytest.approx(1.0, abs=1e-6)
    assert cosine("configuration", "configure") > cosine("configuration", "violin") + 0.3


@given(text=st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=300))
def test_hashing_every_text_has_a_finite_vector_of_unit_length(text: str) -> None:
    vector = HashingEmbedder(64).embed(text)
    assert vector.shape == (64,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_hashing_of_a_long_text_head_and_tail_count_and_the_middle_does_not() -> None:
    embedder = HashingEmbedder()
    head, tail = "alpha " * (MAX_CHARS // 12 + 1), " omega" * (MAX_CHARS // 12 + 1)
    long = embedder.embed(f"{head}middle{tail}")
    assert np.array_equal(long, embedder.embed(f"{head}something else entirely{tail}"))
    assert not np.array_equal(long, embedder.embed(f"beta{head}middle{tail}"))
    assert not np.array_equal(long, embedder.embed(f"{head}middle{tail}beta"))


def test_hashing_a_text_of_ten_megabytes_takes_little_memory() -> None:
    embedder, text = HashingEmbedder(), "hello world " * 900_000
    assert len(text) > 10_000_000
    tracemalloc.start()
    try:
        vector = embedder.embed(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.isfinite(vector).all()
    assert peak < 10_000_000  # 16,000 characters have about 3 grams each of some 60 bytes; a copy would be 10.8 MB


def test_embed_batch_a_batch_is_its_texts_one_by_one() -> None:
    embedder, texts = HashingEmbedder(32), ["one", "two", "", "\ud800"]
    batch = embedder.embed_batch(texts)
    assert batch.shape == (4, 32)
    for row, text in zip(batch, texts, strict=True):
        assert np.array_equal(row, embedder.embed(text))


@pytest.mark.parametrize("dimensions", [8.0, "8", True, None, 7, -1])
def test_hashing_dimensions_that_are_no_int_of_8_or_more_are_refused(dimensions: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"dimensions must be (an int|8 or more), not {dimensions!r}"):
        HashingEmbedder(dimensions)
