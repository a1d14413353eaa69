"""The shipped model is loaded while the first events arrive, once, and for those alone who may need it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from coherence import EmbeddingCache, Monitor
from coherence.core.errors import ModelError
from coherence.monitor.loading import ModelLoader
from coherence.providers import HashingEmbedder, MiniLMEmbedder, minilm
from monitor.helpers import until


class User:
    closed = False


class Subclass(MiniLMEmbedder):
    pass


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> tuple[Event, Event]:
    """Loading that tells when it has begun, and goes on when it is told to."""
    begun, go_on = Event(), Event()

    def load(_: MiniLMEmbedder) -> None:
        begun.set()
        assert go_on.wait(20)

    monkeypatch.setattr(MiniLMEmbedder, "load", load)
    return begun, go_on


def test_model_loader_the_first_event_of_a_monitor_has_the_model_loaded() -> None:
    embedder = MiniLMEmbedder()
    with Monitor(embedder=embedder) as m:
        assert not embedder.is_loaded
        m.message("user", "Fix the login bug")  # of a user: nothing is measured
        until(lambda: embedder.is_loaded)
        assert m.result is None


@pytest.mark.parametrize("cache", [None, EmbeddingCache(HashingEmbedder()), EmbeddingCache(Subclass())])
def test_model_loader_loads_the_shipped_model_alone(cache: EmbeddingCache | None) -> None:
    loader = ModelLoader()
    loader.add(cache, User())
    assert not loader._waiting


@pytest.mark.parametrize("gone", [False, True])
def test_model_loader_nothing_is_loaded_for_a_user_that_is_closed_or_gone(gone: bool) -> None:
    loader, embedder, user = ModelLoader(), MiniLMEmbedder(), User()
    loader.add(EmbeddingCache(embedder), user)
    user.closed = not gone
    if gone:
        del user
    loader.work()
    assert loader._thread is None and not embedder.is_loaded


def test_model_loader_an_error_is_raised_where_something_is_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minilm, "MODELS", tmp_path)
    loader, embedder, user = ModelLoader(), MiniLMEmbedder(), User()
    loader.add(EmbeddingCache(embedder), user)
    loader.work()
    loader.finish()
    with pytest.raises(ModelError, match="it cannot be read"):
        embedder.embed("hello")


@pytest.mark.parametrize("wait", [ModelLoader.before_fork, ModelLoader.finish])
def test_model_loader_a_fork_and_the_end_of_the_process_wait_for_a_model_that_is_half_loaded(
    wait: object, slow: tuple[Event, Event]
) -> None:
    begun, go_on = slow
    loader, user = ModelLoader(), User()
    loader.add(EmbeddingCache(MiniLMEmbedder()), user)
    loader.work()
    assert begun.wait(20) and callable(wait)
    waiting = Thread(target=wait, args=(loader,))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    go_on.set()
    waiting.join(20)
    assert not waiting.is_alive()
    if wait is ModelLoader.before_fork:  # else the background thread of this process waits for ever
        loader.after_fork_in_parent()


def test_model_loader_begins_nothing_after_the_end() -> None:
    loader, user = ModelLoader(), User()
    loader.finish()
    loader.add(EmbeddingCache(MiniLMEmbedder()), user)
    loader.work()
    assert loader._thread is None


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.12, 0.2, 0.3, 0.4, 0.6])
def test_model_loader_a_process_may_end_whatever_is_being_loaded(pause: float) -> None:
    code = f"import time, coherence\nm = coherence.Monitor(goal='Fix the bug')\ntime.sleep({pause})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
