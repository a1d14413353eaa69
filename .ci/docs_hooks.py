"""Parts of the reference that come from the code: tables of fields, and every command with its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import click
import griffe

from coherence.cli.main import main

FIELDS = re.compile(r"^::: fields (coherence[\w.]*)\.(\w+)$", re.M)
COMMANDS = "::: commands"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace ``::: fields CLASS`` by a table of the class, and ``::: commands`` by all commands."""
    markdown = FIELDS.sub(lambda place: field_table(load(place[1])[place[2]]), markdown)
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, "\n".join(command_lines(main, "coherence")))
    return markdown


def on_page_content(html: str, **_: Any) -> str:
    """Remove the roles of reStructuredText, which docstrings use and Markdown does not know."""
    return re.sub(r":(?:meth|class|mod|func|data|attr):(<code>)~?", r"\1", html)


@cache
def load(module: str) -> griffe.Object:
    """Return a module as its source describes it."""
    options = {"warn_unknown_params": False}  # fields of msgspec records are documented as parameters
    loaded = griffe.load(module, search_paths=["."], docstring_parser="numpy", docstring_options=options)
    return cast(griffe.Object, loaded)


def field_table(record: griffe.Class) -> str:
    """Return the text of a class and a table of its fields: name, type and default, meaning."""
    sections = record.docstring.parsed if record.docstring else []
    parameters = [field for section in sections if section.kind == "parameters" for field in section.value]
    meanings = {field.name: field.description for field in parameters}
    rows = []
    for field in record.attributes.values():
        if "property" in field.labels:
            continue
        meaning = field.docstring.value if field.docstring else meanings.get(field.name)
        if not meaning:
            raise ValueError(f"{record.path}.{field.name} has no docstring")
        default = "required" if field.value is None else f"`{one_line(str(field.value))}`"
        rows.append(f"| `{field.name}` | {default} | {one_line(meaning)} |")
    text = "\n\n".join(section.value for section in sections if section.kind == "text")
    return "\n".join([text, "", "| field | default | meaning |", "|---|---|---|", *rows, ""])


def command_lines(command: click.Command, name: str, depth: int = 1) -> Iterator[str]:
    """Yield a command, its arguments and options, and its subcommands, as Markdown."""
    context = click.Context(command, info_name=name)
    if depth > 1:
        usage = " ".join(command.collect_usage_pieces(context))
        yield from (f"{'#' * depth} {name}", "", f"    {name} {usage}", "")
    yield from (line.strip() for line in (command.help or "").replace("\b", "").splitlines())
    options = [option for option in command.params if isinstance(option, click.Option)]
    if options:
        yield from ("", "| option | default | effect |", "|---|---|---|")
    for option in options:
        names = ", ".join(f"`{text}`" for text in option.opts)
        names += "".join(f" / `{text}`" for text in option.secondary_opts)
        value = "" if option.is_flag else f" {option.make_metavar(context)}".replace("|", "\\|")
        default = f"`{option.default}`" if option.show_default else ""
        yield f"| {names}{value} | {default} | {one_line(option.help or '')} |"
    yield ""
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from command_lines(found, f"{name} {child}", depth + 1)


def one_line(text: str) -> str:
    """Return a docstring as one line of Markdown."""
    text = re.sub(r":(?:mod|meth|class):`~?([\w.]+)`", r"`\1`", text)
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")
