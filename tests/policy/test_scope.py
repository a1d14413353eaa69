"""Drift of an answer from its task: what is flagged, and beside it what must not be."""

from unicodedata import normalize

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coherence.policy.scope import CAUTIOUS, ScopeDrift, drift_score, scope_drift
from coherence.providers.minilm import default_embedder

ASYNC = "How do I make this function asynchronous?"


def measured(task: str, answer: str) -> ScopeDrift:
    """Return the drift with the cosine of the shipped model."""
    embed = default_embedder().embed
    return scope_drift(task, answer, cosine=float(embed(task) @ embed(answer)))


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("What is the capital of France?", "Paris."),
        (ASYNC, "Wrap it in a coroutine: use async def and await the I/O."),
        ("make this function async", "convert to non-blocking code"),
        ("Summarise the quarterly report", "Revenue rose 8 % in the third quarter, costs were flat."),
        ("explain tokio runtime", "Tokio is a runtime for Rust; it schedules futures on a pool of threads."),
        ("refactor the async function", "refactored async function returned"),
        ("alpha beta", "alpha gamma"),
        ("fix bug #123", "fixed bug #123"),
        ("Behebe den Fehler bei der Anmeldung", "Der Anmeldefehler ist behoben, die Sitzung wird nun gespeichert."),
        ("请修复登录错误", "我修复了登录错误。"),
        ("Исправь ошибку входа в систему", "Я исправил ошибку при входе в систему."),
        ("Is water wet?", "Yes"),
        ("How many legs has a spider?", "8"),
    ],
)
def test_drifted_right_answers_are_not_flagged(task: str, answer: str) -> None:
    """Paraphrase, inflection, one word, other languages: each drifted by a rule of shared keywords."""
    assert not measured(task, answer).drifted


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("refactor this function to be async", "add logging and error handling"),
        (
            ASYNC,
            "How do I make soup? Chop onions, carrots and celery, and make this a function of the season: simmer the "
            "asynchronous vegetables in broth for an hour, then add salt, pepper and cream.",
        ),
        ("Write a haiku about rain", "SELECT name, SUM(amount) FROM orders GROUP BY name ORDER BY 2 DESC;"),
        ("请修复登录错误", "今天天气很好，我们去公园散步吧。"),
        ("Исправь ошибку входа в систему", "Сварите картофель и добавьте укроп."),
    ],
)
def test_drifted_wrong_answers_are_flagged(task: str, answer: str) -> None:
    drift = measured(task, answer)
    assert drift.judged
    assert drift.drifted
    assert drift.words


def test_scope_drift_an_echo_does_not_drift() -> None:
    """It is on the subject; that it does nothing is for other rules."""
    assert scope_drift("Summarise the quarterly report", "Summarise the quarterly report").score < 0.01


@pytest.mark.parametrize(
    "answer", ["", "   ", "42", "No.", "\0", "I'm sorry, I can't help with that.", "I’m unable to do that for you."]
)
def test_drifted_too_little_to_judge_is_never_flagged(answer: str) -> None:
    for cosine in (None, -1.0, 0.0, 1.0):
        drift = scope_drift("Write an essay about the causes of the French revolution", answer, cosine=cosine)
        assert not drift.judged
        assert not drift.drifted


def test_scope_drift_too_little_to_judge_without_the_cosine_only() -> None:
    """A word of seven letters (mass 28) is enough for the cosine (10), not for words (40)."""
    task = "Write an essay about the causes of the French revolution"
    assert not scope_drift(task, "Positive").judged
    assert scope_drift(task, "Positive", cosine=0.05).drifted


def test_drifted_a_long_answer_that_begins_like_a_refusal_is_judged() -> None:
    recipe = "Sorry, this took a while. " + "Peel the onions and simmer the broth with carrots and leek. " * 6
    assert scope_drift("Refactor the login page of the web shop", recipe).drifted


