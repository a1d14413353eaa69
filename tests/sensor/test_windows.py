"""The kept cosines are those of a fresh computation, bit for bit, whatever changes."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.readings import KINDS, Kind
from coherence.core.vectors import Half, cosine_table, to_half, to_unit
from coherence.providers import HashingEmbedder
from coherence.sensor.windows import Windows

EMBEDDER = HashingEmbedder(32)
TEXTS = [f"text {n}" for n in range(12)]
VECTORS: dict[str, Half | str] = {text: to_half(EMBEDDER.embed(text)) for text in TEXTS}
BAD = "bad"

LISTS = st.lists(st.sampled_from([*TEXTS, BAD]), max_size=10)
CHANGES = st.lists(st.tuples(st.sampled_from(KINDS[:3]), LISTS, st.booleans()), min_size=1, max_size=12)


def fresh(windows: Windows, kind: Kind, keep_bad: bool) -> np.ndarray:
    rows = []
    for text in windows[kind].texts:
        vector = VECTORS.get(text)
        rows.append(np.zeros(32, np.float32) if vector is None or isinstance(vector, str) else to_unit(vector))
    return np.array(rows, np.float32).reshape(-1, 32)


@examples(200)
@example(
    [
        ("context", ["text 0"], False),
        ("goals", ["text 0"], True),
        ("context", ["text 0", "text 0", "text 1"], False),
        ("goals", ["text 0", "text 0", "text 0"], True),
    ],
    False,
)
@example(
    [
        ("context", ["text 0"], False),
        ("goals", ["text 0", "text 1"], True),
        ("context", ["text 0", "text 0", "text 1"], False),
        ("goals", ["text 1", "text 0"], True),
    ],
    False,
)
@given(CHANGES, st.booleans())
def test_windows_kept_tables_equal_fresh_ones(changes: list[tuple[Kind, list[str], bool]], keep_bad: bool) -> None:
    windows = Windows()
    windows.follow("one")
    vectors = {**VECTORS, BAD: "a zero vector"}
    for kind, texts, look in changes:
        windows.update(kind, texts, vectors, keep_bad=keep_bad)
        assert list(windows[kind].texts) == [text for text in texts if keep_bad or text != BAD]
        if not look:  # a table that is not asked for at every change falls behind by more than one
            continue
        for rows in KINDS[:3]:
            for columns in KINDS[:3]:
                table = windows.cosines(rows, columns)
                expected = cosine_table(fresh(windows, rows, keep_bad), fresh(windows, columns, keep_bad))
                assert table.shape == (len(windows[rows].texts), len(windows[columns].texts))
                assert table.tolist() == expected.tolist()
                assert not table.flags.writeable


def test_windows_what_a_metric_keeps_from_an_earlier_tick_stays_what_it_was() -> None:
    windows = Windows()
    windows.follow("one")
    windows.update("context", TEXTS[:5], VECTORS, keep_bad=False)
    matrix, table = windows["context"].matrix, windows.cosines("context", "context")
    before = matrix.copy(), table.copy()
    for start in range(1, 6):
        windows.update("context", TEXTS[start : start + 5], VECTORS, keep_bad=False)
        windows.cosines("context", "context")
    assert np.array_equal(matrix, before[0])
    assert np.array_equal(table, before[1])
