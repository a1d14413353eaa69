"""``coherence``: the commands and their options. What they do is in the other files of this folder."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeVar

import click

import coherence

F = TypeVar("F", bound=Callable[..., Any])

FORMAT_NAMES = ("openai", "anthropic", "claude-code", "runs")


def _shared(command: F) -> F:
    """Give a command the options of every scoring command."""
    for option in reversed(
        (
            click.option(
                "--window", type=click.IntRange(1), default=20, show_default=True, help="Messages of context."
            ),
            click.option(
                "--embedder",
                metavar="NAME[:ARGS]",
                default="minilm",
                show_default=True,
                help="minilm, hashing, sentence-transformers:MODEL, openai:URL,MODEL, or a plug-in's name.",
            ),
            click.option(
                "--metric",
                "metrics",
                metavar="NAME",
                multiple=True,
                help="A further metric, beside the four default ones; see `coherence metrics`. Repeatable.",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table."),
            click.option(
                "--jsonl", type=click.Path(dir_okay=False, path_type=Path), help="Write one JSON object a reading."
            ),
        )
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(coherence.__version__, prog_name="coherence")
def main() -> None:
    """Interoception for LLM agents: tell whether an agent is still thinking straight."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # agents write what a terminal's encoding may not have


@main.command()
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMAT_NAMES),
    help="Format of the files; default: told by their content.",
)
@_shared
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as one HTML file.")
@click.option(
    "--fail-below",
    metavar="X",
    type=click.FloatRange(0, 1),
    help="Exit with 1 if the lowest index of any run is below X.",
)
def score(paths: tuple[Path, ...], form: str | None, **options: Any) -> None:
    """Score recorded agent runs, one reading a step.

    Reads OpenAI and Anthropic messages, Claude Code sessions and the run format of this project, as JSON or JSON Lines,
    gzipped or not. Exit status: 0 ok, 1 a threshold was crossed, 2 bad usage or an input that could not be read (the
    others are scored all the same).
    """
    from coherence.cli.score import score_files

    raise SystemExit(score_files(paths, form=form, **options))


@main.command()
@_shared
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the report is written.",
)
def demo(**options: Any) -> None:
    """Score the 12 real agent runs that come with the package, and write a report."""
    from coherence.cli.score import score_files

    with as_file(files("coherence.demo_data")) as folder:
        paths = tuple(sorted(Path(folder).glob("*.jsonl.gz")))
        raise SystemExit(score_files(paths, form="runs", fail_below=None, **options))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of the table.")
def metrics(as_json: bool) -> None:
    """List the registered metrics: name, direction, origin."""
    from coherence.cli.listing import list_metrics

    list_metrics(as_json=as_json)
