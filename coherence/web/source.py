"""The store that is served: found again when another file takes its place."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coherence.core.readings import one_line
from coherence.store.errors import StoreError
from coherence.store.open import HEADER_BYTES, MAGIC, FileId, file_id, kind_in_words
from coherence.store.recount import count_uncounted
from coherence.store.store import Store

if TYPE_CHECKING:
    from coherence.views.views import Views

WAIT_S = 2.0
"""Seconds that a page waits for a process that keeps the store locked."""


COUNTED_S = 600.0
"""Seconds after which no further session is counted; about 6,000,000 events."""


class OpenStore:
    """A store that is open, and what is seen through it.

    Parameters
    ----------
    store : Store
        The open store.
    file : (int, int)
        Which file it is.
    """

    def __init__(self, store: Store, file: FileId) -> None:
        self.store, self.file = store, file
        self._lock = threading.Lock()
        self._views: Views | None = None

    @property
    def views(self) -> Views:
        """Views on the store, made when they are first needed: to load them takes longer than to start the server."""
        with self._lock:
            if self._views is None:
                from coherence.views.views import Views

                self._views = Views(self.store)
            return self._views

    def close(self) -> None:
        """Close the store."""
        with suppress(StoreError):  # the file may be gone
            self.store.close()


class Trace(NamedTuple):
    """Mark that differs whenever something was written: labels and lessons change no event."""

    file: FileId | None
    log: tuple[int, int, int] | None
    """Inode, size and time in ns of SQLite's log; ``None`` = there is none."""


class StoreSource:
    """The store at a path, whichever file is there; none is ever made.

    Parameters
    ----------
    path : Path
        The store's file.

    Raises
    ------
    StoreError
        There is no store at the path, or it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))
        self._lock = threading.Lock()
        self._current: OpenStore | None = _open(self.path)

    @property
    def name(self) -> str:
        """Name of the file, without its folder."""
        return one_line(self.path.name)

    def current(self) -> OpenStore:
        """Return what is open; another file at the path is opened first.

        Raises
        ------
        StoreError
            There is no store at the path any more, or it cannot be opened.
        """
        with self._lock:
            there = file_id(self.path)
            if self._current is not None and there == self._current.file and not self._current.store.lost:
                return self._current
            self._close()
            self._current = _open(self.path)
            return self._current

    def warm(self, *, counts: bool) -> None:
        """Read the store once, so that the first page need not wait for it; what goes wrong, a page is told later.

        Parameters
        ----------
        counts : bool
            Count the sessions that an earlier version wrote, so that no later start has to read all their events.
        """
        with suppress(StoreError):
            self.current().views.overview(limit=1)
            if counts:
                count_uncounted(self.current().store, limit_s=COUNTED_S)

    def trace(self) -> Trace:
        """Return a mark of what was written last; it asks the file system only."""
        try:
            log = os.stat(f"{self.path}-wal")
        except OSError:
            return Trace(file_id(self.path), None)
        return Trace(file_id(self.path), (log.st_ino, log.st_size, log.st_mtime_ns))

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()


def _open(path: Path) -> OpenStore:
    """Open the store at a path."""
    if not os.path.lexists(path):
        raise StoreError(path, "no such file; record an agent into it first, or name another store")
    if path.is_file() and not path.is_symlink():
        # Before Store(), which would make a store of an empty file.
        try:
            with path.open("rb") as file:
                header = file.read(HEADER_BYTES)
        except OSError as error:
            raise StoreError(path, f"the file cannot be opened ({error.strerror})") from error
        if not header.startswith(MAGIC):
            raise StoreError(path, f"not a store of this package, but {kind_in_words(header)}")
    store = Store(path, timeout_s=WAIT_S, recovers=False)
    try:
        opened = file_id(path)
        if opened is None:
            raise StoreError(path, "the file was deleted while it was opened")
        return OpenStore(store, opened)
    except BaseException:
        store.close()
        raise
