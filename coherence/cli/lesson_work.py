"""The work behind ``coherence lessons``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click
import msgspec

from coherence.cli.documents import print_document
from coherence.cli.embedders import make_embedder
from coherence.cli.lesson_files import (
    lessons_of,
    name_of,
    opened_lessons,
    progress_bar,
    watched_vectors,
    write_out,
    write_whole,
)
from coherence.cli.lesson_tables import plain, print_found, print_lesson, print_lessons, print_stats
from coherence.cli.outputs import check_outputs
from coherence.cli.target import opened, split_target
from coherence.core.readings import one_line
from coherence.lessons.entries import RefusedEntry, read_entries
from coherence.lessons.errors import EmbedderMismatchError
from coherence.lessons.exchange import BATCH, MAX_REFUSALS, export_lessons, import_lessons
from coherence.lessons.intake import make_new
from coherence.lessons.records import LessonStats
from coherence.lessons.table import New


def add_one(store: Path | None, embedder: str, *, pattern: str, error: str, fix: str, tool: str, as_json: bool) -> None:
    """Record one lesson and print its id."""
    try:
        new = make_new(pattern=pattern, error_text=error, fix_text=fix, tool=tool, origin=None, ts=None)
    except ValueError as found:
        raise click.UsageError(str(found)) from found
    with opened_lessons(store, embedder, make=True) as lessons:
        ids = lessons.add([new])
    _print_ids(ids, as_json=as_json)


def add_from(source: IO[bytes], store: Path | None, embedder: str, *, as_json: bool) -> int:
    """Record lessons that are given as JSON, print their ids, and return the exit status."""
    ids: list[int] = []
    batch: list[New] = []
    refused: list[RefusedEntry] = []
    with opened_lessons(store, embedder, make=True) as lessons:
        for found in read_entries(source):
            if isinstance(found, RefusedEntry):
                refused.append(found)
                continue
            batch.append(found)
            if len(batch) == BATCH:
                ids += lessons.add(batch)
                batch = []
        ids += lessons.add(batch)
    if not ids and not refused:
        raise click.UsageError("no lessons on standard input")
    _print_ids(ids, as_json=as_json)
    _tell(name_of(source), refused[:MAX_REFUSALS], len(refused))
    return int(bool(refused))


def _print_ids(ids: Sequence[int], *, as_json: bool) -> None:
    sys.stdout.write(json.dumps(ids) + "\n" if as_json else "".join(f"{id}\n" for id in ids))


def search_lessons(text: str, *, tool: str | None, k: int, store: Path | None, embedder: str, as_json: bool) -> None:
    """Print the lessons whose error is like a text."""
    if not text.strip():
        raise click.UsageError("an empty error is like no other; give what was printed, or describe it")
    with opened_lessons(store, embedder) as lessons:
        found = lessons.query(text, tool=tool, k=k)
    if as_json:
        print_document("coherence.lessons.search/1", [plain(lesson) for lesson in found])
    elif found:
        print_found(found)
    else:
        sys.stdout.write("no lesson is like this\n")


def list_lessons(*, limit: int, pattern: str | None, store: Path | None, as_json: bool) -> None:
    """Print lessons, the most recently used first."""
    with opened_lessons(store, None) as lessons:
        found = list(lessons.lessons(limit=limit, pattern=pattern))
    if as_json:
        print_document("coherence.lessons.list/1", [plain(lesson) for lesson in found])
    elif found:
        print_lessons(found)
    else:
        sys.stdout.write("no lessons\n")


def show_lesson(id: int, *, store: Path | None, as_json: bool) -> None:
    """Print one lesson with everything that is known of it."""
    with opened_lessons(store, None) as lessons:
        lesson = lessons.get(id)
        if lesson is None:
            raise click.UsageError(f"{lessons.store.path}: there is no lesson {id}")
    if as_json:
        print_document("coherence.lessons.show/1", {**plain(lesson), "origins": msgspec.to_builtins(lesson.origins)})
    else:
        print_lesson(lesson)


def export_to(file: Path | None, store: Path | None) -> None:
    """Write all lessons to a file, or to standard output."""
    check_outputs({"FILE": file}, [], store=split_target(None, store)[0])
    with opened_lessons(store, None) as lessons:
        if file is None:
            write_out(export_lessons(lessons))
        else:
            write_whole(file, export_lessons(lessons))
            click.echo(f"lessons: {file}", err=True)


def import_from(file: IO[bytes], *, store: Path | None, embedder: str, as_json: bool) -> int:
    """Keep the lessons of a file, say what became of them, and return the exit status."""
    with opened_lessons(store, embedder, make=True) as lessons, progress_bar() as bar:
        task = bar.add_task("lessons", total=None)
        report = import_lessons(lessons, file, lambda count: bar.update(task, completed=count))
    if as_json:
        print_document("coherence.lessons.import/1", msgspec.to_builtins(report))
    else:
        sys.stdout.write(
            f"{report.added} new, {report.changed + report.same} known already ({report.changed} of them changed), "
            f"{report.refused} refused\n"
        )
    _tell(name_of(file), report.refusals, report.refused)
    return int(report.refused > 0)


def _tell(name: str, refusals: Sequence[RefusedEntry], count: int) -> None:
    """Say on standard error which lines were refused, and why."""
    for refusal in refusals:
        click.echo(one_line(f"error: {name}:{refusal.line}: {refusal.why}"), err=True)
    if count > len(refusals):
        click.echo(one_line(f"error: {name}: {count - len(refusals)} more lines were refused"), err=True)


def remove_lessons(ids: Sequence[int], store: Path | None) -> None:
    """Remove lessons by their ids, all or none, and print how many."""
    with opened_lessons(store, None) as lessons:
        for id in ids:
            if lessons.get(id) is None:
                raise click.UsageError(f"{lessons.store.path}: there is no lesson {id}; nothing was removed")
        _print_gone(lessons.remove(ids))


def add_outcome(id: int, *, helped: bool, store: Path | None) -> None:
    """Record that a lesson's fix was tried, and print what is known of it now."""
    with opened_lessons(store, None) as lessons:
        lessons.outcome(id, helped=helped)
        lesson = lessons.get(id)
    if lesson is not None:
        retired = "; it is retired: no longer offered" if lesson.retired else ""
        sys.stdout.write(f"lesson {id} helped {lesson.helped} of {lesson.helped + lesson.failed} times{retired}\n")


