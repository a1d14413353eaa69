"""Corrections of users: what is kept, found again, faded, forgotten and merged."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.errors import VectorError
from coherence.policy.correction_words import content_words, is_implicit, opposed, overlap, stance, wording
from coherence.policy.corrections import (
    HALF_LIFE,
    MAX_CHARS,
    MAX_NOTES,
    MAX_SOURCES,
    NEAR,
    SHARED_WORDS,
    Corrections,
    CorrectionSource,
)
from coherence.providers import MiniLMEmbedder

ASK = "What is the weather in Oslo?"


def told(*texts: str, request: str = ASK, session: str = "s", first: int = 0) -> Corrections:
    kept = Corrections()
    for seq, text in enumerate(texts, first):
        kept.add(text, request=request, seq=seq, session=session, step=seq)
    return kept


def saved(kept: Corrections) -> Corrections:
    return msgspec.json.decode(msgspec.json.encode(kept), type=Corrections)


def test_three_corrections_on_one_request_make_a_pattern_and_two_do_not() -> None:
    assert told("a fact", "metric units").relevant(ASK, None, 2) is None
    found = told("a fact", "metric units", "no wind").relevant(ASK, None, 2)
    assert found is not None
    assert (found.kind, found.count) == ("topic", 3)
    assert [note.text for note in found.examples] == ["no wind", "metric units", "a fact"]
    assert found.provenance == (("s", 0), ("s", 1), ("s", 2))
    assert set(found.words) == {"oslo", "weath"}
    # Said at 0, 1, 2 and weighed at 2; the confidence is 1 - 2 ** (-weight / 3).
    weight = sum(0.5 ** (age / HALF_LIFE) for age in (0, 1, 2))
    assert found.weight == pytest.approx(weight)
    assert found.confidence == pytest.approx(1 - 2 ** (-weight / 3))


def test_what_is_said_again_is_kept_once_with_all_its_sources() -> None:
    kept = told("Use metric units.", "use metric units!", "please use metric units", "use imperial units")
    assert [len(note.sources) for note in kept.notes.values()] == [3, 1]
    assert kept.patterns(3)[0].count == 4


@pytest.mark.parametrize(
    ("a", "b"), [("Use tabs, not spaces", "Use spaces, not tabs"), ("retry 5 times", "retry 50 times")]
)
def test_corrections_what_differs_is_kept_apart(a: str, b: str) -> None:
    assert len(told(a, b).notes) == 2


def test_corrections_the_same_event_counts_once_and_a_blank_one_never() -> None:
    kept = told("a fact", "a fact")
    before = saved(kept)
    assert kept.add("changed", request="x", seq=1, session="s", step=9) == next(iter(before.notes))
    assert kept.add(" \n", request=ASK, seq=7, session="s", step=7) == ""
    assert kept == before


def test_patterns_a_pattern_fades() -> None:
    kept = told("a fact", "metric units", "no wind")
    # Three corrections weigh 1.5, half of the threshold, one half-life after they were said.
    assert kept.patterns(HALF_LIFE - 1)
    assert kept.patterns(HALF_LIFE + 2) == []
    kept.add("no rain", request=ASK, seq=9, session="s", step=HALF_LIFE + 2)
    assert kept.patterns(HALF_LIFE + 2)[0].count == 4


def test_relevant_what_is_said_on_three_topics_is_a_general_preference() -> None:
    kept = Corrections()
    for seq, request in enumerate([ASK, "Translate the manual", "Book a flight"]):
        assert kept.patterns(seq) == []
        kept.add("Answer in one short sentence", request=request, seq=seq, session="s", step=seq)
    found = kept.relevant("Something else entirely", None, 3)
    assert found is not None
    assert (found.kind, found.count) == ("preference", 3)


def test_relevant_one_thing_said_three_times_on_one_topic_is_no_general_preference() -> None:
    kept = told("Use metric units", "Use metric units", "Use metric units")
    assert kept.relevant("Translate the manual", None, 3) is None


def test_corrections_a_correction_without_a_request_is_found_by_its_own_text() -> None:
    kept = told("Use metric units", "use metric units!", "please use metric units", request="")
    found = kept.relevant("use metric units", None, 3)
    assert found is not None and found.count == 3


def test_settle_vectors_may_come_later() -> None:
    near, far = np.eye(4)[0], np.eye(4)[1]
    requests = {"Send mails in batches": near, "Deliver post in groups": near, "Bake bread": far}
    texts = {"by ten": near, "wait a minute": far, "less salt": np.eye(4)[2]}
    early, late = Corrections(), Corrections()
    for seq, (request, text) in enumerate(zip(requests, texts, strict=True)):
        early.add(text, request=request, seq=seq, session="s", step=seq, vectors=requests | texts)
        late.add(text, request=request, seq=seq, session="s", step=seq)
    assert set(late.pending()) == {*requests, *texts}
    late.settle({**requests, "unknown": near})
    assert set(late.pending()) == set(texts)
    late.settle(texts)
    assert late.pending() == []
    assert late == early


def test_settle_a_bad_vector_is_refused_and_changes_nothing() -> None:
    kept = told("a fact")
    kept.settle({ASK: np.ones(4)})
    before = saved(kept)
    with pytest.raises(VectorError, match="expected 4"):
        kept.add("b", request="c", seq=5, session="s", step=5, vectors={"c": np.ones(3)})
    with pytest.raises(VectorError, match="one length"):
        Corrections().add("b", request="c", seq=5, session="s", step=5, vectors={"b": np.ones(2), "c": np.ones(3)})
    with pytest.raises(VectorError, match="zero vector"):
        kept.settle({"a fact": np.zeros(4)})
    assert kept == before


def test_edit_a_correction_can_be_edited() -> None:
    kept = told("a fact", "metric units", "no wind")
    id = next(note.id for note in kept.notes.values() if note.text == "metric units")
    kept.edit(id, "imperial units")
    assert (kept.notes[id].text, kept.notes[id].request, kept.notes[id].sources[0].seq) == ("imperial units", ASK, 1)
    assert "metric" not in msgspec.json.encode(kept).decode()
    kept.edit(id, "No wind!")
    assert sorted(len(note.sources) for note in kept.notes.values()) == [1, 2]
    with pytest.raises(KeyError, match="no correction 'x'"):
        kept.edit("x", "text")
    with pytest.raises(ValueError, match="text must not be empty"):
        kept.edit(id, " ")


def test_forget_what_is_forgotten_leaves_no_trace_and_does_not_come_back() -> None:
    kept = told("a fact", "the password is sesame", "no wind")
    other = saved(kept)
    id = next(note.id for note in kept.notes.values() if "sesame" in note.text)
    assert kept.forget(id) == 1
    assert "sesame" not in msgspec.json.encode(kept).decode()
    assert kept.patterns(3) == []
    assert kept.add("the password is sesame", request=ASK, seq=1, session="s", step=1) == ""
    assert "sesame" not in msgspec.json.encode(other.merge(kept)).decode()
    assert kept.forget("unknown") == 0


def test_forget_a_whole_pattern_can_be_forgotten() -> None:
    kept = told("a fact", "metric units", "no wind")
    assert kept.forget(kept.patterns(2)[0].id) == 3
    assert kept.notes == {}


def test_corrections_memory_is_bounded() -> None:
    kept = Corrections()
    for seq in range(MAX_NOTES + 30):
        kept.add(f"fact{seq} " + "é" * 9_999, request=f"topic{seq}", seq=seq, session="s", step=seq)
    assert len(kept.notes) == MAX_NOTES
    # The oldest weigh least: notes 0 to 29 are gone.
    assert min(note.sources[0].seq for note in kept.notes.values()) == 30
    assert max(len(note.text) for note in kept.notes.values()) == MAX_CHARS
    for seq in range(1_000, 1_000 + 2 * MAX_SOURCES):
        kept.add("the same", request="topic99", seq=seq, session="s", step=seq)
    assert max(len(note.sources) for note in kept.notes.values()) == MAX_SOURCES


def test_corrections_what_is_often_said_outlives_newer_single_ones() -> None:
    kept = told("a fact", "a fact", "a fact")
    for seq in range(3, MAX_NOTES + 50):
        kept.add(f"fact{seq}", request=f"topic{seq}", seq=seq, session="s", step=seq)
    # Weight of the first then: about 3 / 2 ** (250 / 200) = 1.26, of topic3 1 / 2 ** (247 / 200) = 0.42.
    said = {note.request for note in kept.notes.values()}
    assert ASK in said and "topic3" not in said


@pytest.mark.parametrize("text", ["\0", "\ud800", "‮no", "x" * 1_000_000, "a\n" * 100_000, "!?!", "不要这样"])
def test_relevant_hostile_texts_are_taken_in(text: str) -> None:
    kept = told(text, text + "b", request=text)
    assert saved(kept) == kept
    kept.relevant(text, None, 3)
    kept.merge(kept)


def test_add_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="seq"):
        Corrections().add("text", request="a", seq=-1, session="s", step=1)
    with pytest.raises(TypeError, match="session"):
        Corrections().add("text", request="a", seq=1, session=None, step=1)  # type: ignore[arg-type]


DATA = json.loads((Path(__file__).parents[1] / "data" / "paraphrases.json").read_text())


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    requests = [text for half in DATA["requests"].values() for texts in half.values() for text in texts]
    traps = [text for half in DATA["traps"].values() for pair in half for text in pair]
    texts = sorted({*requests, *traps, *itertools.chain(*DATA["opposite_corrections"], *DATA["same_correction"])})
    return dict(zip(texts, np.asarray(MiniLMEmbedder().embed_batch(texts)), strict=True))


def kept_on(requests: list[str], vectors: dict[str, Any]) -> Corrections:
    kept = Corrections()
    for seq, text in enumerate(requests):
        kept.add(f"q{seq * 7919:x}z", request=text, seq=seq, session="s", step=seq, vectors=vectors)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("half", ["train", "held_out"])
def test_relevant_paraphrases_of_a_request_find_its_corrections_and_other_requests_do_not(
    half: str, vectors: dict[str, Any]
) -> None:
    topics = DATA["requests"][half]
    found = []
    for texts in topics.values():
        kept = kept_on(texts[:4], vectors)
        found += [kept.relevant(text, vectors[text], 4) is not None for text in texts[4:]]
        others = (text for other in topics.values() if other is not texts for text in other)
        assert not any(kept.relevant(text, vectors[text], 4) for text in others)
    assert len(found) == 8 * 4 and sum(found) >= 0.85 * len(found)


def traps() -> Iterator[Any]:
    for half, a, b in ((half, a, b) for half, pairs in DATA["traps"].items() for a, b in pairs):
        marks = [pytest.mark.xfail(reason="all words but two are the same")] if b.startswith("Ship the repl") else []
        yield pytest.param(half, a, b, marks=marks, id=b)


@pytest.mark.parametrize(("half", "request_text", "trap"), list(traps()))
def test_relevant_a_look_alike_finds_nothing(half: str, request_text: str, trap: str, vectors: dict[str, Any]) -> None:
    topic = next(texts for texts in DATA["requests"][half].values() if request_text in texts)
    for texts in ([request_text] * 3, topic):
        assert kept_on(texts, vectors).relevant(trap, vectors[trap], 8) is None


@pytest.mark.parametrize(("a", "b"), DATA["opposite_corrections"])
def test_stance_opposites_are_never_the_same_correction(a: str, b: str, vectors: dict[str, Any]) -> None:
    assert opposed(stance(a), stance(b))
    assert opposed(stance(b), stance(a))
    kept = Corrections()
    for seq, (text, request) in enumerate(((a, "bake bread"), (b, "fix login"), (a, "book a flight"))):
        kept.add(text, request=request, seq=seq, session="s", step=seq, vectors=vectors)
    assert kept.patterns(3) == []


@pytest.mark.parametrize(("a", "b"), DATA["same_correction"])
def test_stance_the_same_correction_in_other_clothes_is_kept_once(a: str, b: str) -> None:
    assert wording(a) == wording(b)
    assert not opposed(stance(a), stance(b))


def test_nearness_is_the_cosine_less_a_part_of_the_overlap_in_words() -> None:
    kept = Corrections()
    for seq in range(3):
        kept.add(f"say {seq}a", request="alpha beta", seq=seq, session="s", step=seq, vectors={"alpha beta": [1, 0]})
    # {alpha, delta} shares 1 of 2 words: the cosine must be at least 0.45 + 0.25 * 0.5 = 0.575.
    assert SHARED_WORDS * overlap(content_words("alpha beta"), content_words("alpha delta")) == 0.125
    assert kept.relevant("alpha delta", [0.576, 0.8174], 3) is not None
    assert kept.relevant("alpha delta", [0.573, 0.8196], 3) is None
    assert kept.relevant("other words", [NEAR + 0.001, 0.89], 3) is not None


def test_relevant_the_three_nearest_must_be_near_on_average() -> None:
    # cosines with the request (1, 0): 0.60, 0.50, 0.36 = 0.487 on average; then 0.60, 0.50, 0.20 = 0.433
    for third, found in ((0.36, 3), (0.20, None)):
        kept = Corrections()
        for seq, cosine in enumerate((0.60, 0.50, third)):
            vector = [cosine, (1 - cosine**2) ** 0.5]
            kept.add(f"say {seq}a", request=f"r{seq}", seq=seq, session="s", step=seq, vectors={f"r{seq}": vector})
        pattern = kept.relevant("what is asked", [1, 0], 3)
        assert (pattern and pattern.count) == found


def test_relevant_without_vectors_most_words_must_be_the_same() -> None:
    kept = kept_on(["summarise the quarterly sales report"] * 3, {})
    assert kept.relevant("Summarise the quarterly sales report, please", None, 3) is not None
    # {summa, quart, sales, repor} and {summa, secur, repor}: 2 of 5 words.
    assert kept.relevant("summarise the security report", None, 3) is None
    # A request with a vector is compared by its words with notes that have none.
    assert kept.relevant("the quarterly sales report: summarise", [1, 1], 3) is not None


@pytest.mark.parametrize(
    "message",
    [
        "no, use the other table", "No! I said CSV", "That's wrong.", "that is not what I asked for", "I meant the API",
        "Actually, use Postgres", "actually don't touch main", "Hmm, that's not right", "wrong, it is 5",
        "Thanks. But that's incorrect.", "You misunderstood me", "Nein, auf Deutsch", "Das ist falsch.", "Non, pas ça",
        "not what I wanted", "I didn't ask for tests", "list all the active users again",
    ],
)  # fmt: skip
def test_a_correcting_message_is_implicit(message: str) -> None:
    assert is_implicit(message, "List all the active users")


@pytest.mark.parametrize(
    "message",
    [
        "", "thanks!", "No, thanks", "no problem", "No worries", "no, that's fine", "No, I don't have a preference",
        "Now add tests", "Note: use CSV", "Actually that works", "Actually, thanks", "Actually, one more thing",
        "Tell me if that's wrong", "List all the inactive groups", "continue", "yes", "Nonetheless, go on",
        "What did I say wrong?", "Nothing else", "No idea, you choose",
    ],
)  # fmt: skip
def test_corrections_groups_other_messages_are_not(message: str) -> None:
    assert not is_implicit(message, "List all the active users")


def test_corrections_groups_a_short_repetition_is_no_correction() -> None:
    assert not is_implicit("continue", "continue")
    assert is_implicit("please list the open issues", "list the open issues")


@pytest.mark.parametrize("text", ["no" * 500_000, "no, " * 250_000, "\n" * 1_000_000, "\ud800", "don't " * 200_000])
def test_stance_hostile_messages_are_looked_at_briefly(text: str) -> None:
    assert is_implicit(text, text) in (True, False)
    assert content_words(text)
    stance(text)
    wording(text)


Said: TypeAlias = tuple[str, str, int, str, bool]
"""Correction, request, number, session, whether vectors are known."""

REQUESTS = ["send mails in batches", "send mails in large batches", "bake rye bread", "fix login", ""]
TEXTS = ["use metric units", "Use metric units!", "use tabs, not spaces", "use spaces, not tabs", "shorter", "longer"]
VECTORS = {
    text: np.random.default_rng(at // 2).standard_normal(8) for at, text in enumerate([*REQUESTS, *TEXTS]) if text
}

SAID = st.tuples(
    st.sampled_from(TEXTS), st.sampled_from(REQUESTS), st.integers(0, 12), st.sampled_from("ab"), st.booleans()
)


def heard(events: list[Said]) -> Corrections:
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
    st.lists(SAID, max_size=20, unique_by=lambda event: event[2:4]),
    st.lists(st.tuples(st.sampled_from("abx"), st.booleans()), min_size=20, max_size=20),
)
@examples(200)
def test_merge_merging_does_not_depend_on_the_order_and_counts_once(
    events: list[Said], who: list[tuple[str, bool]]
) -> None:
    # "x" = known to both, the vectors perhaps to one only.
    a = heard([event for event, (to, _) in zip(events, who, strict=False) if to in "ax"])
    b = heard([(*event[:4], flag) for event, (to, flag) in zip(events, who, strict=False) if to in "bx"])
    before = as_data(a), as_data(b)
    merged = a.merge(b)
    assert as_data(merged) == as_data(b.merge(a))
    assert (as_data(a), as_data(b)) == before
    assert sources(merged) == sources(a) | sources(b)
    for again in (merged.merge(a), merged.merge(b), merged.merge(merged)):
        assert by_id(again) == by_id(merged)


@given(st.lists(SAID, max_size=20), st.lists(SAID, max_size=10), st.lists(st.integers(0, 19), max_size=3))
@examples(150)
def test_settle_a_saved_state_goes_on_as_if_it_had_never_been_away(
    first: list[Said], then: list[Said], forgotten: list[int]
) -> None:
    kept = heard(first)
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
    a = heard([("shorter", "fix login", 1, "a", True), ("use metric units", "fix login", 2, "a", True)])
    b = heard([("shorter", "fix login", 1, "b", True), ("shorter", "fix login", 1, "a", True)])
    assert not a.patterns(3)
    assert not b.patterns(3)
    # a/1 is known to both and counts once: a/1, a/2, b/1.
    assert [pattern.count for pattern in a.merge(b).patterns(3)] == [3]


def test_edit_the_version_that_was_edited_stays() -> None:
    a = heard([("shorter", "fix login", 1, "a", True)])
    b = heard([("shorter", "fix login", 1, "a", True)])
    b.edit(next(iter(b.notes)), "at most two lines")
    assert [note.text for note in a.merge(b).notes.values()] == ["at most two lines"]
    assert as_data(a.merge(b)) == as_data(b.merge(a))


def test_corrections_vectors_of_different_models_do_not_mix() -> None:
    a, b = Corrections(), Corrections()
    for kept, size in ((a, 3), (b, 4)):
        kept.add("x", request="y", seq=1, session="s", step=1, vectors={"y": np.ones(size)})
    with pytest.raises(ValueError, match=r"one length to be merged, not \[3, 4\]"):
        a.merge(b)
