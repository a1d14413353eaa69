"""No regular expression and no public function takes more than its share of time for a longer text, hostile or not."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from functools import partial

import growth
import pytest
from hostile_apis import apis
from hostile_shapes import SHAPES, Shape
from patterns import patterns

MOST = 1.2
"""Exponent of the time in the length: 1 = in proportion, 2 = the square."""

NOISE_S = 0.003
"""A search that is over sooner says nothing about its growth."""

EVERY_THREAD = time.process_time
"""Clock for functions of the package, which may work in other threads."""

END = "!"
"""Stands behind every text: a search that fails there has tried everything before."""

SHORTEST, LONGEST = 500, 16_000
BOUNDED = {
    "core.secret_contexts._OUTSIDE": 0,  # tried at one place
    "lessons.headlines._WRAPPER": 600,  # tried at the start of a line, of which no more is kept
    "lessons.masks._BEFORE_STOP": 0,  # its text has single blanks
}
"""Patterns whose time grows faster, and how many characters they are given at most."""


def exponent(
    ask: Callable[[str], object],
    shape: Shape,
    noise_s: float = NOISE_S,
    longest: int = LONGEST,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """Return the exponent of the time over three lengths, 0 where the time stays in the noise."""
    spent = partial(growth.spent, clock=clock)
    length = min(SHORTEST, longest)
    while (last := spent(ask, shape(length) + END, 1)) < noise_s:
        if length >= longest:
            return 0.0
        length = min(length * (4 if last < noise_s / 8 else 2), longest)
    found = math.inf
    for times in (1, 3, 9, 27):  # a pause of the machine is no growth: what looks like one is timed again
        # a pause in the shortest one would hide a growth: each is timed for about as long
        took = [spent(ask, shape(length >> (2 - step)) + END, times << (2 - step)) for step in range(3)]
        # the slope of a line through three points that are evenly spaced is that between the outer ones
        found = min(found, math.log(took[2] / took[0], 4))
        if found <= MOST:
            break
    return found


def check(
    name: str,
    ask: Callable[[str], object],
    shapes: list[str],
    noise_s: float = NOISE_S,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Assert that the time grows in proportion on each of the shapes."""
    longest = BOUNDED.get(name, LONGEST)
    found = {shape: exponent(ask, SHAPES[shape], noise_s, longest, clock) for shape in shapes}
    assert {shape: round(each, 2) for shape, each in found.items() if each > MOST} == {}, name


def test_shapes_are_114_texts_of_the_length_asked_for() -> None:
    assert len(SHAPES) == 114
    assert {name for name, shape in SHAPES.items() if not 985 < len(shape(1_000)) <= 1_000} == set()
    assert len({shape(1_000) for shape in SHAPES.values()}) == 114


@pytest.mark.parametrize(
    "name", ["core.secret_contexts._CONTEXTS 0 3", "detect.additions._FORMS heading", "policy.danger.signs._TOKEN"]
)
def test_patterns_are_found_in_tables_and_in_data_files_too(name: str) -> None:
    assert name in patterns()


@pytest.mark.parametrize(
    "source",
    [r"\w*counter\b", *(pytest.param(each, marks=pytest.mark.slow) for each in (r"[^\W\d_]+\Z", r"a+(?:ab)*b"))],
)
def test_exponent_finds_a_search_whose_time_grows_with_the_square(source: str) -> None:
    pattern = re.compile(source)
    assert exponent(pattern.findall, SHAPES["a letter"]) > MOST


def test_exponent_of_a_linear_search_is_about_one() -> None:
    pattern = re.compile(r"w[^!]{0,90}!!")
    assert 0.8 < exponent(lambda text: [pattern.findall(text) for _ in range(9)], SHAPES["words"]) < MOST


def test_growth_of_some_patterns_on_some_shapes() -> None:
    rng = random.Random(21)
    for name in rng.sample(sorted(patterns()), 40):
        check(name, patterns()[name], rng.sample(sorted(SHAPES), 8))


def test_growth_of_public_functions_on_some_shapes() -> None:
    rng = random.Random(21)
    with apis() as made:
        for name, ask in made.items():
            ask("warm up")
            check(name, ask, rng.sample(sorted(SHAPES), 1), noise_s=0.05, clock=EVERY_THREAD)
