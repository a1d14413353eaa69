"""Checking what plug-ins return."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from itertools import islice

from coherence.core.readings import KINDS, Evidence, excerpt

MAX_TEXTS = 2_000_000
"""Texts that one source may have."""

MAX_ITEMS = 8
"""Items that a piece of evidence may point at."""

SLACK = 1e-6
"""How far outside [0, 1] a value may be and still be taken as rounding."""


def as_evidence(found: object) -> Evidence:
    """Check what ``explain`` returned, and cut it to a size that a reading may keep."""
    if not isinstance(found, Evidence):
        if inspect.iscoroutine(found):
            found.close()
        raise TypeError(f"returned {type(found).__name__}, expected Evidence or None")
    if found.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {found.kind!r}")
    items, texts = tuple(map(int, found.items)), tuple(map(str, found.texts))
    return Evidence(excerpt(found.why), found.kind, items[:MAX_ITEMS], tuple(map(excerpt, texts[:MAX_ITEMS])))


def as_texts(value: object, last: list[str]) -> list[str]:
    """Check what a getter returned; return ``last`` itself if nothing has changed."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"returned {type(value).__name__}, expected a list of str")
    # list() of an endless iterator would never give the interpreter back
    texts = value if type(value) is list else list(islice(value, MAX_TEXTS + 1))
    if len(texts) > MAX_TEXTS:
        raise ValueError(f"returned more than {MAX_TEXTS:,} texts")
    if len(texts) == len(last) and texts == last:
        return last
    if not set(map(type, texts)) <= {str}:
        for at, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"item {at} is {type(text).__name__}, expected str")
        # A subclass may hash, compare and hang as it likes; its characters are enough.
        texts = [str.__getitem__(text, slice(None)) for text in texts]
    return [text for text in texts if text and not text.isspace()]


def as_value(value: object) -> float | None:
    """Check what a metric returned."""
    if value is None or (type(value) is float and 0.0 <= value <= 1.0):
        return value
    number = float(value)  # type: ignore[arg-type]  # numbers of any library; the rest raises TypeError
    if not -SLACK <= number <= 1.0 + SLACK:
        raise ValueError(f"returned {number}, outside [0, 1]")
    return min(max(number, 0.0), 1.0)
