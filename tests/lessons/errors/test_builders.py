"""The set of errors itself: every family renders, and what is made from it is what the makers say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from lessons.errors import builders as making
from lessons.errors.families import SLOT, Family, load_families

HERE = Path(__file__).parent
DEV, HELD_OUT, NEVER_SEEN = (HERE / f"families_{name}.jsonl" for name in ("dev", "held_out", "never_seen"))
FILES = [path for path in (DEV, HELD_OUT, NEVER_SEEN) if path.exists()]
LESSON_FILES = [path for path in (DEV, HELD_OUT) if path.exists()]
FAMILIES = [pytest.param(family, id=family.family) for path in FILES for family in load_families(path)]


def test_builders_no_family_has_the_name_of_another_one() -> None:
    names = Counter(family.family for path in FILES for family in load_families(path))
    assert [name for name, count in names.items() if count > 1] == []


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
