"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

Option: TypeAlias = Callable[[Any], Any]

FORMAT_NAMES = (
    "openai",
    "openai-responses",
    "anthropic",
    "claude-code",
    "runs",
    "export",
    "otlp",
    "langfuse",
    "phoenix",
    "langsmith",
)

FILES = click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
TARGET = click.argument("target", metavar="[FILE|AGENT|AGENT/SESSION]", required=False)


def file_option(name: str, help: str, *, short: str | None = None, **more: Any) -> Option:
    """Return the option of a file that is written."""
    return click.option(
        *([short] if short else []), name, type=click.Path(dir_okay=False, path_type=Path), help=help, **more
    )


store_option = file_option("--store", "The store's file. Default: $COHERENCE_STORE, else the user's data folder.")


def config_option(help: str) -> Option:
    """Return the option of a file with settings."""
    return click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help=help)


def format_option(help: str) -> Option:
    """Return the option of the format of transcripts."""
    return click.option("--format", "form", type=click.Choice(FORMAT_NAMES), help=help)


def embedder_option(help: str) -> Option:
    """Return the option of the embedder, by default the shipped model."""
    return click.option("--embedder", metavar="NAME[:ARGS]", default="minilm", show_default=True, help=help)


def metrics_option(help: str) -> Option:
    """Return the option that names metrics."""
    return click.option("--metric", "metrics", metavar="NAME", multiple=True, help=help)


def json_option(help: str = "Print JSON.") -> Option:
    """Return the flag by which a command prints JSON."""
    return click.option("--json", "as_json", is_flag=True, help=help)
