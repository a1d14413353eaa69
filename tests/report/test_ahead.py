"""Texts embedded ahead are those that the measurements embed, and no result depends on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from coherence import EmbeddingCache, MonitorConfig
from coherence.core.vectors import Half, to_half
from coherence.providers import HashingEmbedder, MiniLMEmbedder
from coherence.providers.minilm import default_embedder
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Step, Transcript, TranscriptCall
from coherence.report.ahead import embedded_ahead, measured_texts, usable_cores
from coherence.report.score import ScoredRun, score_transcript, without_secrets

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
HOSTILE = Transcript(
    id="hostile",
    goal="  Pay the invoice  ",
    system="Never pay twice.",
    steps=(
        Step(role="user", content="Pay it with sk-ant-api03-" + "a" * 93 + "AA"),
        Step(role="assistant", content="", tool_calls=(TranscriptCall(name="pay", arguments={"sum": 12}),)),
        Step(role="tool", content="x" * 30_000, tool_name="pay"),  # above what stays of a message
        Step(role="assistant", content="Paid \ud800."),
        Step(role="assistant", content=" \n"),
        Step(role="user", content="Pay the invoice"),
        Step(role="assistant", content="Paid \ud800."),
    ),
    memories=((0, "The bank is closed on Sundays"), (3, "Paid on Monday")),
)


class Recording(HashingEmbedder):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(16)
        self.texts: list[str] = []

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        self.texts.append(text)
        return super().embed(text)


@pytest.mark.parametrize(
    ("window", "redact"),
    [
        (3, True),
        (20, False),
        pytest.param(3, False, marks=pytest.mark.slow),
        pytest.param(20, True, marks=pytest.mark.slow),
    ],
)
def test_measured_texts_are_what_a_scored_run_embeds_in_its_order(window: int, redact: bool) -> None:
    runs = [HOSTILE, *read_transcripts(DATA / "tau_airline.jsonl.gz")[:1], *read_transcripts(DATA / "whowhen.jsonl.gz")]
    config = MonitorConfig(redact=redact)
    for run in runs:
        embedder = Recording()
        score_transcript(run, embedder=embedder, window=window, config=config)
        settings = msgspec.structs.replace(config, window=window)
        assert list(measured_texts(without_secrets(run) if redact else run, settings)) == embedder.texts
    assert len(runs) == 5


def plain(run: ScoredRun) -> tuple[object, ...]:
    """Return what was scored, without the times of the measurements."""
    readings = [msgspec.structs.replace(reading, ts=0.0) for reading in run.readings]
    return readings, run.appraisals, run.decisions, run.context_steps


def test_score_transcript_no_result_depends_on_what_is_embedded_ahead() -> None:
    run = read_transcripts(DATA / "agentdojo.jsonl.gz")[0]
    caches = [EmbeddingCache(default_embedder()) for _ in range(2)]
    alone, ahead = (
        score_transcript(run, embedder=cache, ahead=threads) for cache, threads in zip(caches, (0, 3), strict=True)
    )
    assert plain(alone) == plain(ahead)
    assert caches[0].embedded == caches[1].embedded > 0


def test_embedded_ahead_the_vectors_are_those_of_the_embedder() -> None:
    texts, cache, found = ["one", "two", "three"], EmbeddingCache(default_embedder()), dict[str, Half | str]()
    done = threading.Event()

    def told() -> Iterator[str]:
        yield from texts
        done.set()
        raise ValueError("no text follows")  # ends the thread without a word

    with embedded_ahead(told(), cache, 1):
        assert done.wait(20)
    assert cache.find(texts, found) == []
    assert all(np.array_equal(found[text], to_half(default_embedder().embed(text))) for text in texts)


@pytest.mark.parametrize("embedder", [HashingEmbedder(16), type("Subclass", (MiniLMEmbedder,), {})()])
def test_embedded_ahead_no_other_embedder_is_asked_from_threads(embedder: HashingEmbedder) -> None:
    texts = iter(["one"])
    with embedded_ahead(texts, EmbeddingCache(embedder), 2):
        assert not [thread for thread in threading.enumerate() if thread.name == "coherence-ahead"]
    assert next(texts) == "one"


def test_usable_cores() -> None:
    assert usable_cores() >= 1
