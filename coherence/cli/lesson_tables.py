"""Lessons as people and as programs read them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from coherence.cli.columns import print_columns
from coherence.lessons.records import Lesson, LessonStats
from coherence.records import excerpt, one_line

FIX = 100
"""Characters of a fix that a table shows; ``show`` and ``--json`` give all of it."""

NAME = 40


def plain(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as JSON has it, without where it was learned."""
    found: dict[str, Any] = msgspec.to_builtins(lesson)
    del found["origins"]
    return found


def print_lessons(lessons: Sequence[Lesson], *, asked: bool) -> None:
    """Print a lesson a line; where an error was asked about, how likely each is its fix."""
    table = [("id", *(("similarity", "match") if asked else ()), "seen", "times", "helped", "tool", "pattern", "fix")]
    table += [
        (
            str(lesson.id),
            *((f"{lesson.similarity:.2f}", lesson.match) if asked else ()),
            _day(lesson.seen),
            str(lesson.count),
            _record(lesson),
            excerpt(lesson.tool, NAME) or "-",
            excerpt(lesson.pattern, NAME) or "-",
            excerpt(lesson.fix_text, FIX),
        )
        for lesson in lessons
    ]
    print_columns(table)


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
