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
from coherence.lessons.index.base import Found, IndexStats, Mark, best_first, unit_query, unit_rows

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
        self._dimensions = dimensions
        self._models: Any = _package().models
        self._client: Any = _client(where)
        self._fingerprint = fingerprint
        self._made: set[str] = set()

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""
        return self._dimensions

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors; see :meth:`VectorIndex.add`. A failing server may have taken some: add them again."""
        given = np.asarray(ids, np.int64)
        rows = unit_rows(vectors, (len(given), self.dimensions))
        with _asking():
            for start in range(0, len(given), BATCH):
                part = slice(start, start + BATCH)
                batch = self._models.Batch(ids=given[part].tolist(), vectors=rows[part].tolist())
                self._client.upsert(self._collection(), batch)

    def remove(self, ids: npt.ArrayLike) -> None:
        """Remove vectors; ids that are not there are skipped."""
        given = np.asarray(ids, np.int64)
        with _asking():
            for start in range(0, len(given), BATCH):
                self._client.delete(self._collection(), given[start : start + BATCH].tolist())

    def search(self, vector: npt.ArrayLike, k: int) -> Found:
        """Return at most ``k`` ids and cosines, best first, equal ones by id; see :meth:`VectorIndex.search`."""
        query = unit_query(vector, self.dimensions).tolist()
        with _asking():
            answer = self._client.query_points(self._collection(), query=query, limit=k, with_payload=False).points
        ids = np.array([point.id for point in answer], np.int64)
        return best_first(ids, np.array([point.score for point in answer], np.float32), k)

    def save(self, path: Path, mark: Mark) -> bool:
        """Keep the mark on the server; ``path`` is not used."""
        del path
        payload = {"fingerprint": mark.fingerprint, "lesson": mark.lesson, "removal": mark.removal}
        with _asking():
            point = self._models.PointStruct(id=_number(mark.fingerprint), vector=[1.0], payload=payload)
            self._client.upsert(self._ready(MARKS, 1), [point])
        return True

    def load(self, path: Path, fingerprint: str) -> Mark | None:
        """Use the collection of a fingerprint and return the mark that was saved with it; ``path`` is not used."""
        del path
        self._fingerprint = fingerprint
        with _asking():
            known = self._client.collection_exists(_name(fingerprint))
            found = self._client.retrieve(self._ready(MARKS, 1), [_number(fingerprint)]) if known else []
        if not found:
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