def prune_lessons(store: Path | None, *, keep: int | None, retired: bool) -> None:
    """Remove lessons and print how many."""
    with opened_lessons(store, None) as lessons:
        gone = lessons.prune(keep=keep, retired=retired)
    _print_gone(gone)


def _print_gone(gone: int) -> None:
    sys.stdout.write(f"removed {gone} lesson{'' if gone == 1 else 's'}\n")


def rebuild_index(*, store: Path | None, embedder: str) -> None:
    """Embed all lessons that this model has not embedded, and make the index anew."""
    made = make_embedder(embedder)
    path = split_target(None, store)[0]
    with opened(path) as kept, watched_vectors(kept), lessons_of(kept, made, rebuild=True) as lessons:
        lessons.rebuild()
        stats = lessons.stats()
    sys.stdout.write(f"{stats.vectors} of {stats.lessons} lessons are embedded by {stats.embedder}\n")


def show_stats(*, store: Path | None, embedder: str, as_json: bool) -> None:
    """Print what a store of lessons holds."""
    stats = _stats(store, embedder)
    if as_json:
        print_document("coherence.lessons.stats/1", msgspec.to_builtins(stats))
    else:
        print_stats(stats)


def _stats(store: Path | None, embedder: str) -> LessonStats:
    made = make_embedder(embedder)
    with opened(split_target(None, store)[0]) as kept:
        try:
            with lessons_of(kept, made) as lessons:
                return lessons.stats()
        except EmbedderMismatchError:  # of an index of another model, only what stands in the tables can be told
            with lessons_of(kept, False) as lessons:
                return lessons.stats()
