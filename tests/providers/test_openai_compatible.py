from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from json_stub import Answer, Stub, of_json

from coherence import CoherenceSensor
from coherence.core.errors import VectorError
from coherence.providers import OpenAICompatibleEmbedder, StaticState


def rows(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": at, "embedding": [float(len(text)), 1.0, 0.5]} for at, text in enumerate(texts)]


def answer(body: dict[str, Any]) -> Answer:
    return of_json({"data": rows(body["input"])})


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "*")
    made = Stub(answer)
    yield made
    made.close()


def test_embed_batch_the_vectors_come_in_the_order_of_the_texts(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "some-model")
    vectors = embedder.embed_batch(["one", "three", "日本"])
    assert stub.asked[0].body == {"model": "some-model", "input": ["one", "three", "日本"]}
    assert vectors.tolist() == [[3.0, 1.0, 0.5], [5.0, 1.0, 0.5], [2.0, 1.0, 0.5]]  # by the length of the text
    assert vectors.dtype == np.float32
    stub.answer = lambda body: of_json({"data": rows(body["input"])[::-1]})
    assert embedder.embed_batch(["one", "three", "日本"]).tolist() == vectors.tolist()
    assert embedder.fingerprint == f"openai:{stub.url}:some-model"


def test_open_ai_compatible_embedder_nothing_is_sent_before_the_first_text(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m")
    CoherenceSensor(StaticState(goals=["goal"]), embedder=embedder)
    assert embedder.embed_batch([]).shape[0] == 0
    assert stub.asked == []


def test_dimensions_are_asked_for_once_or_taken_from_an_answer(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m")
    assert (embedder.dimensions, embedder.dimensions) == (3, 3)
    assert len(stub.asked) == 1
    used = OpenAICompatibleEmbedder(stub.url, "m")
    used.embed("x")
    assert used.dimensions == 3
    assert len(stub.asked) == 2


@pytest.mark.parametrize(
    "content",
    [
        {"data": None},
        {"data": [{"index": 0}]},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": None, "embedding": [1.0]}]},
        *({"data": rows(["x"] * count)} for count in (0, 1, 3)),
    ],
)
def test_embed_batch_what_are_no_vectors_of_the_texts_is_an_error(stub: Stub, content: object) -> None:
    stub.answer = lambda _: of_json(content)
    with pytest.raises(VectorError, match=r"answered without usable data: |returned \d vectors for 2 texts"):
        OpenAICompatibleEmbedder(stub.url, "m").embed_batch(["a", "b"])


def test_open_ai_compatible_embedder_a_sensor_asks_in_batches_and_for_each_text_once(stub: Stub) -> None:
    state = StaticState(goals=["goal"], context=["a", "bb", "ccc", "dddd", "bb", "eeeee", "ffffff"])
    sensor = CoherenceSensor(state, embedder=OpenAICompatibleEmbedder(stub.url, "m", batch_size=3), timeout_s=60)
    assert sensor.measure_sync().errors == ()
    assert [len(asked.body["input"]) for asked in stub.asked] == [3, 3, 1]  # 7 different texts in batches of 3
    state.context.append("one more")
    stub.answer = lambda _: Answer(b"overloaded", 503)
    failed = sensor.measure_sync()
    assert [failure.source for failure in failed.errors] == ["embedder"]
    assert "answered 503: overloaded" in failed.errors[0].message
    stub.answer = answer
    recovered = sensor.measure_sync()
    assert recovered.errors == () and recovered.metrics["goal_drift"] is not None
    assert [asked.body["input"] for asked in stub.asked[4:]] == [["one more"]]


def test_embed_batch_of_a_long_text_head_and_tail_are_sent(stub: Stub) -> None:
    embedder = OpenAICompatibleEmbedder(stub.url, "m", max_chars=10)
    embedder.embed_batch(["0123456789", "0123456789A", "x" * 1_000_000])
    assert stub.asked[0].body["input"] == ["0123456789", "01234 6789A", "xxxxx xxxxx"]
    with pytest.raises(ValueError, match="batch_size must be 1 or more"):
        OpenAICompatibleEmbedder(stub.url, "m", batch_size=0)
