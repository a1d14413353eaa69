"""Lessons, as they are kept and as they are found."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.lessons.names import keys_of
from coherence.lessons.normal import FORM, ErrorShape

Match: TypeAlias = Literal["exact", "shape", "similar"]
"""The way in which a lesson was found: ``exact`` = the same signature and names, ``shape`` = the same signature with
other names, ``similar`` = by meaning and words."""


class Origin(msgspec.Struct, frozen=True):
    """The events of one session that taught a lesson."""

    agent: str
    session: str
    seqs: tuple[int, ...]
    """Numbers of the error's event, of the steps that fixed it, and of the success."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """An error that was fixed, and how."""

    id: int
    pattern: str
    """A short name of the kind of error."""
    error_text: str
    """Without secrets; of a long text the beginning and the end."""
    fix_text: str
    """The fix; names of the lesson's own error are replaced by those of the error that was asked about."""
    tool: str = ""
    similarity: float = 1.0
    """In [0, 1]: how likely this is the right fix of the error that was asked about; 1 where nothing was asked."""
    match: Match = "exact"
    refilled: bool = False
    """True if names in ``fix_text`` were replaced."""
    count: int = 1
    """Number of times that it was recorded."""
    helped: int = 0
    failed: int = 0
    retired: bool = False
    """True if it failed so often that it is no longer offered."""
    created: float = 0.0
    """Time of its first record, Unix seconds."""
    seen: float = 0.0
    """Time of its last record."""
    origins: tuple[Origin, ...] = ()
    """The newest few sessions it was learned in; filled by ``get`` only."""


class Known(Lesson, frozen=True, kw_only=True, dict=True):
    """A row of the table of lessons: a lesson, and the shape of its error."""

    shape: ErrorShape
    form: int = FORM
    """Number of the normal form that ``shape`` is in."""

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The names that tell its error from its siblings."""
        return keys_of(self.shape)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The words of its error without what it names."""
        return frozenset(self.shape.words)

    def as_lesson(self, **changes: Any) -> Lesson:
        """Return the lesson with these fields changed, for a user."""
        return Lesson(**({name: getattr(self, name) for name in Lesson.__struct_fields__} | changes))


class Hit(msgspec.Struct, frozen=True):
    """A lesson that may answer a question, and what they have in common."""

    known: Known
    equal: bool
    """True if its signature is that of the question."""
    named: float = 0.0
    """Weight of the names that the question and the lesson share: 1 for a name that no other candidate has."""
    cosine: float | None = None
    """Of the two vectors; ``None`` = not compared."""
    slotted: float = 0.0
    """Weight of the rarest name in slots of both headlines."""
    met: float = 0.0
    """Weight of the rarest name that the fix quotes and the question has."""
    lacking: frozenset[int] = frozenset()
    """Checksums of names that the fix quotes and the question lacks."""


class LessonStats(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a store of lessons."""

    lessons: int
    cap: int
    retired: int
    outcomes: int
    helped: int
    embedder: str | None
    """Fingerprint of the model whose vectors are kept; ``None`` before the first."""
    vectors: int
    """Lessons that can be found by meaning."""
    tier: str
    """``flat``, ``binary`` or ``remote``; ``none`` without an embedder."""
    index_memory_bytes: int
    index_disk_bytes: int
    by_meaning: bool
    """True if this store finds lessons by meaning: it was opened with the model whose vectors are kept now."""
