"""The index of lessons on a Qdrant server, which the agents of a fleet share; through the extra of that name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coherence.core.errors import CoherenceError, MissingExtraError
from coherence.core.vectors import Half, to_unit

INSTALL = '  pip install "coherence-sensor[qdrant]"'

BATCH = 250
"""Points in one request: a server takes 32 MB, and 250 vectors of 3,072 dimensions are 16 MB."""

MARK = 0
"""Id of the point that says how far a collection has come; lessons are numbered from 1."""


class IndexServerError(CoherenceError):
    """The server of an index cannot be reached or refuses what was asked."""


class QdrantIndex:
    """Finds the lessons whose vectors are nearest on a Qdrant server, or in Qdrant's local mode.

    There is one collection for each owner, named ``coherence_lessons_`` and a hash of it. What is added is on the
    server at once. A lesson that was removed is found until the collection is made again; whoever asks leaves it out.

    Parameters
    ----------
    dimensions : int
        Length of the vectors, 1 or above.
    where : str, Path or qdrant_client.QdrantClient
        The URL of a server, a folder or ``":memory:"`` for the local mode, or a client of your own (API key, gRPC, …).

    Raises
    ------
    MissingExtraError
        If qdrant-client is not installed; the message holds the install line.
    IndexServerError
        From any method, if the server does not do what it is asked. What it has taken in by then may be added again.

    Examples
    --------
    >>> index = QdrantIndex(2, ":memory:").load("bench")
    >>> index.add([7, 9], np.array([[3.0, 4.0], [1.0, 0.0]]), newest=2)
    >>> [(id, round(cosine, 3)) for id, cosine in index.search(np.array([0.6, 0.8], np.float16), k=1)]
    [(7, 1.0)]
    >>> index.close()
    """

    tier = "remote"
    memory_bytes = disk_bytes = 0

    def __init__(self, dimensions: int, where: object) -> None:
        try:
            import qdrant_client
        except ImportError as error:
            raise MissingExtraError("qdrant-client", INSTALL) from error
        if isinstance(where, str) and (where == ":memory:" or "://" in where):
            where = qdrant_client.QdrantClient(location=where)
        elif isinstance(where, str | Path):
            where = qdrant_client.QdrantClient(path=str(where))
        elif not hasattr(where, "query_points"):
            raise TypeError(f"where must be a URL, a folder, ':memory:' or a QdrantClient, not {where!r}")
        self._client: Any = where
        self._models: Any = qdrant_client.models
        self._collection = ""
        self._count = 0
        self.dimensions = dimensions
        self.owner = ""
        self.newest = 0
        """Number of the newest vector that was taken in."""

    def __len__(self) -> int:
        return self._count

    def load(self, owner: str) -> Self:
        """Go on with the collection of an owner, which is made if it is missing."""
        collection = _collection(owner)
        config = self._models.VectorParams(size=self.dimensions, distance=self._models.Distance.COSINE)
        with _asking():
            try:
                self._client.create_collection(collection, config)
            except Exception:  # mostly it is there already
                if not self._client.collection_exists(collection):
                    raise
            marks = self._client.retrieve(collection, [MARK])
        mark = marks[0].payload if marks else {"newest": 0, "count": 0}
        self.owner, self._collection = owner, collection
        self.newest, self._count = int(mark["newest"]), int(mark["count"])
        return self

    def clear(self, owner: str) -> Self:
        """Begin the collection of an owner again."""
        with _asking():
            self._client.delete_collection(_collection(owner))
        return self.load(owner)

    def add(self, ids: Iterable[int], vectors: npt.NDArray[Any], newest: int) -> None:
        """Take in vectors ``(n, d)``, the last of which has the number ``newest``; a damaged one is near to nothing."""
        rows = np.nan_to_num(vectors.astype(np.float32), posinf=0.0, neginf=0.0).tolist()
        points = [self._models.PointStruct(id=id, vector=row) for id, row in zip(ids, rows, strict=True)]
        count = self._count + len(points)
        mark = {"owner": self.owner, "newest": newest, "count": count}
        points.append(self._models.PointStruct(id=MARK, vector=[1.0] * self.dimensions, payload=mark))
        with _asking():
            for start in range(0, len(points), BATCH):  # the mark is the last of all
                self._client.upsert(self._collection, points[start : start + BATCH])
        self.newest, self._count = newest, count

    def search(self, vector: Half, k: int) -> list[tuple[int, float]]:
        """Return at most ``k`` ids and cosines, the nearest first, equal ones by id."""
        query = to_unit(vector).tolist()
        with _asking():  # for one more, as the mark may be among them
            answer = self._client.query_points(self._collection, query=query, limit=k + 1, with_payload=False).points
        found = [(int(point.id), min(max(float(point.score), -1.0), 1.0)) for point in answer if point.id != MARK]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]

    def close(self) -> None:
        """Close the client, also one that was passed in."""
        self._client.close()


def _collection(owner: str) -> str:
    return f"coherence_lessons_{hashlib.blake2b(owner.encode(errors='surrogatepass'), digest_size=8).hexdigest()}"


@contextmanager
def _asking() -> Iterator[None]:
    """Turn whatever the client raises, which depends on how it talks to the server, into one error."""
    try:
        yield
    except Exception as error:
        raise IndexServerError(f"the Qdrant server does not do what it was asked: {error}") from error
