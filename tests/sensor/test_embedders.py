"""Embedders: each text once, what fails is tried again, and bad vectors are named and left out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest

from coherence import EmbeddingCache
from coherence.metrics import GoalDrift
from coherence.providers import HashingEmbedder, StaticState
from coherence.testing import TableEmbedder
from sensor.plugins import Fatal, both_ways, bounded, probe, raising

boom = raising(RuntimeError("boom"))


class BadEmbedder:
    """Returns what it is told for one text, and a good vector otherwise."""

    dimensions = 4

    def __init__(self, answer: Callable[[], object]) -> None:
        self.answer = answer
        self.calls = 0

    def embed(self, text: str) -> object:
        self.calls += 1
        return self.answer() if text == "bad" else [1.0, len(text), 0.0, 0.0]

    def embed_batch(self, texts: list[str]) -> object:
        return [self.embed(text) for text in texts]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: [0.0] * 4, "zero vector"),
        (lambda: [float("nan")] * 4, "NaN or infinity"),
        (lambda: [1.0] * 3, "3 dimensions, expected 4"),
        (lambda: [[1.0] * 4, [1.0] * 4], "2 vectors for one text"),
        (lambda: [], "empty vector"),
        (lambda: "vector", "not a vector of numbers"),
        (lambda: [10**400, 1], ""),
        (lambda: {"a": object()}, ""),
    ],
)
def test_keep_a_bad_vector_is_named_left_out_and_not_asked_for_again(
    answer: Callable[[], object], message: str
) -> None:
    embedder = BadEmbedder(answer)
    sensor = probe(StaticState(goals=["goal"], context=["one", "bad", "three"]), embedder=embedder)
    for _ in range(3):
        reading = sensor.measure_sync()
        (failure,) = reading.errors
        assert (failure.source, failure.kind) == ("embedder", "bad vector")
        assert message in failure.message and "“bad”" in failure.message
        assert reading.metrics["semantic_diffusion"] is not None  # of the two others
    assert embedder.calls == 4
    without = probe(StaticState(goals=["bad"], context=["a", "b"]), embedder=embedder).measure_sync()
    assert without.unknown["goal_drift"] == "no usable vector for any of the goals"


def test_make_a_text_the_embedder_raises_on_is_tried_again_and_the_others_go_on() -> None:
    answers = iter([boom, boom])

    def flaky() -> object:
        for answer in answers:
            answer()
        return [1.0, 1.0, 1.0, 1.0]

    sensor = probe(StaticState(goals=["bad"], context=["a", "b"]), embedder=BadEmbedder(flaky))
    first = sensor.measure_sync()
    assert first.errors[0].kind == "RuntimeError" and first.metrics["semantic_diffusion"] is not None
    assert first.unknown["goal_drift"] == "1 of 1 goals have no vector yet"
    sensor.measure_sync()
    assert sensor.measure_sync().errors == ()


class Down(HashingEmbedder):
    """Cannot be reached."""

    down = True
    calls = 0

    def embed(self, text: str) -> np.ndarray:
        self.calls += 1
        if self.down:
            raise ConnectionError("refused")
        return super().embed(text)


def test_make_an_embedder_that_is_down_is_given_up_on_after_three_texts_and_makes_no_text_bad() -> None:
    embedder = Down()
    sensor = probe(StaticState(goals=["g"], context=[f"c{i}" for i in range(50)], memories=["m"]), embedder=embedder)
    for tick in range(1, 11):
        reading = sensor.measure_sync()
        assert (embedder.calls, reading.coverage) == (3 * tick, 0.0)
        assert {failure.kind for failure in reading.errors} == {"ConnectionError"}
    embedder.down = False
    assert sensor.measure_sync().coverage == 1.0


class Picky(HashingEmbedder):
    """Refuses some texts for good."""

    def embed(self, text: str) -> np.ndarray:
        if text.startswith("too long"):
            raise ValueError("413 input too long")
        return super().embed(text)


class PickyBatch(Picky):
    """Refuses a batch that holds such a text."""

    batch_size = 8


@pytest.mark.parametrize("embedder", [Picky, PickyBatch])
def test_note_failure_texts_that_always_fail_blind_the_sensor_for_a_few_ticks_only(embedder: type[Picky]) -> None:
    bad = [f"too long {n}" for n in range(4)]
    sensor = probe(StaticState(goals=["g"], context=[*bad, "fine", "also fine"]), embedder=embedder())
    for _ in range(8):
        reading = sensor.measure_sync()
    assert reading.metrics["semantic_diffusion"] is not None  # of the two others
    assert reading.errors and all("413 input too long" in failure.message for failure in reading.errors)


def test_make_a_batch_of_the_wrong_size_is_named() -> None:
    class Short(HashingEmbedder):
        batch_size = 8

        def embed_batch(self, texts: object) -> np.ndarray:
            return super().embed_batch(list(texts)[:-1])  # type: ignore[call-overload]

    assert "returned 3 vectors for 4 texts" in probe(embedder=Short()).measure_sync().errors[0].message


def test_make_an_async_embedder_is_awaited_text_by_text() -> None:
    class Async(HashingEmbedder):
        async def embed(self, text: str) -> np.ndarray:  # type: ignore[override]
            await asyncio.sleep(0)
            if text == "bad":
                raise ConnectionError("refused")
            return super().embed(text)

    for reading in both_ways(lambda: probe(embedder=Async())):
        assert (reading.errors, reading.coverage) == ((), 1.0)
    for reading in both_ways(lambda: probe(StaticState(goals=["bad"], context=["a", "b"]), embedder=Async())):
        assert reading.errors[0].kind == "ConnectionError" and reading.metrics["semantic_diffusion"] is not None


@pytest.mark.slow
def test_make_a_slow_embedder_measures_what_it_can_and_goes_on_at_the_next_tick() -> None:
    class Slow(HashingEmbedder):
        def embed(self, text: str) -> np.ndarray:
            time.sleep(0.02)
            return super().embed(text)

    sensor = probe(StaticState(goals=["g"], context=["a", "b"], memories=[f"m{i}" for i in range(60)]), embedder=Slow())
    with bounded():
        first = sensor.measure_sync()
    assert first.metrics["goal_drift"] is not None
    assert "memories have no vector yet" in first.unknown["memory_retention"]
    assert [failure.kind for failure in first.errors] == ["timeout"]
    assert "the rest follows at the next ticks" in first.errors[0].message
    deadline = time.monotonic() + 30
    while sensor.measure_sync().metrics["memory_retention"] is None and time.monotonic() < deadline:
        pass
    assert sensor.measure_sync().coverage == 1.0


def test_fingerprint_one_that_raises_costs_the_vectors() -> None:
    class Odd(TableEmbedder):
        fingerprint = property(raising(Fatal()))

    for reading in both_ways(lambda: probe(embedder=Odd({}))):
        assert (reading.errors[0].source, reading.coverage) == ("embedder", 0.0)


def test_fingerprint_another_model_may_have_another_dimension() -> None:
    class Switching(TableEmbedder):
        fingerprint = "one"

    embedder = Switching({"g": [1, 0], "c": [1, 0]})
    sensor = probe(StaticState(goals=["g"], context=["c"]), embedder=embedder, metrics=[GoalDrift()])
    assert sensor.measure_sync().metrics["goal_drift"] == 0.0
    embedder.fingerprint, embedder.dimensions = "two", 3
    embedder.table = {"g": np.array([1.0, 0, 0]), "c": np.array([0.0, 1, 0])}
    reading = sensor.measure_sync()
    assert (reading.errors, reading.metrics["goal_drift"]) == ((), 1.0)


def test_windows_a_row_that_was_zero_for_want_of_a_vector_gets_it_when_there_is_one() -> None:
    embedder = TableEmbedder({"g": [1, 0], "c": [0, 0], "d": [1, 0]})
    cache = EmbeddingCache(embedder, max_texts=1)
    provider = StaticState(goals=["g"], context=["c"])
    sensor = probe(provider, embedder=cache, missing="zero", metrics=[GoalDrift()])
    assert sensor.measure_sync().metrics["goal_drift"] == 1.0
    embedder.table["c"] = embedder.table["g"]
    cache._kept.clear()  # the bad entry was least recently used
    provider.context = ["c", "d"]
    assert sensor.measure_sync().metrics["goal_drift"] == 0.0