def test_drifted_what_was_forbidden_lifts_the_score() -> None:
    task = "Refactor fetch_user to be async. Do not add logging."
    kept = measured(task, "I refactored fetch_user, it is async now. I did not add logging.")
    broken = measured(task, "I refactored fetch_user, it is async now. I also added logging.")
    assert (kept.drifted, kept.violations) == (False, ())
    assert (broken.drifted, broken.violations, broken.judged) == (True, ("logging",), True)


def test_drift_score_the_formula() -> None:
    """-0.64 * 0.5 + 2.24 * 0.25 - 12.7 * 0.2 + 1.65 = -0.65, and 1 / (1 + e^0.65) = 0.343; without: -3.49, 0.030."""
    assert drift_score(0.5, 0.25, 0.2) == pytest.approx(0.3430, abs=1e-4)
    assert drift_score(0.5, 0.25, None) == pytest.approx(0.0296, abs=1e-4)


def test_scope_drift_a_higher_cosine_is_less_drift() -> None:
    scores = [
        scope_drift("Fix the login page", "The session cookie expired early.", cosine=c / 10).score for c in range(11)
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.5 > scores[-1]


def test_scope_drift_the_cosine_counts_for_nothing_where_the_model_knows_no_script() -> None:
    task, answer = "请修复登录错误", "今天天气很好，我们去公园散步吧。"
    assert scope_drift(task, answer, cosine=0.9) == scope_drift(task, answer)


def test_words_are_the_heaviest_that_the_task_lacks() -> None:
    drift = scope_drift("Refactor fetch_user to be async", "Peel the onions and simmer the soup for an hour.")
    assert drift.drifted
    assert drift.words[:2] == ("onions", "peel")
    assert scope_drift("Fix the login page", "The login page needs broccoli").words == ()  # it belongs to the task


def test_scope_drift_huge_and_hostile_texts() -> None:
    for text in ("word " * 200_000, "\ud800" * 1_000_000, "\u202eשלום " * 100_000, "请" * 1_000_000, "\n" * 1_000_000):
        for task, answer in ((text, "I did it"), ("Do not add logging.", text), (text, text)):
            drift = scope_drift(task, answer)
            assert 0 <= drift.score <= 1
            assert len(drift.words) <= 6
            assert all(len(word) <= 40 for word in drift.words)


@given(st.text(), st.text(), st.none() | st.floats(-1, 1))
def test_scope_drift_laws(task: str, answer: str, cosine: float | None) -> None:
    drift = scope_drift(task, answer, cosine=cosine)
    assert 0 <= drift.score <= 1
    assert drift == scope_drift(task, answer, cosine=cosine)
    assert drift.judged or not drift.drifted
    assert not scope_drift(task, task, cosine=None if cosine is None else 1.0).drifted
    assert msgspec.json.decode(msgspec.json.encode(drift), type=ScopeDrift) == drift


@given(
    st.text(st.sampled_from("abcdefghäéñжщ请登 ,."), max_size=80),
    st.text(st.sampled_from("abcdefghäéñжщ请登 ,."), max_size=80),
)
@example("cé", "béaaaa")
def test_scope_drift_case_and_composition_do_not_matter(task: str, answer: str) -> None:
    drift = scope_drift(task, answer)
    assert scope_drift(normalize("NFD", task), normalize("NFD", answer)).score == pytest.approx(drift.score)
    assert scope_drift(task.upper(), answer.upper()).score == pytest.approx(drift.score)


def test_scope_drift_order_of_words_does_not_matter() -> None:
    task = "Fix the login page of the shop"
    one = scope_drift(task, "zebra crossing paint login page", cosine=0.3)
    other = scope_drift(task, "login page paint crossing zebra", cosine=0.3)
    assert one.score == pytest.approx(other.score)


def test_an_unjudged_score_keeps_its_order() -> None:
    """Below the bound it is the score itself, above it is squeezed between the bound and the threshold."""
    scores = [scope_drift("Write an essay about bees", "42", cosine=c / 10).score for c in range(10, -11, -1)]
    assert scores == sorted(scores)
    assert scores[0] < 0.01
    assert CAUTIOUS < scores[-1] < 0.5
