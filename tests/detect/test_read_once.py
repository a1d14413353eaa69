from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coherence.detect.read_once as memory
from coherence.detect.read_once import MAX_BYTES, read_once


def test_read_once_reads_a_text_once_for_each_option() -> None:
    asked = Counter[str]()

    @read_once
    def length(text: str, *, twice: bool = False) -> int:
        asked[text] += 1
        return len(text) * (2 if twice else 1)

    assert [length("read once"), length("read once"), length("read once", twice=True), length("read once")] == [
        9,
        9,
        18,
        9,
    ]
    assert asked == {"read once": 2}


@given(st.lists(st.sampled_from(["a", "b" * 60, "c" * 200, "d" * 5_000]), max_size=40))
def test_read_once_says_the_same_whatever_is_forgotten(texts: list[str]) -> None:
    with patch.object(memory, "MAX_BYTES", 500), patch.object(memory, "_KEPT", memory._Kept()) as kept:
        length = read_once(len)
        assert list(map(length, texts)) == list(map(len, texts))
        held = sum(map(sys.getsizeof, kept))
        assert held <= 500 or len(kept) == 1  # the newest text may be longer than all that is kept
        assert kept.size == held


def test_read_once_forgets_a_failure() -> None:
    tries = []

    @read_once
    def fails_first(text: str) -> int:
        tries.append(text)
        if len(tries) == 1:
            raise ValueError("not yet")
        return len(tries)

    with pytest.raises(ValueError, match="not yet"):
        fails_first("forgets a failure")
    assert fails_first("forgets a failure") == fails_first("forgets a failure") == 2


def test_read_once_from_many_threads() -> None:
    texts = [f"{number} " * 2_000 for number in range(200)] * 3  # far more than is kept
    assert sum(map(sys.getsizeof, set(texts))) > 2 * MAX_BYTES
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read_once(len), texts)) == list(map(len, texts))
