"""The names in an error's text, and what two errors share of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coherence.lessons.naming import (
    KEPT,
    LITTLE,
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


def shared(question: str, *lessons: tuple[str, str], kinds: tuple[str, ...] | None = None) -> list[float]:
    asked = asked_names(normalise(question), question)
    found = shared_names(asked, [told(*lesson) for lesson in lessons], kinds or tuple(map(str, range(len(lessons)))))
    return [each.named for each in found]


def missing(name: str) -> str:
    return f"ModuleNotFoundError: No module named '{name}'"


def test_the_name_that_matters_weighs_more_than_what_all_have() -> None:
    right, wrong = shared("ImportError: No module named yaml", (missing("yaml"), ""), (missing("numpy"), ""))
    assert right > 0.5
    assert wrong < LITTLE


def test_a_name_outside_of_the_headline_counts() -> None:
    one, two = (
        f"Error: Reference to undeclared input variable\n\n  on main.tf line 7:\n  7: name = var.{name}\n\n"
        f'An input variable with the name "{name}" has not been declared.'
        for name in ("region", "zone_id")
    )
    right, wrong = shared(one, (one, ""), (two, ""), kinds=("a", "a"))
    assert right > wrong


def test_a_part_of_a_name_written_together_counts() -> None:
    right, wrong = shared(
        "Definition for rule 'vue/no-x' not found",
        ('ESLint couldn\'t find the plugin "eslint-plugin-vue".', ""),
        ('ESLint couldn\'t find the plugin "eslint-plugin-jest".', ""),
    )
    assert right > wrong == 0.0


def test_what_a_fix_quotes_of_its_error_and_the_question_lacks_is_lacking() -> None:
    question = missing("yaml")
    asked = asked_names(normalise(question), question)
    lessons = [told(missing(name), f"uv add {name}") for name in ("yaml", "numpy")]
    own, other = shared_names(asked, lessons, ["a", "a"])
    assert (own.lacking, len(other.lacking)) == (frozenset(), 1)
    assert own.met > other.met == 0.0
    alone = shared_names(asked, [told(missing("numpy"), "uv add it")], ["a"])
    assert alone[0].lacking == frozenset()  # near miss: the fix does not quote it


def test_lessons_are_looked_up_by_names_of_headline_and_fix_only() -> None:
    text = "writing to region_7\nTraceback (most recent call last):\nValueError: the disk is full"
    assert len(indexed_names(kept(missing("yaml")))) == 1
    assert len(indexed_names(kept(text, "clean region_7"))) == len(indexed_names(kept(text))) + 1


def test_no_lessons_share_nothing() -> None:
    asked = asked_names(normalise("x"), "x")
    assert shared_names(asked, [], []) == []
    assert [each.named for each in shared_names(asked, [told_names(b""), told_names(b"")], ["a", "a"])] == [0.0, 0.0]


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=200))
def test_no_text_breaks_names(text: str, fix: str, question: str) -> None:
    names = kept(text, fix)
    assert len(names) % 4 == 0
    assert len(names) // 4 <= KEPT
    (found,) = shared_names(asked_names(normalise(question), question), [told_names(names)], ["a"])
    assert 0.0 <= found.named <= 1.25
    assert max(found.slotted, found.met) <= 1.0
