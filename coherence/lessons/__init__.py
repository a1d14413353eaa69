"""Similar errors find their fix: lessons are kept, found again at the moment of the error, and judged by outcome."""

from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_names

if TYPE_CHECKING:
    from coherence.lessons.errors import EmbedderMismatchError, LessonError
    from coherence.lessons.records import Lesson, LessonStats, Match, Origin
    from coherence.lessons.store import LessonStore

_HOME = {
    "EmbedderMismatchError": "coherence.lessons.errors",
    "Lesson": "coherence.lessons.records",
    "LessonError": "coherence.lessons.errors",
    "LessonStats": "coherence.lessons.records",
    "LessonStore": "coherence.lessons.store",
    "Match": "coherence.lessons.records",
    "Origin": "coherence.lessons.records",
}

__all__ = [
    "EmbedderMismatchError",
    "Lesson",
    "LessonError",
    "LessonStats",
    "LessonStore",
    "Match",
    "Origin",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
