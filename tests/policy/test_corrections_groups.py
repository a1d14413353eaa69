import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coherence.core.vectors import to_half
from coherence.policy.correction_words import content_words, is_implicit, opposed, overlap, stance, wording
from coherence.policy.corrections import NEAR, SHARED_WORDS, Corrections, Member, Topics
from coherence.providers import MiniLMEmbedder

DATA = json.loads((Path(__file__).parents[1] / "data" / "paraphrases.json").read_text())


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    requests = [text for half in DATA["requests"].values() for texts in half.values() for text in texts]
    traps = [text for half in DATA["traps"].values() for pair in half for text in pair]
    texts = sorted({*requests, *traps, *itertools.chain(*DATA["opposite_corrections"], *DATA["same_correction"])})
    return dict(zip(texts, np.asarray(MiniLMEmbedder().embed_batch(texts)), strict=True))


def topics_of(texts: list[str], vectors: dict[str, Any]) -> dict[str, str]:
    kept = Corrections()
    for seq, text in enumerate(texts):
        kept.add(f"lesson {seq}", request=text, seq=seq, session="s", step=seq, vectors=vectors)
    return {note.request: note.topic for note in kept.notes.values()}


@pytest.mark.parametrize("half", ["train", "held_out"])
def test_corrections_paraphrases_share_a_topic_and_different_requests_do_not(
    half: str, vectors: dict[str, Any]
) -> None:
    requests = DATA["requests"][half]
    label = topics_of([text for round in zip(*requests.values(), strict=True) for text in round], vectors)
    same = [label[a] == label[b] for texts in requests.values() for a, b in itertools.combinations(texts, 2)]
    assert len(same) == 8 * 28  # pairs of 8 paraphrases, 8 times
    assert sum(same) / len(same) >= 0.75
    for one, other in itertools.combinations(requests.values(), 2):
        assert not {label[a] for a in one} & {label[b] for b in other}


def traps() -> Iterator[Any]:
    for half, a, b in ((half, a, b) for half, pairs in DATA["traps"].items() for a, b in pairs):
        marks = [pytest.mark.xfail(reason="all words but two are the same")] if b.startswith("Ship the repl") else []
        yield pytest.param(half, a, b, marks=marks, id=b)


@pytest.mark.parametrize(("half", "request_text", "trap"), list(traps()))
def test_corrections_a_look_alike_joins_neither_the_request_nor_its_topic(
    half: str, request_text: str, trap: str, vectors: dict[str, Any]
) -> None:
    topic = next(texts for texts in DATA["requests"][half].values() if request_text in texts)
    for texts in ([request_text], topic, topic[::-1]):
        label = topics_of([*texts, trap], vectors)
        assert label[trap] not in {label[text] for text in texts}


def test_relevant_an_email_lesson_is_not_brought_to_gpu_kernels(vectors: dict[str, Any]) -> None:
    kept = Corrections()
    for seq, text in enumerate(DATA["requests"]["train"]["email batching"][:4]):
        kept.add(f"lesson {seq}", request=text, seq=seq, session="s", step=seq, vectors=vectors)
    gpu, email = "async batching of GPU kernels", "Batch up our email sending and run it in the background"
    assert kept.relevant(email, vectors[email], 5) is not None
    assert kept.relevant(gpu, vectors[gpu], 5) is None


@pytest.mark.parametrize(("a", "b"), DATA["opposite_corrections"])
def test_stance_opposites_are_never_the_same_correction(a: str, b: str, vectors: dict[str, Any]) -> None:
    assert opposed(stance(a), stance(b))
    assert opposed(stance(b), stance(a))
    kept = Corrections()
    for seq, text in enumerate((a, b)):
        kept.add(text, request="one request", seq=seq, session="s", step=seq, vectors=vectors)
    assert len({note.saying for note in kept.notes.values()}) == len(kept.notes) == 2


@pytest.mark.parametrize(("a", "b"), DATA["same_correction"])
def test_stance_the_same_correction_in_other_clothes_is_kept_once(a: str, b: str) -> None:
    assert wording(a) == wording(b)
    assert not opposed(stance(a), stance(b))


def member(key: str, text: str, *vector: float) -> Member:
    return Member(key, int(key, 36), text, to_half(vector).astype("<f2").tobytes() if vector else b"")


def test_nearness_is_the_mean_cosine_less_a_part_of_the_mean_overlap() -> None:
    groups = Topics()
    id = groups.place(member("1", "alpha beta", 1, 0)).id
    groups.place(member("2", "alpha gamma", 1, 0))
    # cos = 0.6; {alpha, delta} shares 1 of 2 words with both: 0.6 - 0.3 * 0.5 = 0.45, just near enough.
    assert SHARED_WORDS * overlap(content_words("alpha beta"), content_words("alpha delta")) == 0.15
    assert groups.find("alpha delta", np.array([0.601, 0.799], np.float32)) == id
    assert groups.find("alpha delta", np.array([0.598, 0.801], np.float32)) is None
    assert groups.find("other words", np.array([NEAR + 0.001, 0.89], np.float32)) == id


def test_place_two_groups_become_one_when_a_third_text_lies_between() -> None:
    groups = Topics()
    assert groups.place(member("1", "aaa", 1, 0)).id == "t-1"
    # cos 0.40 to the first: apart.
    assert groups.place(member("2", "bbb", 0.40, 0.9165)).id == "t-2"
    # cos 0.836 to both; then the groups' mean cosine is (0.40 + 0.836) / 2 = 0.62.
    placed = groups.place(member("3", "ccc", 0.836, 0.5477))
    assert (placed.id, placed.renamed) == ("t-1", {"t-2": "t-1"})
    assert [m.key for m in groups.groups["t-1"]] == ["1", "2", "3"]


def test_topics_without_vectors_most_words_must_be_the_same() -> None:
    groups = Topics()
    groups.place(member("1", "summarise the quarterly sales report"))
    assert groups.find("Summarise the quarterly sales report, please") == "t-1"
    # {summa, quart, sales, repor} and {summa, secur, repor}: 2 of 5 words.
    assert groups.find("summarise the security report") is None
    # A text with a vector is compared by its words with groups that have none.
    assert groups.find("the quarterly sales report: summarise", np.ones(2, np.float32)) == "t-1"


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
