"""``coherence lessons``: errors that were fixed once, recorded, asked for, moved and looked after by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import click

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
    from coherence.cli.lesson_files import error_text
    from coherence.cli.lesson_work import add_from, add_one

    if error is None and error_file is None:
        if (pattern, fix, tool) != (None, None, "") or sys.stdin.isatty():
            raise click.UsageError("name the error with --error or --error-file, or give lessons as JSON on stdin")
        raise SystemExit(add_from(click.open_file("-", "rb"), store, embedder, as_json=as_json))
    if error is not None and error_file is not None:
        raise click.UsageError("--error and --error-file say the same; give one of them")
    if pattern is None or fix is None:
        raise click.UsageError("a lesson needs --pattern and --fix")
    text = error_text(error_file) if error_file is not None else error or ""
    add_one(store, embedder, pattern=pattern, error=text, fix=fix, tool=tool, as_json=as_json)


@lessons.command()
@click.argument("text")
@click.option("--tool", help="The tool that failed.")
@click.option("-k", "k", type=click.IntRange(1, 1_000), default=3, show_default=True, help="At most so many.")
@_options(_STORE, _EMBEDDER, _JSON)
def search(text: str, **options: Any) -> None:
    """Find what fixed an error like TEXT, or like what TEXT describes; - reads it from standard input.

    Prints nothing but a remark if nothing fits.
    """
    from coherence.cli.lesson_files import error_text
    from coherence.cli.lesson_work import search_lessons

    search_lessons(error_text(click.open_file("-", "rb")) if text == "-" else text, **options)


@lessons.command("list")
@click.option("--limit", type=click.IntRange(1, MAX_ROWS), default=50, show_default=True, help="At most so many.")
@click.option("--pattern", help="Only lessons of this pattern.")
@_options(_STORE, _JSON)
def list_command(**options: Any) -> None:
    """List lessons, the most recently used first."""
    from coherence.cli.lesson_work import list_lessons

    list_lessons(**options)


@lessons.command()
@click.argument("id", type=click.IntRange(1, 2**53))
@_options(_STORE, _JSON)
def show(id: int, **options: Any) -> None:
    """Show a lesson: error and fix in full, how often it helped, and the events it was learned from."""
    from coherence.cli.lesson_work import show_lesson

    show_lesson(id, **options)


@lessons.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@_STORE
def export_command(file: Path | None, store: Path | None) -> None:
    """Write all lessons as JSON lines, to FILE or to standard output."""
    from coherence.cli.lesson_work import export_to

    export_to(file, store)


@lessons.command("import")
@click.argument("file", type=click.File("rb"))
@_options(_STORE, _EMBEDDER, _JSON)
def import_command(file: IO[bytes], **options: Any) -> None:
    """Keep the lessons of FILE (- is standard input): an export, or a JSON array with pattern, error, fix, tool, ts.

    Lessons that are known already keep the larger of both counts, so a file may be imported again.
    """
    from coherence.cli.lesson_work import import_from

    raise SystemExit(import_from(file, **options))


@lessons.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=click.IntRange(1, 2**53))
@_STORE
def remove(ids: tuple[int, ...], store: Path | None) -> None:
    """Remove lessons by their ids, without asking: all of them, or none if one is not there.

    The events they were learned from do not bring them back.
    """
    from coherence.cli.lesson_work import remove_lessons

    remove_lessons(ids, store)


@lessons.command()
@click.argument("id", type=click.IntRange(1, 2**53))
@click.option("--helped/--failed", default=None, help="Whether the fix worked.")
@_STORE
def outcome(id: int, helped: bool | None, store: Path | None) -> None:
    """Record that the fix of a lesson was tried, and whether it helped.

    A lesson that keeps failing sinks, and is finally retired.
    """
    from coherence.cli.lesson_work import add_outcome

    if helped is None:
        raise click.UsageError("say what came of it: --helped or --failed")
    add_outcome(id, helped=helped, store=store)


@lessons.command()
@click.option("--keep", type=click.IntRange(0, 2**53), help="Remove all but so many of the most recently used.")
@click.option("--retired", is_flag=True, help="Remove those whose fix kept failing.")
@_STORE
def prune(keep: int | None, retired: bool, store: Path | None) -> None:
    """Remove lessons, without asking, and print how many."""
    from coherence.cli.lesson_work import prune_lessons

    if keep is None and not retired:
        raise click.UsageError("say what goes: --keep N, --retired, or both")
    prune_lessons(store, keep=keep, retired=retired)


@lessons.command()
@_options(_STORE, _EMBEDDER)
def rebuild(**options: Any) -> None:
    """Bring lessons of another version of this package up to date, embed what this model has not, and index it anew.

    Interrupted, it goes on when called again.
    """
    from coherence.cli.lesson_work import rebuild_index

    rebuild_index(**options)


@lessons.command()
@_options(_STORE, _EMBEDDER, _JSON)
def stats(**options: Any) -> None:
    """Show how many lessons there are, how often they helped, and what their index takes."""
    from coherence.cli.lesson_work import show_stats

    show_stats(**options)
