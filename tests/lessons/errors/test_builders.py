"""The set of errors itself: every family renders, and what is made from it is what the makers say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from lessons.errors import builders as making
from lessons.errors.families import SLOT, Family, load_families, slots

HERE = Path(__file__).parent
DEV, HELD_OUT, NEVER_SEEN = (HERE / f"families_{name}.jsonl" for name in ("dev", "held_out", "never_seen"))
FILES = [path for path in (DEV, HELD_OUT, NEVER_SEEN) if path.exists()]
LESSON_FILES = [path for path in (DEV, HELD_OUT) if path.exists()]
FAMILIES = [pytest.param(family, id=family.family) for path in FILES for family in load_families(path)]
WITH_LESSONS = [pytest.param(family, id=family.family) for path in LESSON_FILES for family in load_families(path)]


def test_builders_no_family_has_the_name_of_another_one() -> None:
    names = Counter(family.family for path in FILES for family in load_families(path))
    assert [name for name, count in names.items() if count > 1] == []


def test_builders_no_two_families_of_lessons_have_one_fix() -> None:
    fixes = Counter(
        fix for path in LESSON_FILES for family in load_families(path) for fix in {family.fix, *family.fixes.values()}
    )
    assert [fix for fix, count in fixes.items() if fix and count > 1] == []


def test_builders_what_nobody_has_a_lesson_for_is_in_no_lesson() -> None:
    def shapes(paths: list[Path]) -> set[str]:
        families = [family for path in paths for family in load_families(path)]
        return {" ".join(SLOT.sub(" ", text).split()) for family in families for text in family.errors}

    assert shapes(LESSON_FILES) & shapes([path for path in FILES if path == NEVER_SEEN]) == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_builders_every_template_renders_with_its_keys(family: Family) -> None:
    """No slot stays open, and the key values can be read in the text."""
    known, kept = making.lesson_keys(family) if family.key else ([{}], [])
    for key in (known[0], *kept[:1]):
        for template in (*family.errors, family.long):
            text = making.render(template, family, key, Random(1))
            literal = template.count("{{"), template.count("}}")
            if "{frames" not in template:
                assert (text.count("{"), text.count("}")) == literal
            assert all(value in text for value in key.values()) or not template


@pytest.mark.parametrize("family", WITH_LESSONS)
def test_builders_a_family_of_lessons_has_all_that_it_needs(family: Family) -> None:
    assert 3 <= len(family.errors) <= 6
    assert 4 <= len(family.descriptions) <= 6
    assert bool(family.fix) != bool(family.fixes)
    assert family.pattern
    assert family.source
    if family.key:
        named = [text for text in family.descriptions if any(f"{{{name}}}" in text for name in family.key)]
        assert len(named) >= 2
        assert all(8 <= len(family.pools[name]) <= 40 for name in family.key[:1])
    assert {found["name"] for found in slots(family.fix)} <= set(family.key)
    key = making.lesson_keys(family)[0][0]
    assert all(len(making.render(family.long, family, key, Random(seed))) >= 700 for seed in range(5))


@pytest.mark.parametrize("path", LESSON_FILES, ids=lambda path: path.stem)
def test_builders_counts(path: Path) -> None:
    families = load_families(path)
    assert len(families) >= (55 if path == DEV else 50)
    assert len(making.make_set(families)) == 1000
    keyless = sum(not family.key for family in families) / len(families)
    assert 0.25 <= keyless <= 0.45


def test_builders_lessons_differ_and_are_the_same_every_time() -> None:
    families = load_families(DEV)
    lessons = making.make_set(families, 300, seed=3)
    assert lessons == making.make_set(families, 300, seed=3)
    assert lessons != making.make_set(families, 300, seed=4)
    assert len({(lesson.family, *lesson.key.items()) for lesson in lessons}) == 300
    assert [lesson.family for lesson in lessons[: len(families)]] == [family.family for family in families]


def test_a_reoccurrence_is_another_text_that_its_lesson_answers() -> None:
    for lesson in making.make_set(load_families(DEV), 100):
        again = making.reoccurrence(lesson, Random(5))
        assert again == making.reoccurrence(lesson, Random(5))
        assert again.text != lesson.error_text
        assert making.answers(lesson, again)
        assert making.answers(lesson, making.description(lesson, Random(5)))
        assert making.answers(lesson, making.long_reoccurrence(lesson, Random(5)))


def test_builders_a_sibling_has_no_lesson() -> None:
    families = load_families(DEV)
    lessons = making.make_set(families, 10_000)
    for family in families:
        sibling = making.sibling(family, Random(2))
        assert (sibling is None) == (not family.key)
        assert sibling is None or not any(making.answers(lesson, sibling) for lesson in lessons)
