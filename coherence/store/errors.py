"""Errors and warnings of the store."""

from __future__ import annotations

from pathlib import Path

from coherence.core.errors import CoherenceError


class StoreError(CoherenceError):
    """The store cannot be opened, read or written; nothing was changed by the call that raised it.

    One exception: where the disk fails at the very end of a commit, and until the file is closed, the next opening may
    find the whole transaction.

    Parameters
    ----------
    path : str or Path
        The file.
    reason : str
        What is wrong and, where possible, what to do.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = str(path)
        self.reason = reason
        super().__init__(self.path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class StoreWarning(UserWarning):
    """A damaged store was moved aside and a new one was begun."""
