"""Conversion of the arguments of a monitor or a fleet."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from coherence.core.config import Budget, disabled
from coherence.core.lazy import lazy_regex
from coherence.core.protocols import Embedder
from coherence.core.validation import MAX_NAME, check_text, clean, shown
from coherence.sensor.embedding_cache import EmbeddingCache

if TYPE_CHECKING:  # without a store, nothing of it is loaded
    from coherence.lessons.store import LessonStore
    from coherence.store.store import Store

LOG = logging.getLogger("coherence")

_CUT = lazy_regex(
    rf".{{{MAX_NAME // 2}}}\n\[… [\d,]+ of [\d,]+ characters left out, hash [0-9a-f]{{16}} …\]\n.{{{MAX_NAME // 2}}}",
    re.DOTALL,
)
"""A name that :func:`~coherence.core.validation.clean` has cut."""

FIRST = "1"
"""The name of an agent's first session, where none is given."""

Lessons: TypeAlias = "LessonStore | str | Path | Store | bool | None"
"""Place of the lessons: a store of them, a file, or by default (``None``, ``True``) the file of the evidence if there
is one; ``False`` = nowhere."""


def check_name(field: str, value: object) -> str:
    """Return a name that can be written, or raise TypeError or ValueError that names the field.

    Examples
    --------
    >>> cut = check_name("agent", "a" * 1000)
    >>> len(cut) < 600, check_name("agent", cut) == cut
    (True, True)
    """
    text = check_text(field, value, empty=False)
    # Whoever passes a name on from the store has the one that was cut; cut again it would be another.
    cut_before = len(text) > MAX_NAME and _CUT.fullmatch(text)
    return clean(text, len(text) if cut_before else MAX_NAME)


def check_plugins(field: str, given: object, check: Callable[[Any], None]) -> None:
    """Raise TypeError or ValueError unless a list of plug-ins was given that all pass a check."""
    if not isinstance(given, list | tuple):
        raise TypeError(f"{field} must be a list of {field}, not {shown(given)}")
    for plugin in given:
        check(plugin)


def as_store(store: str | Path | Store | None) -> Store | None:
    """Return the store that a user means."""
    if store is None:
        return None
    from coherence.store.store import Store

    if isinstance(store, Store):
        return store
    if not isinstance(store, str | Path):
        raise TypeError(f"store must be a path or a Store, not {shown(store)}")
    return None if disabled() else Store(store)


def as_budget(budget: Budget | Mapping[str, Any] | None) -> Budget | None:
    """Return the budget that a user means."""
    if budget is None or isinstance(budget, Budget):
        return budget
    if not isinstance(budget, Mapping):
        raise TypeError(f"budget must be a Budget or a mapping, not {shown(budget)}")
    try:
        return msgspec.convert(dict(budget), Budget)
    except msgspec.ValidationError as error:
        raise ValueError(f"budget: {error}") from error


def as_lessons(
    lessons: Lessons, store: Store | None, embedder: Embedder | EmbeddingCache | Literal[False] | None
) -> LessonStore | None:
    """Return the store of lessons that a user means.

    With an embedder that cannot be used for them (none, without a fingerprint, or another one than made their vectors)
    lessons are found by equal signature only.
    """
    if lessons is False or (store is None and (lessons is None or lessons is True)):
        return None
    from coherence.lessons.errors import EmbedderMismatchError
    from coherence.lessons.store import LessonStore
    from coherence.store.store import Store

    if isinstance(lessons, LessonStore):
        return lessons
    where = store if lessons is None or lessons is True else lessons
    if not isinstance(where, str | Path | Store):
        raise TypeError(f"lessons must be a LessonStore, a path, a Store, True or False, not {shown(lessons)}")
    if disabled():
        return None
    inner = embedder.embedder if isinstance(embedder, EmbeddingCache) else embedder
    if inner is not None and inner is not False and not isinstance(getattr(inner, "fingerprint", None), str):
        inner = False
    try:
        return LessonStore(where, embedder=inner)
    except EmbedderMismatchError as error:
        LOG.warning("coherence: lessons are found by equal signature only: %s", error)
        return LessonStore(where, embedder=False)
