"""The store of lessons: errors that were fixed once, found again by shape, words and meaning."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from coherence.core.protocols import Embedder
from coherence.core.reentrancy import Entered, do_later, is_inside
from coherence.core.validation import check_count, check_flag, check_items, check_number, check_text, clean, shown
from coherence.lessons import table
from coherence.lessons.candidates import all_hits, equal_hits
from coherence.lessons.errors import LessonError
from coherence.lessons.intake import make_new, own_cache, safe_ends
from coherence.lessons.names import asked_names
from coherence.lessons.normal import normalise
from coherence.lessons.qdrant import QdrantIndex
from coherence.lessons.ranking import rank
from coherence.lessons.records import Lesson, LessonStats, Origin
from coherence.lessons.reindex import any_outdated, renew
from coherence.lessons.search import LOG, Searching
from coherence.lessons.table import New
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.store import Store

CAP = 1_000_000
"""Lessons that are kept by default."""

OUTDATED = (
    "coherence: %s: lessons of another version of this package are found by names and meaning only, and counted apart; "
    "run `coherence lessons rebuild`"
)


class LessonStore:
    """Errors and what fixed them, for many threads and processes at once.

    Every lesson that :meth:`record` has acknowledged is in SQLite; the vector index is derived from it.

    Parameters
    ----------
    store : path or Store
        The file, made if missing. A :class:`~coherence.store.store.Store` (such as ``monitor.store``) shares its file.
        With a path, lessons survive a kill of the process; to survive power cuts pass a ``Store``, which waits for the
        disk.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped MiniLM model. An embedder needs a ``fingerprint``. ``False``: lessons are found by equal
        signature only.
    cap : int
        Largest number of lessons, 1 or more; default 1,000,000. Beyond it, the lessons that were unused for longest are
        removed, a hundredth at a time. A lesson is used when it is recorded and when it has helped.
    index : QdrantIndex, optional
        An index on a server, for a fleet. Default: an index in this process and in a file beside the store.
    timeout_s : float
        Seconds that embedding one text may take.
    wait_s : float
        Longest wait for threads and processes that write, in seconds.
    rebuild : bool
        Call :meth:`rebuild` if there is anything to rebuild; vectors of another model are then no error.

    Raises
    ------
    EmbedderMismatchError
        The lessons were embedded by another model.
    StoreError
        The file cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with LessonStore(f"{folder.name}/lessons.db") as store:
    ...     id = store.record(
    ...         pattern="ModuleNotFound",
    ...         error_text="ModuleNotFoundError: No module named 'pkg_resources'",
    ...         fix_text="pip install setuptools",
    ...         tool="Bash",
    ...     )
    ...     [lesson.fix_text for lesson in store.query("No module named pkg_resources", tool="Bash")]
    ['pip install setuptools']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        store: str | Path | Store,
        *,
        embedder: Embedder | EmbeddingCache | Literal[False] | None = None,
        cap: int = CAP,
        index: QdrantIndex | None = None,
        timeout_s: float = 2.0,
        wait_s: float = 2.0,
        rebuild: bool = False,
    ) -> None:
        if not isinstance(store, str | Path | Store):
            raise TypeError(f"store must be a path or a Store, not {shown(store)}")
        self.cap = check_count("cap", cap, least=1)
        timeout_s = check_number("timeout_s", timeout_s, least=0.0)
        self._wait_s = check_number("wait_s", wait_s, least=0.0)
        check_flag("rebuild", rebuild)
        cache = own_cache(embedder)
        if index is not None and cache is not None and index.dimensions != cache.embedder.dimensions:
            raise ValueError(f"index must have {cache.embedder.dimensions} dimensions, not {index.dimensions}")
        self._owns = not isinstance(store, Store)
        self.store = store if isinstance(store, Store) else Store(store, synchronous="NORMAL")
        """The file; what else is in it is not touched."""
        self._searching: Searching | None = None
        self.closed = False
        try:
            if cache is not None:
                self._searching = Searching(self.store, cache, index, timeout_s)
            self._check(rebuild)
        except BaseException:
            if self._owns:
                self.store.close()
            raise

    def _check(self, rebuild: bool) -> None:
        """Rebuild if that is wanted and due; else raise if it must be done first, and say so if it should be."""
        searching, outdated = self._searching, any_outdated(self.store)
        if not rebuild:
            if searching is not None:
                searching.check(table.read_state(self.store))
            if outdated:
                LOG.warning(OUTDATED, self.store.path)
        elif outdated or (searching is not None and searching.any_missing()):
            self.rebuild()

    def record(
        self,
        *,
        pattern: str,
        error_text: str,
        fix_text: str,
        tool: str = "",
        origin: Origin | None = None,
        ts: float | None = None,
    ) -> int:
        """Keep a lesson, or count it once more if one of equal shape, names, tool and fix is known.

        Parameters
        ----------
        pattern : str
            A short name of the kind of error.
        error_text : str
            What was printed, of any length; secrets are redacted.
        fix_text : str
            What helped: a command, or an edit in words.
        tool : str
            The tool that failed.
        origin : Origin, optional
            The events it was learned from; the same events count once.
        ts : float, optional
            Unix time in seconds; default: now.

        Returns
        -------
        int
            The lesson's id; 0 if somebody has removed the lesson that was learned from the events of ``origin``, or if
            the lesson is kept later, because a finalizer or a signal handler interrupts a call of this package.

        Raises
        ------
        TypeError, ValueError
            For a bad argument, which the message names; an error or a fix must have a visible character.
        StoreError
            The file cannot be written; nothing was kept.
        """
        new = make_new(pattern=pattern, error_text=error_text, fix_text=fix_text, tool=tool, origin=origin, ts=ts)
        if is_inside() and self.store.in_transaction:
            do_later(lambda: self.add([new]))
            return 0
        return self.add([new])[0]

    def add(self, lessons: Sequence[New], *, merge: bool = False) -> list[int]:
        """Keep many lessons in one transaction; return their ids.

        A lesson that has a vector is not embedded again. A lesson that cannot be embedded now is kept without a vector.
        If a lesson is known, its counts are added; with ``merge``, the larger of both is kept.
        """
        searching = self._usable()
        made = [(new, None if searching is None else searching.vector(new)) for new in lessons]
        ids = []
        with Entered(), self.store.transaction(timeout_s=self._wait_s) as transaction:
            for new, vector in made:
                id = (table.merge if merge else table.add)(transaction, new, self.cap)
                ids.append(id)
                if vector is None or searching is None or not id:
                    continue
                if searching.claim(transaction):  # else embedded anew meanwhile by another model
                    table.add_vector(transaction, id, vector)
        return ids

    def query(self, text: str, *, tool: str | None = None, k: int = 3, least: float | None = None) -> list[Lesson]:
        """Return the lessons whose error is like this one, the best first; an empty list if none is.

        An equal signature is looked up without embedding anything. Otherwise the nearest lessons by meaning are
        compared word by word.

        Parameters
        ----------
        text : str
            An error as it was printed, or somebody's description of one.
        tool : str, optional
            The tool that failed; lessons of the same tool rank a little higher.
        k : int
            Largest number of lessons to return, 1 or more.
        least : float, optional
            Similarity in [0, 1] below which a lesson is left out; default: 0.35 for an error, 0.1 for a description.

        Raises
        ------
        TypeError, ValueError
            For a bad argument.
        StoreError
            The file cannot be read.
        """
        text = check_text("text", text)
        k = check_count("k", k, least=1)
        if least is not None:
            least = check_number("least", least, least=0.0, most=1.0)
        if tool is not None:
            tool = check_text("tool", tool)
        question = safe_ends(text)
        asked = normalise(question)
        searching = self._usable()
        if not asked.text.strip():
            return []
        found: list[Lesson] = []
        names = asked_names(asked, question)
        state = table.read_state(self.store)
        if not asked.prose and not asked.weak:
            found = rank(asked, question, tool, equal_hits(self.store, asked, names), k, least)
        if not found:
            found = rank(asked, question, tool, all_hits(self.store, searching, asked, names, state), k, least)
        return found

    def outcome(self, lesson_id: int, *, helped: bool, origin: str | None = None) -> None:
        """Record whether a lesson's fix helped; a lesson that keeps failing ranks lower, and is finally retired.

        Raises
        ------
        LessonError
            There is no such lesson.
        """
        self._usable()
        lesson_id = check_count("lesson_id", lesson_id)
        check_flag("helped", helped)
        if origin is not None:
            origin = clean(check_text("origin", origin, empty=False))
        if is_inside() and self.store.in_transaction:
            do_later(lambda: self.outcome(lesson_id, helped=helped, origin=origin))
            return
        with Entered(), self.store.transaction(timeout_s=self._wait_s) as transaction:
            if not table.add_outcome(transaction, lesson_id, helped=helped, ts=time.time(), origin=origin):
                raise LessonError(f"{self.store.path}: there is no lesson {lesson_id}")

    def get(self, lesson_id: int) -> Lesson | None:
        """Return a lesson and where it was learned, ``None`` if no lesson has this id."""
        self._usable()
        lesson_id = check_count("lesson_id", lesson_id)
        return table.read_whole(self.store, lesson_id)

    def lessons(self, *, limit: int | None = None, pattern: str | None = None) -> Iterator[Lesson]:
        """Yield lessons, the most recently used first; a lesson that is used meanwhile may be left out."""
        self._usable()
        if limit is not None:
            limit = check_count("limit", limit)
        if pattern is not None:
            pattern = check_text("pattern", pattern)
        return table.walk(self.store, limit=limit, pattern=pattern)

    def remove(self, lesson_ids: Sequence[int]) -> int:
        """Remove lessons; return how many existed. They are not learned again from the same events."""
        self._usable()
        ids = [check_count("lesson_ids", id) for id in check_items("lesson_ids", lesson_ids)]
        with Entered(), self.store.transaction(timeout_s=self._wait_s) as transaction:
            return sum(table.remove(transaction, id) for id in ids)

    def prune(self, *, keep: int | None = None, retired: bool = False) -> int:
        """Remove all but the ``keep`` most recently used lessons, and with ``retired`` those that are retired.

        Returns
        -------
        int
            How many were removed.
        """
        self._usable()
        most = None if keep is None else check_count("keep", keep)
        with Entered(), self.store.transaction(timeout_s=self._wait_s) as transaction:
            return table.prune(transaction, keep=most, retired=check_flag("retired", retired))

    def rebuild(self) -> int:
        """Migrate all lessons to this version and model, and make the index again.

        Lessons from another version of this package are derived anew from their errors, and equal ones are merged.
        Every lesson is embedded whose vector is missing, of another model or of another text.

        Returns
        -------
        int
            How many were embedded. A lesson on which the embedder fails has no vector, and is found by signature only.
        """
        searching = self._usable()
        renewed = renew(self.store)
        if searching is None and not renewed:
            raise LessonError("embedder=False: there is nothing to rebuild without an embedder")
        return searching.rebuild() if searching is not None else 0

    def stats(self) -> LessonStats:
        """Return what the store holds."""
        searching = self._usable()
        followed = searching.followed() if searching is not None else None
        state = table.read_state(self.store)
        retired, outcomes, helped, vectors = table.count_records(self.store)
        return LessonStats(
            lessons=state.count,
            cap=self.cap,
            retired=retired,
            outcomes=outcomes,
            helped=helped,
            embedder=state.fingerprint,
            vectors=vectors,
            tier=followed.tier if followed is not None else "none",
            index_memory_bytes=followed.memory_bytes if followed is not None else 0,
            index_disk_bytes=followed.disk_bytes if followed is not None else 0,
            by_meaning=followed is not None,
        )

    def close(self) -> None:
        """Close the file if this object opened it; calling it again does nothing."""
        if not self.closed and self._owns:
            self.store.close()
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _usable(self) -> Searching | None:
        if self.closed:
            raise LessonError(f"{self.store.path}: this LessonStore is closed")
        return self._searching
