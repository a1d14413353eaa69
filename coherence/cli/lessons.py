"""``coherence lessons``: errors that were fixed once, recorded, asked for, moved and looked after by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from coherence.lessons.records import Lesson

F = TypeVar("F", bound=Callable[..., Any])

MAX_ROWS = 1_000_000
"""Lessons that are printed; all of them are what `export` is for."""

_STORE = click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The store's file. Default: $COHERENCE_STORE, else the user's data folder.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_EMBEDDER = click.option(
    "--embedder",
    metavar="NAME[:ARGS]",
    default="minilm",
    show_default=True,
    help="The model that the lessons are embedded by: minilm, hashing, sentence-transformers:MODEL, openai:URL,MODEL, "
    "or a plug-in's name.",
)


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Give a command these options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group()
def lessons() -> None:
    """Record, find and look after lessons: errors that were fixed once, and how.

    Exit status: 0 ok, 1 a line of the input was refused (all others were kept), 2 bad usage or an unusable file.
    """


@lessons.command()
@click.option("--pattern", help="A short name of the kind of error.")
@click.option("--error", help="What was printed.")
@click.option("--error-file", type=click.File("rb"), help="A file with what was printed; - is standard input.")
@click.option("--fix", help="What helped.")
@click.option("--tool", default="", help="The tool that failed.")
@_options(_STORE, _EMBEDDER, _JSON)
def add(
    pattern: str | None,
    error: str | None,
    error_file: IO[bytes] | None,
    fix: str | None,
    tool: str,
    store: Path | None,
    embedder: str,
    as_json: bool,
) -> None:
    """Record a lesson and print its id; one that is known already counts once more.

    Without --error and --error-file, lessons are read as JSON from standard input: one object, an array, or one object
    a line, with pattern, error_text, fix_text and tool.
    """
    from coherence.cli import lesson_files as files
    from coherence.lessons.exchange import MAX_REFUSALS, RefusedEntry, read_entries
    from coherence.lessons.intake import make_new

    if error is not None and error_file is not None:
        raise click.UsageError("--error and --error-file say the same; give one of them")
    source = click.open_file("-", "rb")
    refused: list[RefusedEntry] = []
    if error is None and error_file is None:
        if (pattern, fix, tool) != (None, None, "") or sys.stdin.isatty():
            raise click.UsageError("name the error with --error or --error-file, or give lessons as JSON on stdin")
        found = list(read_entries(source))
        refused = [each for each in found if isinstance(each, RefusedEntry)]
        news = [each for each in found if not isinstance(each, RefusedEntry)]
        if not found:
            raise click.UsageError("no lessons on standard input")
    elif pattern is None or fix is None:
        raise click.UsageError("a lesson needs --pattern and --fix")
    else:
        text = files.error_text(error_file) if error_file is not None else error
        try:
            news = [make_new(pattern=pattern, error_text=text, fix_text=fix, tool=tool, origin=None, ts=None)]
        except ValueError as bad:
            raise click.UsageError(str(bad)) from bad
    with files.opened_lessons(store, embedder, make=True) as kept:
        ids = kept.add(news)
    click.echo(json.dumps(ids) if as_json else "\n".join(map(str, ids)), nl=bool(ids) or as_json)
    raise SystemExit(files.report_refused(source, refused[:MAX_REFUSALS], len(refused)))


@lessons.command()
@click.argument("text")
@click.option("--tool", help="The tool that failed.")
@click.option("-k", "k", type=click.IntRange(1, 1_000), default=3, show_default=True, help="At most so many.")
@_options(_STORE, _EMBEDDER, _JSON)
def search(text: str, tool: str | None, k: int, store: Path | None, embedder: str, as_json: bool) -> None:
    """Find what fixed an error like TEXT, or like what TEXT describes; - reads it from standard input.

    Prints nothing but a remark if nothing fits.
    """
    from coherence.cli.lesson_files import error_text, opened_lessons
    from coherence.cli.lesson_tables import print_found

    text = error_text(click.open_file("-", "rb")) if text == "-" else text
    if not text.strip():
        raise click.UsageError("an empty error is like no other; give what was printed, or describe it")
    with opened_lessons(store, embedder) as kept:
        found = kept.query(text, tool=tool, k=k)
    _print("search", found, print_found, "no lesson is like this", as_json=as_json)


def _print(
    name: str, found: Sequence[Lesson], table: Callable[[Sequence[Lesson]], None], nothing: str, *, as_json: bool
) -> None:
    from coherence.cli.documents import print_document
    from coherence.cli.lesson_tables import plain

    if as_json:
        print_document(f"coherence.lessons.{name}/1", [plain(lesson) for lesson in found])
    elif found:
        table(found)
    else:
        click.echo(nothing)


@lessons.command("list")
@click.option("--limit", type=click.IntRange(1, MAX_ROWS), default=50, show_default=True, help="At most so many.")
@click.option("--pattern", help="Only lessons of this pattern.")
@_options(_STORE, _JSON)
def list_command(limit: int, pattern: str | None, store: Path | None, as_json: bool) -> None:
    """List lessons, the most recently used first."""
    from coherence.cli.lesson_files import opened_lessons
    from coherence.cli.lesson_tables import print_lessons

    with opened_lessons(store, None) as kept:
        found = list(kept.lessons(limit=limit, pattern=pattern))
    _print("list", found, print_lessons, "no lessons", as_json=as_json)


@lessons.command()
@click.argument("id", type=click.IntRange(1, 2**53))
@_options(_STORE, _JSON)
def show(id: int, store: Path | None, as_json: bool) -> None:
    """Show a lesson: error and fix in full, how often it helped, and the events it was learned from."""
    import msgspec

    from coherence.cli.documents import print_document
    from coherence.cli.lesson_files import opened_lessons
    from coherence.cli.lesson_tables import print_lesson

    with opened_lessons(store, None) as kept:
        lesson = kept.get(id)
        if lesson is None:
            raise click.UsageError(f"{kept.store.path}: there is no lesson {id}")
    if as_json:
        print_document("coherence.lessons.show/1", msgspec.to_builtins(lesson))
    else:
        print_lesson(lesson)


@lessons.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@_STORE
def export_command(file: Path | None, store: Path | None) -> None:
    """Write all lessons as JSON lines, to FILE or to standard output."""
    from coherence.cli.lesson_files import opened_lessons, write_export

    with opened_lessons(store, None) as kept:
        write_export(kept, file)


@lessons.command("import")
@click.argument("file", type=click.File("rb"))
@_options(_STORE, _EMBEDDER, _JSON)
def import_command(file: IO[bytes], store: Path | None, embedder: str, as_json: bool) -> None:
    """Keep the lessons of FILE (- is standard input): an export, or a JSON array with pattern, error, fix, tool, ts.

    Lessons that are known already keep the larger of both counts, so a file may be imported again.
    """
    import msgspec

    from coherence.cli import lesson_files as files
    from coherence.cli.documents import print_document
    from coherence.lessons.exchange import import_lessons

    read = [0]
    with (
        files.opened_lessons(store, embedder, make=True) as kept,
        files.progress("lessons", lambda: read[0]),
    ):
        report = import_lessons(kept, file, lambda count: read.__setitem__(0, count))
    if as_json:
        print_document("coherence.lessons.import/1", msgspec.to_builtins(report))
    else:
        click.echo(
            f"{report.added} new, {report.changed + report.same} known already ({report.changed} of them changed), "
            f"{report.refused} refused"
        )
    raise SystemExit(files.report_refused(file, report.refusals, report.refused))


@lessons.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(1, 2**53))
@_STORE
def remove(ids: tuple[int, ...], store: Path | None) -> None:
    """Remove lessons by their ids, without asking: all of them, or none if one is not there.

    The events they were learned from do not bring them back.
    """
    from coherence.cli.lesson_files import opened_lessons

    with opened_lessons(store, None) as kept:
        for id in ids:
            if kept.get(id) is None:
                raise click.UsageError(f"{kept.store.path}: there is no lesson {id}; nothing was removed")
        _print_removed(kept.remove(ids))


def _print_removed(count: int) -> None:
    click.echo(f"removed {count} lesson{'' if count == 1 else 's'}")


@lessons.command()
@click.argument("id", type=click.IntRange(1, 2**53))
@click.option("--helped/--failed", default=None, help="Whether the fix worked; one of the two is required.")
@_STORE
def outcome(id: int, helped: bool | None, store: Path | None) -> None:
    """Record that the fix of a lesson was tried, and whether it helped.

    A lesson that keeps failing sinks, and is finally retired.
    """
    from coherence.cli.lesson_files import opened_lessons

    if helped is None:
        raise click.UsageError("say what came of it: --helped or --failed")
    with opened_lessons(store, None) as kept:
        kept.outcome(id, helped=helped)
        lesson = kept.get(id)
    if lesson is not None:
        retired = "; it is retired: no longer offered" if lesson.retired else ""
        click.echo(f"lesson {id} helped {lesson.helped} of {lesson.helped + lesson.failed} times{retired}")


@lessons.command()
@click.option("--keep", type=click.IntRange(0, 2**53), help="Keep only this many, the most recently used.")
@click.option("--retired", is_flag=True, help="Remove those whose fix kept failing.")
@_STORE
def prune(keep: int | None, retired: bool, store: Path | None) -> None:
    """Remove lessons without asking, and print how many were removed."""
    from coherence.cli.lesson_files import opened_lessons

    if keep is None and not retired:
        raise click.UsageError("say what goes: --keep N, --retired, or both")
    with opened_lessons(store, None) as kept:
        _print_removed(kept.prune(keep=keep, retired=retired))


@lessons.command()
@_options(_STORE, _EMBEDDER)
def rebuild(store: Path | None, embedder: str) -> None:
    """Migrate lessons from another version, embed those without a vector of this model, and rebuild the index.

    If it is interrupted, call it again: it continues.
    """
    from coherence.cli.lesson_files import opened_lessons, progress
    from coherence.cli.target import opened, split_target

    with (
        opened(split_target(None, store)[0]) as watched,
        progress("embedded", lambda: watched.fetch("SELECT count(*) FROM lesson_vectors")[0][0]),
        opened_lessons(store, embedder, rebuild=True) as kept,
    ):
        kept.rebuild()
        stats = kept.stats()
    click.echo(f"{stats.vectors} of {stats.lessons} lessons are embedded by {stats.embedder}")


@lessons.command()
@_options(_STORE, _EMBEDDER, _JSON)
def stats(store: Path | None, embedder: str, as_json: bool) -> None:
    """Show how many lessons there are, how often they helped, and how much space their index takes."""
    import msgspec

    from coherence.cli.documents import print_document
    from coherence.cli.lesson_files import opened_lessons
    from coherence.cli.lesson_tables import print_stats
    from coherence.lessons.errors import EmbedderMismatchError

    try:
        with opened_lessons(store, embedder) as kept:
            found = kept.stats()
    except click.UsageError as error:
        if not isinstance(error.__cause__, EmbedderMismatchError):
            raise
        with opened_lessons(store, None) as kept:  # what stands in the tables is known without their model
            found = kept.stats()
    if as_json:
        print_document("coherence.lessons.stats/1", msgspec.to_builtins(found))
    else:
        print_stats(found)
