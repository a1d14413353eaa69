import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coherence.policy.correction_words import content_words, is_implicit, opposed, overlap, stance, wording
from coherence.policy.corrections import NEAR, SHARED_WORDS, Corrections
from coherence.providers import MiniLMEmbedder

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
