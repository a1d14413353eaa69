"""The shipped model, loaded on a thread of its own while a monitor's first events arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import Protocol
from weakref import ref

from coherence.core.reentrancy import Entered
from coherence.monitor.background import BACKGROUND, FORK_WAIT_S
from coherence.providers.minilm import MiniLMEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache

LOAD_AFTER_S = 0.1
"""Seconds from the first event to loading: who asks about one call has closed the monitor by then."""


class ModelUser(Protocol):
    """Interface of what a model is loaded for: a worker."""

    closed: bool


class ModelLoader:
    """Background job that loads models; it starts a thread, so that the other jobs go on."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[MiniLMEmbedder, ref[ModelUser]]] = deque()
        self._starting = Lock()
        self._thread: Thread | None = None
        self._ended = False

    def add(self, cache: EmbeddingCache | None, user: ModelUser) -> None:
        """Have the model of a cache loaded soon, if it is the shipped one, unless its user is closed by then."""
        embedder = cache.embedder if cache is not None else None
        # exactly this: a subclass may do anything
        if type(embedder) is MiniLMEmbedder and not embedder.is_loaded:
            self._waiting.append((embedder, ref(user)))
            BACKGROUND.call(self, LOAD_AFTER_S)

    def work(self) -> None:
        """Begin to load what is still wanted."""
        wanted: set[MiniLMEmbedder] = set()
        while self._waiting:
            embedder, user = self._waiting.popleft()
            if (known := user()) is not None and not known.closed and not embedder.is_loaded:
                wanted.add(embedder)
        with self._starting:
            if wanted and not self._ended:
                self._thread = Thread(target=_load, args=(wanted,), name="coherence-loading", daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Wait for what is being loaded: native code must not run on while the interpreter goes."""
        with self._starting:
            self._ended = True
        self._wait()

    def _wait(self, timeout_s: float | None = None) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def before_fork(self) -> None:
        """Hold still: a child must not inherit a model that is half loaded, or the lock on it."""
        self._starting.acquire()
        self._wait(FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._starting.release()

    def after_fork_in_child(self) -> None:
        """Begin anew: the thread is not there."""
        self.__init__()  # type: ignore[misc]  # everything is as at the beginning


def _load(embedders: Iterable[MiniLMEmbedder]) -> None:
    with Entered():
        for embedder in embedders:
            with suppress(Exception):  # raised again for whoever embeds first
                embedder.load()


MODELS = ModelLoader()
BACKGROUND.known.add(MODELS)
