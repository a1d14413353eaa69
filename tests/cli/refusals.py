"""Refusals of commands, read for the tests."""

from __future__ import annotations

from click.testing import Result


def complaint(result: Result) -> str:
    """Return what a refused command says: one line, and no traceback."""
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit), result.output
    lines = result.stderr.splitlines()
    assert sum(line.startswith("Error: ") for line in lines) == 1 and lines[-1].startswith("Error: ")
    return lines[-1]
