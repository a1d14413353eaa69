"""Bounded, in one process and after a fork."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from coherence import CoherenceSensor, EmbeddingCache
from coherence.providers import HashingEmbedder, StaticState


class Instant:
    """Any vector at once."""

    dimensions = 32

    def embed(self, text: str) -> np.ndarray:
        return np.random.default_rng(len(text)).standard_normal(32)

    def embed_batch(self, texts: list[str]) -> np.ndarray:
        return np.array([self.embed(text) for text in texts])


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6


@pytest.mark.torture
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident memory from /proc")
def test_long_life_memory_is_flat_over_a_hundred_thousand_ticks() -> None:
    state = StaticState(goals=["goal"], memories=["memory"])
    # the cache is full long before the first look at the memory
    sensor = CoherenceSensor(state, embedder=EmbeddingCache(Instant(), max_texts=2_000), timeout_s=60)
    early = 0.0
    for tick in range(100_000):
        state.context = [f"message {n}" for n in range(tick, tick + 20)]
        assert not sensor.measure_sync().errors
        if tick == 10_000:
            gc.collect()
            early = resident_mb()
    gc.collect()
    # 90,000 readings of about 2 KB would be 180 MB
    assert resident_mb() - early < 5


def test_long_life_the_cache_forgets_the_least_recently_used() -> None:
    counted: list[str] = []

    class Counting(HashingEmbedder):
        def embed(self, text: str) -> np.ndarray:
            counted.append(text)
            return super().embed(text)

    cache = EmbeddingCache(Counting(), max_texts=3)
    for text in ("a", "b", "c", "a", "d", "a", "b"):
        missing = cache.find([text], {})
        cache.make(missing, float("inf"), [])
    assert counted == ["a", "b", "c", "d", "b"]  # d pushed b out, a had been used again


def test_long_life_a_tick_with_more_texts_than_the_cache_holds_does_not_embed_them_again() -> None:
    cache = EmbeddingCache(HashingEmbedder(), max_texts=2)
    state = StaticState(goals=["g"], context=[f"c{n}" for n in range(50)])
    sensor = CoherenceSensor(state, embedder=cache)
    for tick in range(5):
        state.context = [*state.context[1:], f"new {tick}"]
        sensor.measure_sync()
    assert cache.embedded == 1 + 50 + 4  # the goal, the first window with "new 0", four more


FORKING = """
import os, sys
from coherence import CoherenceSensor
from coherence.providers import CallableState, HashingEmbedder

async def context():
    return ["a", "b"]

sensor = CoherenceSensor(CallableState(goals=lambda: ["g"], context=context), embedder=HashingEmbedder())
assert not sensor.measure_sync().errors  # starts a worker thread and the kept loop
child = os.fork()
reading = sensor.measure_sync()
assert not reading.errors, reading.errors
if child == 0:
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_long_life_a_forked_child_measures_with_threads_of_its_own() -> None:
    result = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_long_life_a_process_ends_while_a_plug_in_hangs() -> None:
    code = """
import threading
from coherence import CoherenceSensor
from coherence.providers import CallableState, HashingEmbedder
sensor = CoherenceSensor(CallableState(goals=threading.Event().wait), embedder=HashingEmbedder(), timeout_s=0.2)
print(sensor.measure_sync().errors[0].kind)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout.strip()) == (0, "timeout"), result.stderr


def test_long_life_many_threads_may_measure_with_one_cache() -> None:
    cache = EmbeddingCache(HashingEmbedder())
    failures: list[object] = []

    def work(number: int) -> None:
        state = StaticState(goals=["shared goal"])
        sensor = CoherenceSensor(state, embedder=cache, timeout_s=60)
        for tick in range(30):
            state.context = [f"shared {n}" for n in range(tick, tick + 5)] + [f"own {number} {tick}"]
            failures.extend(sensor.measure_sync().errors)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
