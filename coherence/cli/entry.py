"""Beginning of the command: what it says of itself is printed at once, all else by :mod:`coherence.cli.main`."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath

import coherence

PAGE = "help.txt"
"""The help of the command, as it is printed on 80 columns or more; a test compares it."""


def run(program: str = "") -> None:
    """Run the command; to load click for ``--help`` or ``--version`` would take longer than all the rest of them.

    Parameters
    ----------
    program : str
        What the user has called. Default: the name of the script.
    """
    name = program or PurePath(sys.argv[0]).name
    asked = sys.argv[1:]
    if asked == ["--version"]:
        print(f"coherence, version {coherence.__version__}")  # noqa: T201
    elif asked in (["--help"], ["-h"]) and _columns() >= 80:
        with open(os.path.join(os.path.dirname(__file__), PAGE), encoding="ascii") as page:
            sys.stdout.write(page.read().replace("Usage: coherence", f"Usage: {name}", 1))
    else:
        from coherence.cli.main import main

        main()


def _columns() -> int:
    """Return the width of the terminal as ``shutil`` does, which would load the formats of archives."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80 if sys.__stdout__ else 80
    except (OSError, ValueError):
        return 80
