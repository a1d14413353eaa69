from typing import TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.policy.corrections import Corrections, CorrectionSource

Said: TypeAlias = tuple[str, str, int, str, bool]
"""Correction, request, number, session, whether vectors are known."""

REQUESTS = ["send mails in batches", "send mails in large batches", "bake rye bread", "fix login", ""]
TEXTS = ["use metric units", "Use metric units!", "use tabs, not spaces", "use spaces, not tabs", "shorter", "longer"]
VECTORS = {
    text: np.random.default_rng(at // 2).standard_normal(8) for at, text in enumerate([*REQUESTS, *TEXTS]) if text
}

said = st.tuples(
    st.sampled_from(TEXTS), st.sampled_from(REQUESTS), st.integers(0, 12), st.sampled_from("ab"), st.booleans()
)


def told(events: list[Said]) -> Corrections:
    kept = Corrections()
    for text, request, seq, session, known in events:
        kept.add(text, request=request, seq=seq, session=session, step=seq, vectors=VECTORS if known else None)
    return kept


def as_data(kept: Corrections) -> object:
    return msgspec.to_builtins(kept)


def by_id(kept: Corrections) -> set[tuple[str, str, str, tuple[CorrectionSource, ...]]]:
    return {(note.id, note.text, note.request, tuple(note.sources)) for note in kept.notes.values()}


def sources(kept: Corrections) -> set[CorrectionSource]:
    return {source for note in kept.notes.values() for source in note.sources}


@given(
    st.lists(said, max_size=20, unique_by=lambda event: event[2:4]),
    st.lists(st.tuples(st.sampled_from("abx"), st.booleans()), min_size=20, max_size=20),
)
@examples(200)
def test_merge_merging_does_not_depend_on_the_order_and_counts_once(
    events: list[Said], who: list[tuple[str, bool]]
) -> None:
    # "x" = known to both, the vectors perhaps to one only.
    a = told([event for event, (to, _) in zip(events, who, strict=False) if to in "ax"])
    b = told([(*event[:4], flag) for event, (to, flag) in zip(events, who, strict=False) if to in "bx"])
    before = as_data(a), as_data(b)
    merged = a.merge(b)
    assert as_data(merged) == as_data(b.merge(a))
    assert (as_data(a), as_data(b)) == before
    assert sources(merged) == sources(a) | sources(b)
    for again in (merged.merge(a), merged.merge(b), merged.merge(merged)):
        assert by_id(again) == by_id(merged)


@given(st.lists(said, max_size=20), st.lists(said, max_size=10), st.lists(st.integers(0, 19), max_size=3))
@examples(150)
def test_settle_a_saved_state_goes_on_as_if_it_had_never_been_away(
    first: list[Said], then: list[Said], forgotten: list[int]
) -> None:
    kept = told(first)
    for at in forgotten:
        if kept.notes:
            kept.forget(sorted(kept.notes)[at % len(kept.notes)])
    copy = msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Corrections)
    for state in (kept, copy):
        for text, request, seq, session, known in then:
            vectors = VECTORS if known else None
            state.add(text, request=request, seq=100 + seq, session=session, step=seq, vectors=vectors)
        state.settle(VECTORS)
    assert kept == copy
    assert kept.patterns(20) == copy.patterns(20)
    check_whole(kept)


def check_whole(kept: Corrections) -> None:
    """Check that each event belongs to one note, and each note stands under its id."""
    assert all(id == note.id and note.sources == sorted(note.sources) for id, note in kept.notes.items())
    keys = [(s.session, s.seq) for note in kept.notes.values() for s in note.sources]
    assert len(keys) == len(set(keys))


def test_patterns_may_emerge_from_two_states_together() -> None:
    a = told([("shorter", "fix login", 1, "a", True), ("use metric units", "fix login", 2, "a", True)])
    b = told([("shorter", "fix login", 1, "b", True), ("shorter", "fix login", 1, "a", True)])
    assert not a.patterns(3)
    assert not b.patterns(3)
    # a/1 is known to both and counts once: a/1, a/2, b/1.
    assert [pattern.count for pattern in a.merge(b).patterns(3)] == [3]


def test_edit_the_version_that_was_edited_stays() -> None:
    a = told([("shorter", "fix login", 1, "a", True)])
    b = told([("shorter", "fix login", 1, "a", True)])
    b.edit(next(iter(b.notes)), "at most two lines")
    assert [note.text for note in a.merge(b).notes.values()] == ["at most two lines"]
    assert as_data(a.merge(b)) == as_data(b.merge(a))


def test_corrections_vectors_of_different_models_do_not_mix() -> None:
    a, b = Corrections(), Corrections()
    for kept, size in ((a, 3), (b, 4)):
        kept.add("x", request="y", seq=1, session="s", step=1, vectors={"y": np.ones(size)})
    with pytest.raises(ValueError, match=r"one length to be merged, not \[3, 4\]"):
        a.merge(b)
