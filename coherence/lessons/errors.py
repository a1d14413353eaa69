"""The errors that a store of lessons raises."""

from __future__ import annotations

from coherence.core.errors import CoherenceError


class LessonError(CoherenceError):
    """Lessons cannot be kept or found as asked; the message says why and what to do."""


class EmbedderMismatchError(LessonError):
    """The lessons were embedded by another model; vectors of two models never mix.

    Parameters
    ----------
    where : str
        The file.
    kept, given : str
        Fingerprints of the model that made the kept vectors, and of the one that was given.
    """

    def __init__(self, where: str, kept: str, given: str) -> None:
        super().__init__(
            f"{where}: its lessons were embedded by {kept!r}, the embedder given is {given!r}; pass the first one, "
            f"or embed all lessons anew: `coherence lessons rebuild`, or LessonStore(..., rebuild=True)"
        )
