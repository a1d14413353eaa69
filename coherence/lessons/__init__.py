"""Similar errors find their fix: lessons are kept, found again at the moment of the error, and judged by outcome."""

from coherence.lessons.errors import EmbedderMismatchError, LessonError
from coherence.lessons.records import Lesson, LessonStats, Match, Origin
from coherence.lessons.store import LessonStore

__all__ = ["EmbedderMismatchError", "Lesson", "LessonError", "LessonStats", "LessonStore", "Match", "Origin"]
