"""Lessons as people and as programs read them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from coherence.cli.columns import aligned, cut, print_columns, width
from coherence.core.readings import one_line
from coherence.lessons.normal import normalise
from coherence.lessons.records import Lesson, LessonStats

FIX = 100
"""Characters of a fix that a table shows; ``show`` and ``--json`` give all of it."""

ERROR = 200
"""Characters of an error, and of the fix below it, that a search shows."""

NAME = 40
LEAST_NAME, LEAST_FIX = 12, 20
"""Characters of them that are shown in a terminal of 80 columns."""


GAP = 2
"""Spaces between two columns."""


def plain(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as JSON has it, without where it was learned."""
    found: dict[str, Any] = msgspec.to_builtins(lesson)
    del found["origins"]
    return found


def print_lessons(lessons: Sequence[Lesson]) -> None:
    """Print a lesson a line, no longer than a terminal is wide."""
    table = [
        ("id", "seen", "times", "helped"),
        *((str(each.id), _day(each.seen), str(each.count), _record(each)) for each in lessons),
    ]
    room = width() - max(map(len, aligned(table)))
    names = _names(lessons, room - 3 * GAP - LEAST_FIX)
    named = [(*numbers, *name) for numbers, name in zip(table, names, strict=True)]
    left = max(width() - max(map(len, aligned(named))) - GAP, LEAST_FIX)
    fixes = ["fix", *(cut(each.fix_text, min(FIX, left)) for each in lessons)]
    print_columns([(*row, fix) for row, fix in zip(named, fixes, strict=True)])


def print_found(lessons: Sequence[Lesson]) -> None:
    """Print how likely each lesson is the fix that was asked for, and below it its error and its fix."""
    table = [("id", "similarity", "match", "seen", "times", "helped")]
    table += [
        (str(each.id), f"{each.similarity:.2f}", each.match, _day(each.seen), str(each.count), _record(each))
        for each in lessons
    ]
    names = _names(lessons, width() - max(map(len, aligned(table))) - 2 * GAP)
    head, *lines = aligned([(*numbers, *name) for numbers, name in zip(table, names, strict=True)])
    sys.stdout.write(head + "\n")
    for line, lesson in zip(lines, lessons, strict=True):
        sys.stdout.write(line + "\n")
        for name, text in (("error", _headline(lesson.error_text)), ("fix", lesson.fix_text)):
            told = f"    {name}: "
            sys.stdout.write(f"{told}{cut(text, min(ERROR, width() - len(told)))}\n")


def _names(lessons: Sequence[Lesson], room: int) -> list[tuple[str, str]]:
    """Return tool and pattern of each lesson, with their heads, in no more than so many characters of a line."""
    tools = max((len(cut(each.tool, NAME)) for each in lessons), default=0)
    tool = min(NAME, max(room - NAME, LEAST_NAME))
    pattern = min(NAME, max(room - min(tools, tool), LEAST_NAME))
    return [
        ("tool", "pattern"),
        *((cut(each.tool, tool) or "-", cut(each.pattern, pattern) or "-") for each in lessons),
    ]


def _headline(error: str) -> str:
    """Return what of an error fits on a line: of one with a traceback or a log, what went wrong."""
    error = error.strip()
    return normalise(error).text if "\n" in error else error


def print_lesson(lesson: Lesson) -> None:
    """Print everything that is known of a lesson; what it quotes stays within its part of the page."""
    times = "once" if lesson.count == 1 else f"{lesson.count} times"
    rows = [
        ("lesson", str(lesson.id)),
        ("pattern", lesson.pattern),
        ("tool", lesson.tool or "-"),
        ("recorded", f"{times}, from {_time(lesson.created)} to {_time(lesson.seen)}"),
        ("helped", _record(lesson) + (", retired: no longer offered" if lesson.retired else "")),
    ]
    rows += [
        ("learned in", f"{origin.agent}/{origin.session}, events {', '.join(map(str, origin.seqs))}")
        for origin in lesson.origins
    ]
    print_columns(rows)
    for name, text in (("error", lesson.error_text), ("fix", lesson.fix_text)):
        sys.stdout.write(f"\n{name}:\n")
        for line in text.splitlines():
            sys.stdout.write(f"    {one_line(line)}".rstrip() + "\n")


def print_stats(stats: LessonStats) -> None:
    """Print what a store of lessons holds."""
    print_columns(
        [
            ("lessons", str(stats.lessons)),
            ("retired", str(stats.retired)),
            ("outcomes", f"{stats.outcomes}, of these {stats.helped} helped"),
            ("embedded", f"{stats.vectors} by {stats.embedder or 'no model yet'}{_unused(stats)}"),
            ("index", f"{stats.tier}, {_size(stats.index_memory_bytes)} memory, {_size(stats.index_disk_bytes)} disk"),
        ]
    )


def _unused(stats: LessonStats) -> str:
    return "" if stats.by_meaning else ", not this one: found by signature and names only"


def _record(lesson: Lesson) -> str:
    told = lesson.helped + lesson.failed
    return f"{lesson.helped} of {told}" if told else "-"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


def _day(ts: float) -> str:
    return _time(ts)[:10]


def _time(ts: float) -> str:
    try:
        return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(ts)
