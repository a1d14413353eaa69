"""The growth of every regular expression and public function, on every shape of text."""

from __future__ import annotations

import pytest
from hostile_apis import apis
from hostile_shapes import SHAPES
from patterns import patterns
from test_hostile_growth import EVERY_THREAD, check

pytestmark = pytest.mark.torture

PATTERNS = patterns()
MODULES = sorted({name.partition(" ")[0].rpartition(".")[0] for name in PATTERNS})
with apis() as _made:
    APIS = sorted(_made)


@pytest.mark.parametrize("module", MODULES)
def test_growth_of_every_pattern_of_a_module_on_every_shape(module: str) -> None:
    for name, search in PATTERNS.items():
        if name.partition(" ")[0].rpartition(".")[0] == module:
            check(name, search, sorted(SHAPES))


@pytest.mark.parametrize("name", APIS)
def test_growth_of_a_public_function_on_every_shape(name: str) -> None:
    with apis() as made:
        made[name]("warm up")
        check(name, made[name], sorted(SHAPES), noise_s=0.02, clock=EVERY_THREAD)
