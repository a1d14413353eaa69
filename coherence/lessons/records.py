"""What a lesson is, as it is kept and as it is found."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from coherence.lessons.normal import FORM, ErrorShape
from coherence.lessons.slots import keys_of

Match: TypeAlias = Literal["exact", "shape", "similar"]
"""How a lesson was found: ``exact`` = the same signature and names, ``shape`` = the same signature with other names,
``similar`` = by meaning and words."""


class Origin(msgspec.Struct, frozen=True):
    """Where a lesson was learned: the events of one session."""

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
    """What helped; names of the lesson's own error are replaced by those of the error that was asked about."""
    tool: str = ""
    similarity: float = 1.0
    """In [0, 1]: how likely this is the right fix of the error that was asked about; 1 where nothing was asked."""
    match: Match = "exact"
    refilled: bool = False
    """Whether names in ``fix_text`` were replaced."""
    count: int = 1
    """How often it was recorded."""
    helped: int = 0
    failed: int = 0
    retired: bool = False
    """Whether it failed so often that it is no longer offered."""
    created: float = 0.0
    """When it was first recorded, Unix seconds."""
    seen: float = 0.0
    """When it was last recorded."""
    origins: tuple[Origin, ...] = ()
    """The newest few sessions it was learned in; filled by ``get`` only."""


class Compared(NamedTuple):
    """What of a lesson is compared with every question, made once."""

    keys: tuple[str, ...]
    words: frozenset[str]
    exception: str
    tool: str
    """In small letters."""


class Known(msgspec.Struct, frozen=True, dict=True):
    """A row of the table of lessons."""

    id: int
    pattern: str
    tool: str
    error_text: str
    fix_text: str
    shape: ErrorShape
    count: int
    helped: int
    failed: int
    retired: bool
    created: float
    seen: float
    form: int = FORM
    """Number of the normal form that ``shape`` is in."""

    @cached_property
    def compared(self) -> Compared:
        """What of it is compared with every question."""
        shape = self.shape
        return Compared(keys_of(shape), frozenset(shape.words), shape.exception, self.tool.lower())

    def as_lesson(
        self, *, similarity: float = 1.0, match: Match = "exact", fix_text: str | None = None, refilled: bool = False
    ) -> Lesson:
        """Return what users see of it, by default as an answer to no question."""
        return Lesson(
            id=self.id,
            pattern=self.pattern,
            error_text=self.error_text,
            fix_text=self.fix_text if fix_text is None else fix_text,
            tool=self.tool,
            similarity=similarity,
            match=match,
            refilled=refilled,
            count=self.count,
            helped=self.helped,
            failed=self.failed,
            retired=self.retired,
            created=self.created,
            seen=self.seen,
        )


class Hit(msgspec.Struct, frozen=True):
    """A lesson that may answer a question, and what they have in common."""

    known: Known
    equal: bool
    """Whether its signature is that of the question."""
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
    """What a store of lessons holds."""

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
    """Whether this store finds lessons by meaning: it was opened with the model whose vectors are kept now."""
