"""Lessons, their next occurrences, and errors that nobody has a lesson for, made from families of real error formats.

Everything is decided by seeds: the same call gives the same texts on every machine.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from random import Random

import msgspec

from lessons.errors.distractors import Distractor, distractors
from lessons.errors.families import SLOT, Family, load_families, slots
from lessons.errors.noise import Noise

__all__ = [
    "Distractor",
    "Family",
    "Lesson",
    "Occurrence",
    "answers",
    "description",
    "distractors",
    "lesson_keys",
    "load_families",
    "long_reoccurrence",
    "make_set",
    "never_seen",
    "render",
    "reoccurrence",
    "sibling",
]


class Lesson(msgspec.Struct, frozen=True):
    """An error that was fixed once: `family` and `key` say which one, `error_text` as which of the variants it came."""

    family: str
    key: dict[str, str]
    error_text: str
    fix_text: str
    pattern: str
    tool: str
    variant: int
    origin: Family


class Occurrence(msgspec.Struct, frozen=True):
    """A text to ask with, and the family and key values of the lessons that answer it; see `answers`."""

    text: str
    family: str
    key: dict[str, str]
    tool: str


def answers(lesson: Lesson, occurrence: Occurrence) -> bool:
    """Return whether a lesson is the right answer: same family, and the same value of every key that the text names."""
    return lesson.family == occurrence.family and occurrence.key.items() <= lesson.key.items()


def render(template: str, family: Family, key: dict[str, str], rng: Random) -> str:
    """Fill a template: key slots from `key`, other slots of the family from its pools, the rest with noise."""
    return _render(template, family, key, Noise(rng, family.language), rng)


def _render(template: str, family: Family, key: dict[str, str], noise: Noise, rng: Random) -> str:
    chosen = dict(key)

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0][0]
        if name == "frames":
            return noise.frames(found["language"], int(found["count"]) if found["count"] else None)
        if name in family.pools and name not in chosen:
            chosen[name] = rng.choice(family.pools[name])
        return chosen[name] if name in chosen else noise.value(name)

    return SLOT.sub(fill, template)


def lesson_keys(family: Family) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The key values of a family in a fixed random order: those for lessons, and those kept back for siblings.

    A tenth of the values of the first key, at least two, is kept back. A family without a key has one lesson (with the
    key ``{}``) and no sibling.
    """
    if not family.key:
        return [{}], []
    rng = Random(family.family)
    first = rng.sample(family.pools[family.key[0]], len(family.pools[family.key[0]]))
    known = [value for value in first if not family.fixes or value in family.fixes]
    back = max(min(2, len(known) - 1), len(known) // 10)
    kept = [value for value in first if value not in known] + known[:back]
    others = [family.pools[name] for name in family.key[1:]]

    def all_of(values: list[str]) -> list[dict[str, str]]:
        combined = [dict(zip(family.key, row, strict=True)) for row in itertools.product(values, *others)]
        return rng.sample(combined, len(combined))

    return all_of(known[back:]), all_of(kept)


def _lesson(family: Family, key: dict[str, str], rng: Random) -> Lesson:
    variant = rng.randrange(len(family.errors))
    noise = Noise(rng, family.language)
    fix = family.fixes[key[family.key[0]]] if family.fixes else family.fix
    return Lesson(
        family=family.family,
        key=key,
        error_text=_render(family.errors[variant], family, key, noise, rng),
        fix_text=_render(fix, family, key, noise, rng),
        pattern=family.pattern,
        tool=family.tool,
        variant=variant,
        origin=family,
    )


def make_set(families: Sequence[Family], lessons: int = 1000, seed: int = 0) -> list[Lesson]:
    """Make lessons, in turns one of each family until its key values are used up.

    Returns
    -------
    list of Lesson
        At most `lessons`: fewer if the families have fewer key values. No two have the same family and key.
    """
    rows = [[(family, key) for key in lesson_keys(family)[0]] for family in families if family.fix or family.fixes]
    turns = (pair for turn in itertools.zip_longest(*rows) for pair in turn if pair is not None)
    return [
        _lesson(family, key, Random(f"{seed} {family.family} {sorted(key.items())}"))
        for family, key in itertools.islice(turns, lessons)
    ]


def reoccurrence(lesson: Lesson, rng: Random) -> Occurrence:
    """The same error once more: other noise, and in the words of another variant where the family has one."""
    variants = [text for index, text in enumerate(lesson.origin.errors) if index != lesson.variant]
    return _occurrence(rng.choice(variants or lesson.origin.errors), lesson.origin, lesson.key, rng)


def long_reoccurrence(lesson: Lesson, rng: Random) -> Occurrence:
    """The same error once more, under a long traceback or in long output."""
    return _occurrence(lesson.origin.long, lesson.origin, lesson.key, rng)


def sibling(family: Family, rng: Random) -> Occurrence | None:
    """The same error about a value that no lesson has; None if the family has no key."""
    kept = lesson_keys(family)[1]
    return _occurrence(rng.choice(family.errors), family, rng.choice(kept), rng) if kept else None


def description(lesson: Lesson, rng: Random) -> Occurrence:
    """Return words of a human about the error. Its `key` has only the values that the words name, often none."""
    template = rng.choice(lesson.origin.descriptions)
    named = {found["name"] for found in slots(template)}
    made = _occurrence(template, lesson.origin, lesson.key, rng)
    return msgspec.structs.replace(made, key={name: value for name, value in made.key.items() if name in named})


def never_seen(families: Sequence[Family], n: int, seed: int) -> list[Occurrence]:
    """`n` errors of families that no lesson is about, in turns one of each family."""
    rng = Random(f"never seen {seed}")
    turns = itertools.islice(itertools.cycle(families), n) if families else iter(())
    return [_occurrence(rng.choice(family.errors), family, {}, rng) for family in turns]


def _occurrence(template: str, family: Family, key: dict[str, str], rng: Random) -> Occurrence:
    return Occurrence(render(template, family, key, rng), family.family, key, family.tool)
