"""The user's browser, opened on a page that needs a token."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape


@contextmanager
def open_page(url: str) -> Iterator[None]:
    """Open a page in the user's browser, by way of a file that only the user can read, and remove it afterwards.

    Arguments of a browser's process, where the address would stand otherwise, are shown to every user of the machine.

    Parameters
    ----------
    url : str
        The address, with its token.
    """
    handle, name = tempfile.mkstemp(prefix="coherence-", suffix=".html")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html><meta charset="utf-8"><title>coherence</title>'
                f'<meta http-equiv="refresh" content="0;url={escape(url)}"><a href="{escape(url)}">coherence</a>\n'
            )
        webbrowser.open(f"file://{name}")
        yield
    finally:
        with suppress(OSError):
            os.unlink(name)
