"""The index on a Qdrant server, which the agents of a fleet share; through the extra of that name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.lessons.index.base import (
    Found,
    Ids,
    IndexMismatch,
    IndexStats,
    Mark,
    check_absent,
    check_dimensions,
    check_ids,
    check_k,
    new_rows,
    unit_query,
)

INSTALL = '  pip install "coherence-sensor[qdrant]"'

BATCH = 1_000
"""Points in one request."""

PREFIX = "coherence_lessons_"

MARKS = f"{PREFIX}marks"
"""The collection that holds one mark for each of the others."""


class IndexServerError(CoherenceError):
    """The server of a remote index cannot be reached or refuses what was asked."""


class QdrantIndex:
    """Finds the nearest vectors on a Qdrant server, or in Qdrant's local mode.

    There is one collection for each fingerprint, named ``coherence_lessons_`` and a hash of it. What is added is on the
    server at once; :meth:`save` and :meth:`load` keep only the mark, also there.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.
    where : str, Path or qdrant_client.QdrantClient
        The URL of a server, a folder or ``":memory:"`` for the local mode, or a client of your own (API key, gRPC, …).
    fingerprint : str, default ""
        Whose vectors are added before the first :meth:`load`, which chooses the collection anew.

    Raises
    ------
    MissingExtraError
        If qdrant-client is not installed; the message holds the install line.

    Examples
    --------
    >>> index = QdrantIndex(2, ":memory:")
    >>> index.add([7, 9], [[3.0, 4.0], [1.0, 0.0]])
    >>> index.search([0.6, 0.8], k=1)[0].tolist()
    [7]
    >>> index.close()
    """

    def __init__(self, dimensions: int, where: object, fingerprint: str = "") -> None:
        self._dimensions = check_dimensions(dimensions)
        self._models: Any = _package().models
        self._client: Any = _client(where)
        self._fingerprint = fingerprint
        self._made: set[str] = set()

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._dimensions

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors; see :meth:`VectorIndex.add`. A failing server may have taken some: ask :meth:`missing`."""
        given, rows = new_rows(ids, vectors, self.dimensions)
        check_absent(np.setdiff1d(given, self.missing(given)))
        with _asking():
            for start in range(0, len(given), BATCH):
                part = slice(start, start + BATCH)
                wide = rows[part].astype(np.float32).tolist()
                self._client.upsert(self._collection(), self._models.Batch(ids=given[part].tolist(), vectors=wide))

    def remove(self, ids: npt.ArrayLike) -> int:
        """Remove vectors and return how many of the ids were there."""
        given = check_ids(ids)
        there = np.setdiff1d(given, self.missing(given))
        with _asking():
            for start in range(0, len(there), BATCH):
                self._client.delete(self._collection(), there[start : start + BATCH].tolist())
        return len(there)

    def missing(self, ids: npt.ArrayLike) -> Ids:
        """Return those of the ids that are not in the index, in their order."""
        given = check_ids(ids)
        known: list[int] = []
        with _asking():
            for start in range(0, len(given), BATCH):
                asked = given[start : start + BATCH].tolist()
                known.extend(point.id for point in self._client.retrieve(self._collection(), asked, with_payload=False))
        return given[~np.isin(given, np.array(known, np.int64))]

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first, equal ones by id; see :meth:`VectorIndex.search`."""
        query, wanted = unit_query(vector, self.dimensions), check_k(k)
        with _asking():
            answer = self._client.query_points(
                self._collection(), query=query.tolist(), limit=wanted, with_payload=False
            ).points
        ids = np.array([point.id for point in answer], np.int64)
        cosines = np.array([point.score for point in answer], np.float32).clip(-1.0, 1.0)
        order = np.lexsort((ids, -cosines))
        return ids[order], cosines[order]

    def save(self, path: Path, mark: Mark) -> None:
        """Keep the mark on the server; ``path`` is not used.

        Raises
        ------
        IndexMismatch
            If the mark is of another embedder than the vectors.
        """
        del path
        if (mark.fingerprint, mark.dimensions) != (self._fingerprint, self.dimensions):
            raise IndexMismatch(_name(self._fingerprint), self._fingerprint, mark.fingerprint)
        payload = {"fingerprint": mark.fingerprint, "lesson": mark.lesson, "removal": mark.removal}
        with _asking():
            point = self._models.PointStruct(id=_number(mark.fingerprint), vector=[1.0], payload=payload)
            self._client.upsert(self._ready(MARKS, 1), [point])

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Use the collection of a fingerprint and return the mark that was saved with it; ``path`` is not used.

        Raises
        ------
        IndexMismatch
            If that collection holds vectors of another length.
        """
        del path
        with _asking():
            length = self._length(_name(fingerprint))
            if length not in (None, self.dimensions):
                there = f"{fingerprint} ({length} dimensions)"
                raise IndexMismatch(_name(fingerprint), there, f"{fingerprint} ({self.dimensions} dimensions)")
            self._fingerprint = fingerprint
            found = self._client.retrieve(self._ready(MARKS, 1), [_number(fingerprint)])
        if length is None or not found:
            return None
        return Mark(fingerprint, self.dimensions, int(found[0].payload["lesson"]), int(found[0].payload["removal"]))

    def stats(self) -> IndexStats:
        """Return the count; nothing of a remote index lies in this process."""
        with _asking():
            return IndexStats("remote", self._client.count(self._collection(), exact=True).count, 0, 0)

    def close(self) -> None:
        """Close the client, also one that was passed in."""
        self._client.close()

    def _collection(self) -> str:
        return self._ready(_name(self._fingerprint), self.dimensions)

    def _ready(self, name: str, dimensions: int) -> str:
        """Return the name of a collection that is there; another process may make it at the same moment."""
        if name not in self._made and not self._client.collection_exists(name):
            config = self._models.VectorParams(size=dimensions, distance=self._models.Distance.COSINE)
            try:
                self._client.create_collection(name, config)
            except Exception:
                if not self._client.collection_exists(name):
                    raise
        self._made.add(name)
        return name

    def _length(self, name: str) -> int | None:
        """Return the length of the vectors of a collection, ``None`` if there is no such collection."""
        if not self._client.collection_exists(name):
            return None
        return int(self._client.get_collection(name).config.params.vectors.size)


def _package() -> Any:
    try:
        import qdrant_client
    except ImportError as error:
        raise MissingExtraError("qdrant-client", INSTALL) from error
    return qdrant_client


def _client(where: object) -> Any:
    if isinstance(where, str) and (where == ":memory:" or "://" in where):
        return _package().QdrantClient(location=where)
    if isinstance(where, str | Path):
        return _package().QdrantClient(path=str(where))
    if not hasattr(where, "query_points"):
        raise TypeError(f"where must be a URL, a folder, ':memory:' or a QdrantClient, not {where!r}")
    return where


def _name(fingerprint: str) -> str:
    return f"{PREFIX}{_number(fingerprint):016x}"


def _number(fingerprint: str) -> int:
    """Return the id of a fingerprint's mark: 63 bits, as Qdrant's ids may be 64 bits without a sign."""
    data = fingerprint.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 1


@contextmanager
def _asking() -> Iterator[None]:
    """Turn whatever the client raises, which depends on how it talks to the server, into one error."""
    try:
        yield
    except CoherenceError:
        raise
    except Exception as error:
        raise IndexServerError(f"the Qdrant server does not do what it was asked: {error}") from error
