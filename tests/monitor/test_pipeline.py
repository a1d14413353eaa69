"""What a pipeline keeps between ticks: it never changes what comes out, and it is no part of what is stored."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.core.config import Budget, MonitorConfig
from coherence.core.events import (
    Compaction,
    Correction,
    Event,
    Feedback,
    Goal,
    Memory,
    Message,
    Outcome,
    Ticked,
    ToolCall,
    ToolResult,
    Usage,
)
from coherence.monitor import semantic_checks
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.snapshots import pack, unpack
from coherence.providers import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache

WORDS = st.sampled_from(["Fix the tests.", "All 12 tests pass.", "no such file: a.py", "Peel the onions.", "ünï", ""])
PATHS = st.sampled_from([b'{"path":"a.py"}', b'{"path":"b.py"}', b'{"command":"pytest -q"}'])
COUNTS = st.none() | st.integers(0, 5_000)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    WORDS.map(Goal),
    st.builds(Message, st.sampled_from(["user", "assistant", "system"]), WORDS),
    st.builds(Message, st.just("assistant"), WORDS),
    st.builds(ToolCall, st.sampled_from(["bash", "Edit"]), PATHS.map(msgspec.Raw), st.just("c")),
    st.builds(ToolResult, WORDS, st.booleans(), st.just("c")),
    st.builds(Usage, COUNTS, COUNTS),
    st.builds(Feedback, st.floats(-1, 1)),
    WORDS.map(Correction),
    WORDS.map(Memory),
    WORDS.map(Compaction),
    st.builds(Outcome, st.booleans()),
)
TICKS = st.sampled_from([Ticked("step"), Ticked("decide"), Ticked("check", "bash", msgspec.Raw(b'{"command":"ls"}'))])
STREAMS = st.lists(EVENTS | TICKS, max_size=16)
CACHE = EmbeddingCache(HashingEmbedder(16))
CONFIG = MonitorConfig(implicit_corrections=True, context_tokens=8_000, timeout_s=60.0)


def pipeline() -> AgentPipeline:
    return AgentPipeline(CONFIG, CACHE, budget=Budget(tokens=50_000), name=("a", "1"))


@examples(60)
@given(STREAMS)
def test_fold_what_is_kept_between_ticks_is_what_would_be_found_anew(events: list[Event]) -> None:
    kept = pipeline()
    for seq, event in enumerate(events, 1):
        anew = pipeline()
        anew.restore(unpack(pack(kept.snapshot())))
        results = [each.fold(seq, float(seq), event) for each in (kept, anew)]
        assert repr(results[0]) == repr(results[1])  # the order of what a reading shows counts too
        assert pack(kept.snapshot()) == pack(anew.snapshot())


@examples(30)
@given(STREAMS)
def test_foresee_changes_nothing_that_comes_out(events: list[Event]) -> None:
    plain, foreseeing = pipeline(), pipeline()
    for seq, event in enumerate(events, 1):
        foreseeing.foresee()
        assert plain.fold(seq, float(seq), event) == foreseeing.fold(seq, float(seq), event)
    assert pack(plain.snapshot()) == pack(foreseeing.snapshot())


def test_foresee_does_what_the_tick_asked_for_by_the_host_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    made = pipeline()
    events: list[Event] = [Goal("Fix the parser."), Message("assistant", "Peel the onions."), Ticked("step")]
    for seq, event in enumerate(events, 1):
        made.fold(seq, float(seq), event)
    made.foresee()
    monkeypatch.setattr(semantic_checks, "nearest_drift", None)
    result = made.fold(4, 4.0, Ticked("decide"))
    assert result is not None
    (drift,) = [finding for finding in result.decision.findings if finding.rule == "scope_drift_warn"]
    assert drift.score > 0.0
