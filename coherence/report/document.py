"""The beginning of a self-contained page, which lets nothing run or load but what stands in it."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from coherence.report.text import undirected


def begin_page(title: str, style: str, script: str = "") -> str:
    """Return a page up to ``<main>``: its head, and a policy that allows this style and script only.

    Parameters
    ----------
    title : str
        Of the page; any text.
    style : str
        All of its CSS.
    script : str
        All of its JavaScript, which the caller puts in; empty = none may run.

    Examples
    --------
    >>> page = begin_page("a < b", "p {}")
    >>> "<title>a &lt; b</title>" in page, "script-src" in page
    (True, False)
    """
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = f"default-src 'none'; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{undirected(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>",
        )
    )


def asset(package: str, name: str) -> str:
    """Return a text file of a package of ours."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
