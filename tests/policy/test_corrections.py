import pickle

import msgspec
import numpy as np
import pytest

from coherence.core.errors import VectorError
from coherence.policy.corrections import HALF_LIFE, MAX_CHARS, MAX_NOTES, MAX_SOURCES, Corrections

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


def test_a_pattern_is_relevant_to_its_topic_only() -> None:
    kept = told("a fact", "metric units", "no wind")
    assert kept.relevant("what is the WEATHER in Oslo", None, 3) is not None
    assert kept.relevant("Translate the manual", None, 3) is None
    assert kept.relevant("", None, 3) is None


def test_relevant_only_the_three_newest_are_examples() -> None:
    found = told("one fact", "two facts", "three facts", "four facts").relevant(ASK, None, 3)
    assert found is not None
    assert [note.text for note in found.examples] == ["four facts", "three facts", "two facts"]


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


def test_opposite_corrections_never_make_one_preference() -> None:
    kept = Corrections()
    said = ["Always retry failed requests", "Never retry failed requests", "Always retry failed requests"]
    for seq, (text, request) in enumerate(zip(said, [ASK, "Translate the manual", "Book a flight"], strict=True)):
        kept.add(text, request=request, seq=seq, session="s", step=seq, vectors={text: np.ones(4)})
    assert kept.patterns(3) == []


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


def test_patterns_the_state_is_plain_data() -> None:
    kept = told("a fact", "metric units", "no wind")
    for copy in (
        saved(kept),
        pickle.loads(pickle.dumps(kept)),
        msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=Corrections),
    ):
        assert copy == kept
        assert copy.patterns(5) == kept.patterns(5)
        copy.add("no rain", request=ASK, seq=9, session="s", step=9)
        assert len(copy.notes) == 4
    assert len(kept.notes) == 3


@pytest.mark.parametrize("text", ["\0", "\ud800", "‮no", "x" * 1_000_000, "a\n" * 100_000, "!?!", "不要这样"])
def test_relevant_hostile_texts_are_taken_in(text: str) -> None:
    kept = told(text, text + "b", request=text)
    assert saved(kept) == kept
    kept.relevant(text, None, 3)
    kept.merge(kept)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"seq": -1}, ValueError),
        ({"step": 1.5}, TypeError),
        ({"session": None}, TypeError),
        ({"request": 3}, TypeError),
    ],
)
def test_corrections_wrong_arguments_are_refused(change: dict[str, object], error: type[Exception]) -> None:
    arguments: dict[str, object] = {"request": "a", "seq": 1, "session": "s", "step": 1} | change
    with pytest.raises(error, match=next(iter(change))):
        Corrections().add("text", **arguments)  # type: ignore[arg-type]
