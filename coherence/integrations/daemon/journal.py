"""Files of what the daemon has taken and not yet written, so that a kill loses none of it."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from coherence.integrations.daemon import hook
from coherence.store.errors import StoreError

LOGGER = logging.getLogger(__name__)

TAKEN = ".taken"
"""Suffix of a file in the spool whose payload a daemon has taken."""

SETTLE_S = 1.0
"""Seconds between two times that everything is written, and the files go."""


class Journal:
    """Keep each payload from before it is handled until it is written.

    Parameters
    ----------
    folder : Path
        State folder.
    """

    def __init__(self, folder: Path) -> None:
        self._spool = folder / hook.SPOOL
        self._handled: list[Path] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def begin(self, raw: bytes) -> Path | None:
        """Keep a request; ``None`` if there is no room for it: it is handled all the same."""
        path = self._spool / f"{time.time_ns():020}-{os.getpid()}-{next(self._numbers)}{TAKEN}"
        try:
            self._spool.mkdir(mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(raw)
        except OSError as error:
            LOGGER.warning("a request is handled, and would be lost if the daemon were killed now: %s", error)
            with suppress(OSError):
                path.unlink()
            return None
        return path

    def done(self, path: Path | None) -> None:
        """Let a request that was handled go once everything is written."""
        if path is not None:
            with self._lock:
                self._handled.append(path)

    def settle(self, write: Callable[[], object]) -> None:
        """Write everything, and let go what was handled before; what cannot be written stays."""
        with self._lock:
            handled, self._handled = self._handled, []
        try:
            if handled:
                write()
        except StoreError:
            with self._lock:
                self._handled += handled
            raise
        for path in handled:
            path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Leave what was handled to the next daemon: some of it could not be written before its session was closed."""
        with self._lock:
            self._handled = []

    def recover(self) -> bool:
        """Put what a daemon that was killed had taken back into the spool; tell whether there was any."""
        self._spool.mkdir(mode=0o700, exist_ok=True)
        found = sorted(self._spool.glob(f"*{TAKEN}"))
        for path in found:
            path.rename(path.with_suffix(".payload"))
        return bool(found)
