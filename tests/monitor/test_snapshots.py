"""Snapshots: export then import is identity, two can be merged in any order, and none grows without end."""

from __future__ import annotations

from typing import Any

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
from coherence.monitor.snapshots import OTHER, VERSION, Snapshot, from_text, merge, pack, to_text, unpack
from coherence.providers import HashingEmbedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.data import Facts
from coherence.state.reducer import MAX_MEMORIES, MAX_TOOLS, MAX_TOTAL

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


def lived(events: list[Event], start: float = 0.0, session: str = "1") -> AgentPipeline:
    made = AgentPipeline(CONFIG, EmbeddingCache(HashingEmbedder(16)), budget=Budget(calls=9), name=("a", session))
    for seq, event in enumerate(events, 1):
        made.fold(seq, start + seq, event)
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


@examples(40)
@given(STREAMS, STREAMS, st.sampled_from([0.0, 0.5, 1e6]))
def test_pack_merging_is_commutative_lossless_and_changes_neither(
    one: list[Event], two: list[Event], later: float
) -> None:
    a, b = lived(one, session="1").snapshot(), lived(two, later, session="2").snapshot()
    before = pack(a), pack(b)
    merged = merge(a, b)
    assert pack(merged) == pack(merge(b, a))
    assert (pack(a), pack(b)) == before
    assert pack(unpack(pack(merged))) == pack(from_text(to_text(merged))) == pack(merged)
    for name in ("calls", "results", "errors", "messages", "steps", "faults"):
        assert getattr(merged.parts["facts"], name) == getattr(a.parts["facts"], name) + getattr(b.parts["facts"], name)
    assert merged.parts["baselines"].pressure in (a.parts["baselines"].pressure, b.parts["baselines"].pressure)
    restored = pipeline()
    restored.restore(unpack(pack(merged)))
    assert (
        restored.fold(merged.parts["facts"].seq + 1, merged.parts["facts"].latest_ts + 1, Ticked("decide")) is not None
    )


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


@pytest.mark.torture
def test_pack_a_long_life_has_no_longer_a_snapshot() -> None:
    # by 900 rounds every table is full: of corrections, at most 200 topics; of files, 200; of sentences read, 600; and,
    # by 100 new values a round, both of tokens seen, of 15,000 each, and that of values given, 5,000
    assert len(grown(1800)) < 1.02 * len(grown(900))


def life(start: float, *events: Event) -> Snapshot:
    return lived(list(events), start).snapshot()


def facts(**more: Any) -> Snapshot:
    made = life(0.0)
    made.parts["facts"] = msgspec.structs.replace(Facts(), **more)
    return made


def test_merge_the_present_is_that_of_the_later_state() -> None:
    early = life(0.0, Goal("old"), ToolResult("boom", error=True, tool_name="Bash"))
    late = life(10.0, Goal("new"), ToolResult("fine", tool_name="Read"))
    merged = merge(late, early).parts["facts"]
    assert (merged.goal, [item.text for item in merged.context]) == ("new", ["fine"])
    assert (merged.error_streak, merged.errors, merged.results) == (0, 1, 2)
    assert merged.tools == {"Bash": 1, "Read": 1}
    assert (merged.first_ts, merged.latest_ts) == (1.0, 12.0)


def test_what_is_held_cooling_down_or_pending_stays_as_long_ago_as_it_was() -> None:
    failing: list[Event] = []
    for _ in range(5):
        failing += [ToolResult("boom", error=True, tool_name="Bash"), Ticked("step")]
    late, early = life(100.0, *failing), life(0.0, *[ToolResult("fine", tool_name="Read")] * 7)
    assert (
        late.parts["regulator"].pending and late.parts["regulator"].held and late.parts["regulator"].newest is not None
    )
    merged = merge(late, early)
    assert merged.parts["facts"].steps == merged.parts["facts"].results == 12
    ago = [(late.parts["facts"].steps - step) for step in late.parts["regulator"].held.values()]
    assert [(merged.parts["facts"].steps - step) for step in merged.parts["regulator"].held.values()] == ago
    assert (
        merged.parts["facts"].steps - merged.parts["regulator"].last_step
        == late.parts["facts"].steps - late.parts["regulator"].last_step
    )
    since = [late.parts["facts"].results - pending.results for pending in late.parts["regulator"].pending]
    assert [merged.parts["facts"].results - pending.results for pending in merged.parts["regulator"].pending] == since
    go_on = [AgentPipeline(CONFIG, None), AgentPipeline(CONFIG, None)]
    for each, kept in zip(go_on, (late, merged), strict=True):
        each.restore(unpack(pack(kept)))
    for seq in range(20, 40, 2):
        for each in go_on:
            each.fold(seq, 200.0 + seq, ToolResult("fine", tool_name="Read"))
        one, two = (each.fold(seq + 1, 200.0 + seq, Ticked("step")) for each in go_on)
        assert one is not None and two is not None
        assert [(found.firing, found.horizon) for found in two.outcomes] == [
            (found.firing, found.horizon) for found in one.outcomes
        ]


