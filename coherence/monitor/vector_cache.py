"""Vectors that outlive the process: kept in the store, beside the events they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

from coherence.store.store import Store

READ_AT_ONCE = 500


class StoreBook:
    """A store's vectors, for an embedding cache; what is new waits until it is written with its events.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._new: dict[str, dict[bytes, bytes]] = {}

    def read(self, fingerprint: str, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return the vectors that are known."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            new = self._new.get(fingerprint, {})
            found.update((digest, new[digest]) for digest in digests if digest in new)
        rest = [digest for digest in digests if digest not in found]
        for at in range(0, len(rest), READ_AT_ONCE):
            found.update(self._store.vectors(fingerprint, rest[at : at + READ_AT_ONCE]))
        return found

    def write(self, fingerprint: str, digest: bytes, vector: bytes) -> None:
        """Note a new vector."""
        with self._lock:
            self._new.setdefault(fingerprint, {})[digest] = vector

    def take(self) -> dict[str, dict[bytes, bytes]]:
        """Return what is new; :meth:`written` forgets it once it is safe."""
        with self._lock:
            return {fingerprint: dict(vectors) for fingerprint, vectors in self._new.items()}

    def after_fork(self) -> None:
        """Begin anew in a child; what is new may be written by both."""
        self._lock = Lock()

    def written(self, taken: Mapping[str, Mapping[bytes, bytes]]) -> None:
        """Forget what has been written."""
        with self._lock:
            for fingerprint, vectors in taken.items():
                for digest in vectors:
                    self._new[fingerprint].pop(digest, None)
