"""``coherence config``: settings of a project and of the user, checked, and shown with their sources."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from coherence.cli.columns import print_columns
from coherence.cli.documents import print_document
from coherence.cli.options import json_option
from coherence.core.readings import number_of, one_line
from coherence.core.settings import (
    ConfigError,
    Problem,
    effective,
    environment,
    problems_of,
    project_file,
    read_layer,
    read_layers,
    user_file,
)

MAX_VALUE = 60
"""Characters of a value in the table."""


@click.group()
def config() -> None:
    """Check settings, and show which value counts and where it comes from."""


@config.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option()
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Check FILES, by default coherence.toml of the project, your own file, and the environment.

    Exit status: 0 all can be used, 1 something is wrong.
    """
    found: list[Problem] = []
    checked: list[str] = []
    for path in files or [each for each in (user_file(), project_file()) if each is not None and each.is_file()]:
        checked.append(str(path))
        try:
            found += problems_of(read_layer(path))
        except ConfigError as error:
            found += error.problems
    if not files:
        layer = environment(os.environ)
        checked += sorted(set(layer.places.values()))
        found += problems_of(layer)
    if as_json:
        print_document("coherence.config.check/1", {"checked": checked, "problems": [each._asdict() for each in found]})
    else:
        for each in found:
            click.echo(one_line(str(each)))
        if not checked:
            click.echo("no settings: no coherence.toml here or above, and no file of your own; the defaults count")
        elif not found:
            click.echo(f"{', '.join(map(one_line, checked))}: ok")
    if found:
        if not as_json:
            click.echo(number_of(len(found), "problem"), err=True)
        sys.exit(1)


@config.command()
@click.option("--all", "with_defaults", is_flag=True, help="Show the defaults, too.")
@json_option()
def show(with_defaults: bool, as_json: bool) -> None:
    """Show the settings that count here, and the source of each.

    The environment counts over the project's coherence.toml, and that over your own file. Hooks take from a project
    only what makes them stricter. Exit status: 0 ok, 1 something is wrong with the settings.
    """
    try:
        settings = effective(read_layers())
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    shown = [each for each in settings if with_defaults or each.source != "default"]
    if as_json:
        print_document("coherence.config.show/1", [each._asdict() for each in shown])
        return
    if not shown:
        click.echo("the default settings count: coherence config show --all")
        return
    print_columns([("setting", "value", "source"), *((each.key, _text(each.value), each.source) for each in shown)])


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
