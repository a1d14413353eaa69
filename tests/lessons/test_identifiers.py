"""The names in an error's text, and what two errors share of them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from coherence.lessons.names import (
    LITTLE,
    MAX_KEPT_NAMES,
    Shared,
    Told,
    asked_names,
    indexed_names,
    kept_names,
    shared_names,
    told_names,
)
from coherence.lessons.normal import normalise


def kept(text: str, fix: str = "") -> bytes:
    return kept_names(normalise(text), text, fix)


def told(text: str, fix: str = "") -> Told:
    return told_names(kept(text, fix))


def between(question: str, lessons: Sequence[tuple[str, str]], kinds: Sequence[str]) -> list[Shared]:
    shape = normalise(question)
    equal = [normalise(text).signature == shape.signature for text, _ in lessons]
    return shared_names(asked_names(shape, question), [told(*lesson) for lesson in lessons], kinds, equal)


def shared(question: str, *lessons: tuple[str, str], kinds: Sequence[str] | None = None) -> list[float]:
    return [each.named for each in between(question, lessons, kinds or [str(at) for at in range(len(lessons))])]


def missing(name: str) -> str:
    return f"ModuleNotFoundError: No module named '{name}'"


def test_shared_the_name_that_matters_weighs_more_than_what_all_have() -> None:
    right, wrong = shared("ImportError: No module named yaml", (missing("yaml"), ""), (missing("numpy"), ""))
    assert right > 0.5
    assert wrong < LITTLE


def test_told_what_a_fix_quotes_of_its_error_and_the_question_lacks_is_lacking() -> None:
    question = missing("yaml")
    own, other = between(question, [(missing(name), f"uv add {name}") for name in ("yaml", "numpy")], ["a", "a"])
    assert (own.lacking, len(other.lacking)) == (frozenset(), 1)
    assert own.met > other.met == 0.0
    (alone,) = between(question, [(missing("numpy"), "uv add it")], ["a"])
    assert alone.lacking == frozenset()  # near miss: the fix does not quote it


def test_shared_what_belongs_to_the_wording_weighs_little_beside_the_name_in_other_words() -> None:
    same = "Could not build wheels for {}, which is required to install pyproject.toml-based projects"
    other = "Failed building wheel for {}"
    sibling, own = shared(same.format("pyzmq"), (same.format("xmlsec"), ""), (other.format("pyzmq"), ""), kinds="aa")
    assert own > sibling
    # near miss: with a lesson of the very same names none is known to belong to the wording
    own, other_words = shared(same.format("pyzmq"), (same.format("pyzmq"), ""), (other.format("pyzmq"), ""), kinds="ab")
    assert own > other_words


def test_indexed_names_lessons_are_looked_up_by_names_of_headline_and_fix_only() -> None:
    text = "writing to region_7\nTraceback (most recent call last):\nValueError: the disk is full"
    assert len(indexed_names(kept(missing("yaml")))) == 1
    assert len(indexed_names(kept(text, "clean region_7"))) == len(indexed_names(kept(text))) + 1


def test_shared_names_no_lessons_share_nothing() -> None:
    asked = asked_names(normalise("x"), "x")
    assert shared_names(asked, [], [], []) == []
    assert [each.named for each in shared_names(asked, [told_names(b"")] * 2, ["a"] * 2, [True] * 2)] == [0.0, 0.0]


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=200), st.booleans())
def test_told_names_no_text_breaks_names(text: str, fix: str, question: str, equal: bool) -> None:
    names = kept(text, fix)
    assert len(names) % 4 == 0
    assert len(names) // 4 <= MAX_KEPT_NAMES
    asked = asked_names(normalise(question), question)
    (found,) = shared_names(asked, [told_names(names)], ["a"], [equal])
    assert 0.0 <= found.named <= 1.25
    assert max(found.slotted, found.met) <= 1.0
