"""Reading a store on a thread of its own, again whenever something was written, so that the screen never waits."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from coherence.core.errors import CoherenceError

if TYPE_CHECKING:  # loaded by the thread, after the first picture
    from coherence.store.store import Store
    from coherence.views.views import Views

POLL_S = 0.1
"""Seconds between looks whether there are new events."""

REST = 3.0
"""Rest after following, as a multiple of what it took: a busy store costs at most a quarter of a core."""

MOST_REST_S = 2.0
STALE_S = 10.0
"""Seconds after which even without new events it is read again: an agent that is silent is no longer live."""

MISSING = "missing"
"""Trouble: there is no file."""

Question: TypeAlias = "Callable[[Views], Any]"


class Answer(msgspec.Struct, frozen=True):
    """Answer to a question."""

    name: str
    value: Any = None
    error: str = ""
    """Reason why there is none; :data:`MISSING` for all questions if there is no store."""


MAGIC = b"SQLite format 3\x00"
"""Beginning of every store."""


def is_store(path: Path) -> bool:
    """Tell whether a file may be a store, without opening it as one, which would make a store of an empty file."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def file_id(path: Path) -> tuple[int, int] | None:
    """Return which file is at a path, ``None`` = none is."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


class _Asked(msgspec.Struct):
    question: Question
    follow: bool
    seen: int = -1
    """Newest event when it was answered last; -1: it was not."""
    at: float = 0.0


class Reader:
    """Answers questions about a store, each again after new events.

    Parameters
    ----------
    path : Path
        The store, which may come later; it is never made here.
    tell : callable
        Takes each answer, on the thread that reads.
    views : Views, optional
        Of the store, where it is open already; they are closed with the reader.
    """

    def __init__(self, path: Path, tell: Callable[[Answer], None], views: Views | None = None) -> None:
        self.path = path
        self._tell = tell
        self._asked: dict[str, _Asked] = {}
        self._acts: list[tuple[str, Callable[[Store], str]]] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._views = views
        self._file = None if views is None else file_id(path)
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="coherence-watch", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """End reading; a question that takes longer is left behind."""
        self._closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def ask(self, name: str, question: Question, *, follow: bool = True) -> None:
        """Ask a question in place of the one that had its name.

        Parameters
        ----------
        name : str
            Name of its answers.
        question : callable
            Takes the views of the store and returns the answer.
        follow : bool
            Ask again after each change.
        """
        with self._lock:
            self._asked[name] = _Asked(question, follow)
        self._wake.set()

    def drop(self, *names: str) -> None:
        """Ask no more."""
        with self._lock:
            for name in names:
                self._asked.pop(name, None)

    def act(self, name: str, action: Callable[[Store], str]) -> None:
        """Change the store; the answer is what the action returns. All questions are asked again afterwards."""
        with self._lock:
            self._acts.append((name, action))
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._closed:
                rest = self._round()
                # a new question wakes it at once, whatever the rest
                self._wake.wait(max(POLL_S, rest))
                self._wake.clear()
        finally:
            self._shut()

    def _round(self) -> float:
        """Do what is due, and return for how long to rest."""
        started = time.monotonic()
        try:
            views = self._opened()
            if views is None:
                return POLL_S
            self._change()
            newest = views.newest()
            for name, asked in self._due(newest):
                self._answer(name, asked, views, newest)
        except (CoherenceError, sqlite3.Error, OSError, ValueError) as error:
            self._report(f"{self.path}: {error}")
            self._shut()
            return 1.0
        return min((time.monotonic() - started) * REST, MOST_REST_S)

    def _due(self, newest: int) -> list[tuple[str, _Asked]]:
        now = time.monotonic()
        with self._lock:
            return [
                (name, asked)
                for name, asked in self._asked.items()
                if asked.seen == -1 or (asked.follow and (asked.seen != newest or now - asked.at > STALE_S))
            ]

    def _answer(self, name: str, asked: _Asked, views: Views, newest: int) -> None:
        try:
            answer = Answer(name, asked.question(views))
        except LookupError as error:
            answer = Answer(name, error=str(error.args[0] if error.args else error))
        asked.seen, asked.at = newest, time.monotonic()
        with self._lock:
            wanted = self._asked.get(name) is asked
        if wanted:
            self._tell(answer)

    def _change(self) -> None:
        with self._lock:
            acts, self._acts = self._acts, []
        if not acts:
            return
        from coherence.store.store import Store

        for name, action in acts:
            try:
                store = Store(self.path, recovers=False)
                try:
                    self._tell(Answer(name, action(store)))
                finally:
                    store.close()
            except (CoherenceError, sqlite3.Error, OSError, ValueError, LookupError) as error:
                self._tell(Answer(name, error=str(error)))
        with self._lock:
            for asked in self._asked.values():
                asked.seen = -1

    def _opened(self) -> Views | None:
        """Return the views of the file that is at the path now, ``None`` if there is none that can be read."""
        file = file_id(self.path)
        if file != self._file:
            self._shut()
        if file is None:
            self._report(MISSING)
            return None
        if self._views is None:
            if not is_store(self.path):
                from coherence.store.open import HEADER_BYTES, kind_in_words

                with self.path.open("rb") as opened:
                    kind = kind_in_words(opened.read(HEADER_BYTES))
                self._report(f"{self.path}: not a store of this package, but {kind}")
                return None
            from coherence.views.views import Views

            self._views, self._file = Views(self.path), file
            self._trouble = ""
            with self._lock:
                for asked in self._asked.values():
                    asked.seen = -1
        return self._views

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._tell(Answer(TROUBLE, error=trouble))

    def _shut(self) -> None:
        if self._views is not None:
            self._views.close()
            self._views = None
        self._file = None


TROUBLE = "trouble"
"""Name of the answer that says that the store cannot be read."""
