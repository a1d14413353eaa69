"""Snapshots: export then import is identity, a life goes on from one, and none grows without end."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence import Monitor
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
from coherence.core.validation import clean
from coherence.monitor.pipeline import AgentPipeline
from coherence.monitor.snapshots import VERSION, from_text, pack, to_text, unpack
from coherence.providers import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache

WORDS = st.sampled_from(["fix the tests", "no such file", "use metric units", "4 failed", "ünï \x00\u202e", "", "z"])
TEXTS = WORDS | st.text(max_size=30).map(clean)
NAMES = st.sampled_from(["Bash", "Read", "Edit", "a>b", "ß" * 70])
SCORES = st.none() | st.floats(-1, 1)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    TEXTS.map(Goal),
    st.builds(Message, st.sampled_from(["user", "assistant", "system"]), TEXTS),
    st.builds(ToolCall, NAMES, TEXTS.map(lambda text: msgspec.Raw(msgspec.json.encode({"path": text}))), st.just("c")),
    st.builds(ToolResult, TEXTS, st.booleans(), tool_name=NAMES),
    st.builds(Usage, st.none() | st.integers(0, 10**12), st.none() | st.integers(0, 10), st.none() | st.floats(0, 1e6)),
    st.builds(Feedback, SCORES, TEXTS, st.none() | st.just("block")),
    st.builds(Correction, TEXTS),
    st.builds(Memory, TEXTS, st.none() | st.sampled_from(["m1", "m2", "#1"]), st.booleans()),
    st.builds(Compaction, TEXTS),
    st.builds(Outcome, st.none() | st.booleans()),
    st.just(Ticked("decide")),
    st.just(Ticked("check", "Bash", msgspec.Raw(b'{"command":"rm -rf x"}'))),
)
STREAMS = st.lists(EVENTS, max_size=40)
CONFIG = MonitorConfig(implicit_corrections=True, refusals=2, context_tokens=1000, timeout_s=60.0)


def pipeline() -> AgentPipeline:
    return AgentPipeline(CONFIG, EmbeddingCache(HashingEmbedder(16)), budget=Budget(calls=9), name=("a", "1"))


def lived(events: list[Event]) -> AgentPipeline:
    made = pipeline()
    for seq, event in enumerate(events, 1):
        made.fold(seq, float(seq), event)
    return made


@examples(40)
@given(STREAMS)
def test_to_text_export_then_import_is_identity_to_the_order_of_each_table(events: list[Event]) -> None:
    snapshot = lived(events).snapshot()
    data, text = pack(snapshot), to_text(snapshot)
    for again in (unpack(data), from_text(text)):
        assert again == snapshot
        assert (pack(again), to_text(again)) == (data, text)


@examples(15)
@given(STREAMS, STREAMS)
def test_pack_a_life_goes_on_from_either_form_as_if_nothing_had_been(before: list[Event], after: list[Event]) -> None:
    whole = lived(before)
    packed, written = pipeline(), pipeline()
    packed.restore(unpack(pack(whole.snapshot())))
    written.restore(from_text(to_text(whole.snapshot())))
    for seq, event in enumerate(after, len(before) + 1):
        verdicts = [each.fold(seq, float(seq), event) for each in (whole, packed, written)]
        assert verdicts[0] == verdicts[1] == verdicts[2]
    assert pack(packed.snapshot()) == pack(written.snapshot()) == pack(whole.snapshot())


@examples(20)
@given(STREAMS)
def test_to_text_the_same_events_give_the_same_snapshot(events: list[Event]) -> None:
    assert to_text(lived(events).snapshot()) == to_text(lived(events).snapshot())


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_from_text_another_version_is_refused(version: int) -> None:
    snapshot = lived([Goal("x")]).snapshot()
    snapshot.version = version
    for read, form in ((unpack, pack), (from_text, to_text)):
        with pytest.raises(ValueError, match=f"version {version}, expected {VERSION}"):
            read(form(snapshot))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"{}", b'{"parts": 5}', b"[" * 10_000, b"\x80"])
def test_from_text_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        unpack(data)
    with pytest.raises(ValueError, match="not a snapshot"):
        from_text(data.decode("utf-8", "surrogateescape"))


def grown(rounds: int) -> bytes:
    with Monitor(embedder=False, config={"guidance": {"cooldown": 0}, "tick": "manual"}) as m:
        for at in range(rounds):
            m.message("user", f"request {at} " + "x" * 300)
            m.tool_call(f"tool{at}" * 200, {"path": f"/{at}/" + "p" * 500})
            values = " ".join(f"AB-{at}x{number}" for number in range(100))
            m.tool_result(f"error {at} {values} " + "e" * 500, error=True)
            m.correction(f"not like {at}")
            m.memory(f"memory {at % 50}" + "y" * 100)
            m.usage(tokens_in=10**12, cost_usd=1e12, model=f"m{at}")
            m.feedback(1.0)
            if at % 10 == 0:
                m.decide()
        with m._worker.settled() as made:
            return pack(made.snapshot())


@pytest.mark.slow
def test_pack_a_long_life_has_no_longer_a_snapshot() -> None:
    # by 900 rounds every table is full: of corrections, at most 200 topics; of files, 200; of sentences read, 600; and,
    # by 100 new values a round, both of tokens seen, of 15,000 each, and that of values given, 5,000
    assert len(grown(1800)) < 1.02 * len(grown(900))
