"""Texts compared by meaning, through a monitor: with the shipped model, by characters, and without vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coherence import Monitor, Store
from coherence.core.config import MonitorConfig
from coherence.core.decisions import Finding
from coherence.core.events import Correction
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.replay import Replay
from coherence.monitor.snapshots import pack
from coherence.providers import HashingEmbedder

ASKED = "Write a short poem about autumn leaves in the park"
GOOD = "Golden autumn leaves drift down through the quiet park, a short poem of the fading year."
BAD = "The quarterly revenue of the shipping subsidiary rose by nine percent after the merger with its rival."


def scope(m: Monitor) -> Finding | None:
    return next((found for found in m.decide().findings if found.rule == "scope_drift_warn"), None)


def answered(text: str, **options: Any) -> Monitor:
    m = Monitor(**{"config": {"timeout_s": 60.0}, **options})
    m.message("user", ASKED)
    m.message("assistant", text)
    return m


@pytest.mark.parametrize("embedder", [None, False], ids=["MiniLM", "words"])
def test_findings_an_answer_about_something_else_drifts_and_one_to_the_point_does_not(embedder: Any) -> None:
    bad, good = scope(answered(BAD, embedder=embedder)), scope(answered(GOOD, embedder=embedder))
    assert bad is not None and good is not None
    assert bad.score > good.score
    assert not good.active
    assert (bad.active and bad.evidence == (2,)) or embedder is False  # words alone may abstain


def test_findings_a_remark_on_the_way_is_no_answer() -> None:
    m = answered(BAD, embedder=False)
    m.tool_call("Read", {"path": "a"})
    m.tool_result("text")
    assert scope(m) is None


def test_semantic_checks_embedding_a_prompt_changes_no_state(tmp_path: Path) -> None:
    with answered(GOOD, embedder=HashingEmbedder(32), store=tmp_path / "s.db") as m:
        for text in ("shorter", "no rhymes", "in German"):
            m.correction(text)
        m.decide()
        with m._worker.settled() as pipeline:
            before = pack(pipeline.snapshot())
            assert pipeline.semantics.embed("another prompt altogether") is not None
            assert pack(pipeline.snapshot()) == before
        m.inject_corrections("another prompt altogether")
        m.message("user", "another prompt altogether")
        m.decide()
    with Store(tmp_path / "s.db") as store:
        (row,) = store.sessions()
        report = Replay(store, row).report()
    assert (report.equal, report.kept) == (report.ticks, 0)


class Fails:
    """An embedder that never gives a vector."""

    dimensions = 8
    fingerprint = "fails"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed(self, text: str, /) -> Any:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: list[str], /) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no model"), SystemExit(1), None, np.full((1, 8), np.nan), np.zeros((1, 8)), np.ones((9, 3)), "text"],
    ids=["raises", "exits", "None", "NaN", "zero", "shape", "text"],
)
def test_semantic_checks_an_embedder_that_fails_leaves_the_words(answer: Any) -> None:
    m = answered(GOOD, embedder=Fails(answer))
    for text in ("shorter", "no rhymes", "in German"):
        m.correction(text)
    m.decide()
    assert "no rhymes" in m.inject_corrections(ASKED)  # the same words
    assert m.inject_corrections("Refactor the payment module") == "Refactor the payment module"
    assert m.decide().kind in ("continue", "guide")


def test_an_edit_of_an_unknown_correction_in_a_recording_is_passed_over() -> None:
    pipeline = AgentPipeline(MonitorConfig(), None)
    pipeline.fold(1, 0.0, Correction("shorter"))
    (id,) = pipeline.corrections.notes
    for seq, event in enumerate((Correction("x", "c-unknown"), Correction("  ", id), Correction("", "c-unknown")), 2):
        pipeline.fold(seq, 0.0, event)
    assert [note.text for note in pipeline.corrections.notes.values()] == ["shorter"]
    pipeline.fold(9, 0.0, Correction("", id, removed=True))
    assert pipeline.corrections.notes == {}
