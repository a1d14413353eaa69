"""Lessons as people and as programs read them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from coherence.cli.columns import cut, print_columns, width
from coherence.core.readings import one_line
from coherence.lessons.normal import normalise
from coherence.lessons.records import Lesson, LessonStats

FIX = 100
"""Characters of a fix that a table shows; ``show`` and ``--json`` give all of it."""

ERROR = 200
"""Characters of an error, and of the fix below it, that a search shows."""

NAME = 40
"""Characters of a tool or a pattern that a table shows."""


def plain(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson as JSON has it, without where it was learned."""
    found: dict[str, Any] = msgspec.to_builtins(lesson)
    del found["origins"]
    return found


def print_lessons(lessons: Sequence[Lesson]) -> None:
    """Print a lesson a line, no longer than a terminal is wide."""
    rows = [("id", "seen", "times", "helped", "tool", "pattern", "fix")]
    for each in lessons:
        texts = (cut(each.tool, NAME) or "-", cut(each.pattern, NAME) or "-", cut(each.fix_text, FIX))
        rows.append((str(each.id), _day(each.seen), str(each.count), _record(each), *texts))
    print_columns(rows, texts=3)


def print_found(lessons: Sequence[Lesson]) -> None:
    """Print for each lesson how likely it is the fix that was asked for, and below that its error and its fix."""
    for each in lessons:
        known = f"{each.id}  similarity {each.similarity:.2f} ({each.match})  seen {_day(each.seen)}"
        name = "  ".join(cut(name, NAME) for name in (each.tool, each.pattern) if name)
        lines = (
            f"{known}  recorded {_times(each)}  helped {_record(each)}  {name}".rstrip(),
            f"    error: {cut(_headline(each.error_text), ERROR)}",
            f"    fix: {cut(each.fix_text, ERROR)}",
        )
        sys.stdout.writelines(f"{_fitting(line)}\n" for line in lines)


def _fitting(line: str) -> str:
    return line if len(line) <= width() else f"{line[: width() - 1]}…"


def _headline(error: str) -> str:
    """Return what of an error fits on a line: of one with a traceback or a log, what went wrong."""
    error = error.strip()
    return normalise(error).text if "\n" in error else error


def print_lesson(lesson: Lesson) -> None:
    """Print everything that is known of a lesson; what it quotes stays within its part of the page."""
    rows = [
        ("lesson", str(lesson.id)),
        ("pattern", lesson.pattern),
        ("tool", lesson.tool or "-"),
        ("recorded", f"{_times(lesson)}, from {_time(lesson.created)} to {_time(lesson.seen)}"),
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
    unused = "" if stats.by_meaning else ", not this one: found by signature and names only"
    print_columns(
        [
            ("lessons", str(stats.lessons)),
            ("retired", str(stats.retired)),
            ("outcomes", f"{stats.outcomes}, of these {stats.helped} helped"),
            ("embedded", f"{stats.vectors} by {stats.embedder or 'no model yet'}{unused}"),
            ("index", f"{stats.tier}, {_size(stats.index_memory_bytes)} memory, {_size(stats.index_disk_bytes)} disk"),
        ]
    )


def _times(lesson: Lesson) -> str:
    return "once" if lesson.count == 1 else f"{lesson.count} times"


def _record(lesson: Lesson) -> str:
    tried = lesson.helped + lesson.failed
    return f"{lesson.helped} of {tried}" if tried else "-"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


def _day(ts: float) -> str:
    return _time(ts)[:10]


def _time(ts: float) -> str:
    try:
        return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(ts)
