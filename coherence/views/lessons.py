"""Lessons as the faces show them."""

from __future__ import annotations

from collections.abc import Iterable

from coherence.lessons.records import Lesson
from coherence.lessons.table import read_whole, walk
from coherence.store.store import Store
from coherence.views.shapes import LessonView, OriginView

SEARCHED = 20_000
"""Lessons that a search looks at, those used last."""


def lesson_views(store: Store, text: str, limit: int) -> tuple[LessonView, ...]:
    """Return the lessons that hold all words of a text in their error, fix, pattern or tool, those used last first."""
    words = text.lower().split()
    found: list[LessonView] = []
    for lesson in walk(store, limit=SEARCHED if words else limit, pattern=None):
        held = f"{lesson.pattern}\n{lesson.error_text}\n{lesson.fix_text}\n{lesson.tool}".lower()
        if all(word in held for word in words):
            found.append(lesson_view(read_whole(store, lesson.id) or lesson))
        if len(found) >= limit:
            break
    return tuple(found)


def lesson_view(lesson: Lesson, role: str = "") -> LessonView:
    """Return a lesson as it is shown."""
    return LessonView(
        id=lesson.id,
        pattern=lesson.pattern,
        error=lesson.error_text,
        fix=lesson.fix_text,
        tool=lesson.tool,
        count=lesson.count,
        helped=lesson.helped,
        failed=lesson.failed,
        retired=lesson.retired,
        created=lesson.created,
        seen=lesson.seen,
        origins=tuple(OriginView(each.agent, each.session, each.seqs) for each in lesson.origins),
        role=role,
    )


def session_lessons(store: Store, agent: str, session: str, told: Iterable[int]) -> tuple[LessonView, ...]:
    """Return the lessons whose fixes were told in a session, and then those that were learned in it."""
    learned = store.fetch(
        "SELECT DISTINCT lesson_id FROM lesson_origins WHERE agent = ? AND session = ? ORDER BY lesson_id LIMIT 100",
        (agent, session),
    )
    roles = {number: "learned" for (number,) in learned} | dict.fromkeys(told, "told")
    ordered = sorted(roles, key=lambda number: (roles[number] == "learned", number))
    found = ((read_whole(store, number), roles[number]) for number in ordered)
    return tuple(lesson_view(lesson, role) for lesson, role in found if lesson is not None)
