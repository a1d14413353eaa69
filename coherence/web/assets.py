"""Files of the page, read once when the server starts: no request names a path."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""Ending of a name: type of the file. Files with other endings are not served."""

SHELL = "index.html"


class Asset(NamedTuple):
    """One file of the page."""

    content: bytes
    kind: str
    """Content type."""
    tag: str
    """Name of this content, for a browser that has it already."""


def read_assets() -> dict[str, Asset]:
    """Return name -> file, of all files of the package's folder ``static``."""
    found = {}
    for each in files("coherence.web").joinpath("static").iterdir():
        kind = KINDS.get(each.name[each.name.rfind(".") :]) if "." in each.name else None
        if kind is not None and each.is_file():
            content = each.read_bytes()
            found[each.name] = Asset(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found
