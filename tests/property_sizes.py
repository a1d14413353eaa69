"""Number of examples of a property: few in the quick suite, many in the slow one."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

QUICK = 15
LARGE = 100


def examples(large: int, **options: Any) -> settings:
    """Return the settings of a property that is tried with ``large`` examples in the slow suite.

    The profile decides: ``pytest --hypothesis-profile=large``, which is what ``make test-slow`` does.
    """
    few = settings.default is None or settings.default.max_examples < LARGE
    return settings(max_examples=min(large, QUICK) if few else large, **options)