def test_merge_memories_of_both_are_kept_and_those_without_an_id_do_not_replace_each_other() -> None:
    early = life(0.0, Memory("a"), Memory("both"), Memory("old", "id"), Memory("only early", "x"))
    late = life(10.0, Memory("b"), Memory("both"), Memory("new", "id"))
    merged = merge(early, late).parts["facts"]
    assert list(merged.memories.values()) == ["a", "only early", "b", "both", "new"]
    assert list(merged.memories) == ["#3", "x", "#1", "#2", "id"]
    again = pipeline()
    again.restore(merge(early, late))
    again.fold(50, 50.0, Memory("c"))
    assert list(again.state.facts.memories.values()) == ["a", "only early", "b", "both", "new", "c"]


def test_merge_merging_again_and_again_stays_within_the_bounds() -> None:
    tools = [{f"{half}{at}": at + 1 for at in range(MAX_TOOLS)} for half in "ab"]
    one, two = (
        facts(
            memories={f"{half}{at}": "x" for at in range(MAX_MEMORIES)},
            tools=used,
            tokens_in=MAX_TOTAL,
            tokens_out=MAX_TOTAL,
            latest_ts=latest,
        )
        for half, used, latest in (("a", tools[0], 1.0), ("b", tools[1], 2.0))
    )
    merged = merge(merge(one, two), merge(one, two))
    assert len(merged.parts["facts"].memories) == MAX_MEMORIES and "b0" in merged.parts["facts"].memories  # the newest
    assert len(merged.parts["facts"].tools) == MAX_TOOLS + 1 and OTHER in merged.parts["facts"].tools
    assert sum(merged.parts["facts"].tools.values()) == 4 * sum(range(1, MAX_TOOLS + 1))
    assert (merged.parts["facts"].tokens_in, merged.parts["facts"].tokens_out) == (MAX_TOTAL, MAX_TOTAL)
    assert unpack(pack(merged)) == merged


def test_merge_what_is_unknown_in_one_is_known_by_the_other() -> None:
    merged = merge(facts(tokens_in=5, latest_ts=1.0), facts(cost_usd=0.5, latest_ts=2.0)).parts["facts"]
    assert (merged.tokens_in, merged.tokens_out, merged.cost_usd) == (5, None, 0.5)


def test_merge_what_was_learned_is_weighted_by_its_samples() -> None:
    late = life(10.0, *[ToolResult(f"{at}", tool_name="Read") for at in range(6)])
    early = life(0.0, *[ToolResult(f"{at}", tool_name="Read") for at in range(2)])
    one, two = late.parts["baselines"].baselines["error_rate"], early.parts["baselines"].baselines["error_rate"]
    both = merge(late, early).parts["baselines"].baselines["error_rate"]
    assert (one.count, two.count, both.count) == (6, 2, 8)
    assert both.mean == pytest.approx((6 * one.mean + 2 * two.mean) / 8)


def test_corrections_of_both_count_together() -> None:
    asked = Message("user", "What is the weather in Oslo?")
    tick = Ticked("decide")  # makes their meanings known
    early = lived([asked, Correction("use Celsius"), tick], session="1").snapshot()
    late = lived([asked, Correction("no wind speeds"), Correction("name the day"), tick], 10.0, session="2").snapshot()
    assert early.parts["corrections"].patterns(0) == late.parts["corrections"].patterns(0) == []
    (pattern,) = merge(early, late).parts["corrections"].patterns(0)
    assert pattern.count == 3
    assert {session for session, _ in pattern.provenance} == {"1", "2"}
