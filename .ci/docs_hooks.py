"""Tables of the settings reference, made from the docstrings of the configuration classes."""

from __future__ import annotations

import re
from typing import Any

import griffe

MODULE = "coherence.core.config"
PLACE = re.compile(r"^::: settings (\w+)$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each line ``::: settings CLASS`` by the description of that class and a table of its fields."""
    if not PLACE.search(markdown):
        return markdown
    module = griffe.load(MODULE, search_paths=["."], docstring_parser="numpy")
    return PLACE.sub(lambda place: describe(module[place[1]]), markdown)


def describe(settings: griffe.Class) -> str:
    """Return the text of a class and a Markdown table: field, default, effect."""
    sections = settings.docstring.parsed if settings.docstring else []
    parameters = [field for section in sections if section.kind == "parameters" for field in section.value]
    effects = {field.name: field.description for field in parameters}
    intro = "\n\n".join(section.value for section in sections if section.kind == "text")
    rows = ["| setting | default | effect |", "|---|---|---|"]
    for field in settings.attributes.values():
        if "property" in field.labels:
            continue
        effect = field.docstring.value if field.docstring else effects.get(field.name, "")
        if not effect:
            raise ValueError(f"{settings.path}.{field.name} has no docstring")
        default = "required" if field.value is None else f"`{plain(str(field.value))}`"
        rows.append(f"| `{field.name}` | {default} | {plain(effect)} |")
    return f"{intro}\n\n" + "\n".join(rows) + "\n"


def plain(text: str) -> str:
    """Return a docstring as one line of Markdown."""
    text = re.sub(r":(?:mod|meth|class):`~?([\w.]+)`", r"`\1`", text)
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")
