"""A store for tests and notebooks, which leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from coherence.monitor.arguments import as_store
from coherence.store.store import Store


class TemporaryStore(Store):
    """A store in a temporary folder of its own, which is removed by :meth:`close`; a killed process leaves it there.

    SQLite's databases in memory have no write-ahead log and are not shared with forked processes, a file does both.

    Raises
    ------
    StoreError
        If no file can be made there.
    """

    def __init__(self) -> None:
        self._made_by = os.getpid()
        folder = Path(tempfile.mkdtemp(prefix="coherence-"))
        try:
            super().__init__(folder / "store.db", synchronous="NORMAL")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def close(self) -> None:
        """Close the file and remove it, unless this is a forked child: the parent goes on using it."""
        super().close()
        if self._made_by == os.getpid():
            shutil.rmtree(self.path.parent, ignore_errors=True)


def open_store(store: str | Path | Store) -> Store:
    """Return the store that a user of a guard means; ``":memory:"`` = a temporary one.

    Raises
    ------
    TypeError
        If it is neither a path nor a store.
    StoreError
        If it cannot be opened.
    """
    found = TemporaryStore() if store == ":memory:" else as_store(store)
    if found is None:
        raise TypeError("store must be a path, ':memory:' or a Store, not None")
    return found
