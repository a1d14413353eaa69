"""Recording methods: good values become events, bad ones an error that names them, and nothing in between."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from coherence import Monitor, Store
from coherence.core.events import Fault, Message, ToolCall, ToolResult, Usage, encode_event
from coherence.providers import HashingEmbedder


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": HashingEmbedder(), "config": {"tick": "manual"}, **options})


def nested(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels - 1):
        made = [made]
    return made


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {"a": 1}
    made["self"] = [made]
    return made


class Unreadable(Mapping[str, object]):
    """A mapping that breaks while it is read."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError("gone")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("gone")

    def __len__(self) -> int:
        return 1


class Speechless:
    """An object without a text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


Call = Callable[[Any], object]

BAD: list[tuple[str, str, Call]] = [
    ("goal of None", "text", lambda m: m.goal(None)),
    ("empty goal", "text", lambda m: m.goal(" \n")),
    ("unknown role", "role", lambda m: m.message("robot", "hi")),
    ("unhashable role", "role", lambda m: m.message([], "hi")),
    ("message of an int", "text", lambda m: m.message("user", 5)),
    ("model of an int", "model", lambda m: m.message("assistant", "hi", model=5)),
    ("logprobs of a text", "logprobs", lambda m: m.message("assistant", "hi", logprobs="-0.1")),
    ("logprobs with NaN", "logprobs", lambda m: m.message("assistant", "hi", logprobs=[-0.1, math.nan])),
    ("logprobs above 0", "logprobs", lambda m: m.message("assistant", "hi", logprobs=[0.1])),
    ("tool of None", "tool", lambda m: m.tool_call(None)),
    ("unhashable tool", "tool", lambda m: m.tool_call(["Bash"])),
    ("call id of an int", "call", lambda m: m.tool_call("Bash", {}, call=7)),
    ("cyclic arguments", "arguments", lambda m: m.tool_call("Bash", cyclic())),
    ("arguments 101 levels deep", "arguments", lambda m: m.tool_call("Bash", nested(101))),
    ("check of None", "tool", lambda m: m.check(None)),
    ("cyclic result", "text", lambda m: m.tool_result(cyclic())),
    ("error of a text", "error", lambda m: m.tool_result("ok", error="false")),
    ("negative duration", "duration_s", lambda m: m.tool_result("ok", duration_s=-0.1)),
    ("duration of a huge int", "duration_s", lambda m: m.tool_result("ok", duration_s=10**400)),
    ("result for a call of an int", "call", lambda m: m.tool_result("ok", call=7)),
    ("error type of a class", "error_type", lambda m: m.tool_result("no", error=True, error_type=OSError)),
    ("negative tokens", "tokens_in", lambda m: m.usage(tokens_in=-1)),
    ("tokens of a float", "tokens_out", lambda m: m.usage(tokens_out=5.0)),
    ("negative cached tokens", "tokens_cached", lambda m: m.usage(tokens_cached=-1)),
    ("negative cost", "cost_usd", lambda m: m.usage(cost_usd=-1.0)),
    ("huge cost", "cost_usd", lambda m: m.usage(cost_usd=10**400)),
    ("score above 1", "score", lambda m: m.feedback(1.5)),
    ("empty correction", "text", lambda m: m.correction("")),
    ("empty note", "text", lambda m: m.note("")),
    ("confirmed below 0", "decision", lambda m: m.confirm(-1)),
    ("reason of an int", "reason", lambda m: m.confirm(1, 5)),
    ("memory id of an int", "id", lambda m: m.memory("x", id=1)),
    ("removed of a text", "removed", lambda m: m.memory("x", removed="yes")),
    ("summary of None", "summary", lambda m: m.compaction(None)),
    ("success of an int", "success", lambda m: m.outcome(1)),
    ("outcome below 0", "score", lambda m: m.outcome(score=-0.1)),
    ("fault of an int", "error", lambda m: m.fault("hook", 5)),
]
bad_calls = pytest.mark.parametrize(("field", "call"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])


@bad_calls
def test_recording_methods_a_bad_value_raises_with_strict_and_is_recorded_as_a_fault_without(
    field: str, call: Call
) -> None:
    m = monitor(goal="fix the login", strict=True)
    m.tool_call("Bash", {"command": "ls"})
    m.decide()
    before = (m.events(), m._worker.pipeline.snapshot())
    with pytest.raises((TypeError, ValueError), match=rf"^{field} .*"):
        call(m)
    assert (m.events(), m._worker.pipeline.snapshot()) == before
    m = monitor(goal="fix the login")
    call(m)
    (fault,) = (record.event for record in m.events() if type(record.event) is Fault)
    assert fault.message.startswith(f"{field} ") and fault.error_type in ("TypeError", "ValueError")


LONE = "a\ud800b\udfffc"

ODD: list[tuple[str, Call]] = [
    ("goal", lambda m: m.goal(LONE)),
    ("message", lambda m: m.message("assistant", LONE, model=LONE, response_id=LONE)),
    ("user message", lambda m: m.message("user", LONE)),
    ("call", lambda m: m.tool_call(LONE, {LONE: [LONE, {"x": LONE}]}, call=LONE)),
    ("text arguments", lambda m: m.tool_call("Bash", LONE)),
    ("result", lambda m: m.tool_result(LONE, call=LONE, tool=LONE, error=True, error_type=LONE)),
    ("usage", lambda m: m.usage(tokens_in=1, model=LONE)),
    ("feedback", lambda m: m.feedback(text=LONE)),
    ("correction", lambda m: m.correction(LONE)),
    ("note", lambda m: m.note(LONE)),
    ("confirm", lambda m: m.confirm(1, LONE)),
    ("memory", lambda m: m.memory(LONE, id=LONE)),
    ("compaction", lambda m: m.compaction(LONE)),
    ("outcome", lambda m: m.outcome(text=LONE)),
    ("fault", lambda m: m.fault(LONE, LONE)),
    ("fault of an exception", lambda m: m.fault("hook", ValueError(LONE))),
    ("check", lambda m: m.check(LONE, {LONE: LONE})),
    ("other objects", lambda m: m.tool_call("Bash", {"a": Speechless(), "b": object(), "c": b"x", "d": {1, 2}, 5: 1})),
    ("unreadable arguments", lambda m: m.tool_call("Bash", {"a": Unreadable(), "b": "\ud800"})),
    ("speechless key", lambda m: m.tool_call("Bash", {Speechless(): LONE})),
    ("huge ints", lambda m: m.tool_call("Bash", [2**70, -(10**5000)])),
    ("NaN and infinity", lambda m: m.tool_call("Bash", [math.nan, math.inf])),
    ("numpy", lambda m: m.tool_call("Bash", [np.float64(1), np.int64(2), np.zeros(3)])),
    ("numpy duration", lambda m: m.tool_result("ok", duration_s=np.float64(0.5))),
    ("numpy cost", lambda m: m.usage(cost_usd=np.float64(0.5))),
    ("subclass of str", lambda m: m.message(Word("user"), Word("hi"), model=Word("m"))),
    ("subclass of int", lambda m: m.usage(tokens_in=Number.FIVE)),
    ("int score", lambda m: m.feedback(1)),
    ("arguments 100 levels deep", lambda m: m.tool_call("Bash", nested(100))),
    ("many brackets", lambda m: m.tool_call("Bash", {"text": "[[{" * 200, "list": [[]] * 300})),
    ("empty texts", lambda m: (m.message("assistant", ""), m.tool_result(""), m.memory(""))),
]


class Word(str):
    """Not exactly a str."""


class Number(enum.IntEnum):
    FIVE = 5


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, id=name, marks=pytest.mark.slow if at % 4 else ()) for at, (name, call) in enumerate(ODD)],
)
def test_recording_methods_odd_but_honest_values_are_recorded_and_reach_the_file(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with monitor(agent=LONE, goal="fix the login", store=path, durability="full") as m:
        before = len(m.events())
        call(m)
        m.decide()
        kept = m.events()
        assert len(kept) > before
        assert not [record for record in kept if type(record.event) is Fault and record.event.where == "prepare"]
    with Store(path) as store:
        (session,) = store.sessions()
        assert session.agent == "a\ufffdb\ufffdc"
        assert store.count_events() == len(kept)
        assert store.verify() == []
    with monitor(agent=LONE, store=path) as again:
        assert again.decide().seq <= len(kept)  # nothing new has happened


def test_recording_methods_names_and_ids_are_cut_to_500_characters_and_still_told_apart() -> None:
    m = monitor()
    first = m.tool_call("Bash" * 1_000, call="x" * 5_000 + "1")
    second = m.tool_call("Bash", call="x" * 5_000 + "2")
    m.tool_result("one", call=first)
    m.tool_result("two", call=second)
    calls = [record.event for record in m.events()[::-1] if type(record.event) is ToolCall]
    assert all(len(call.call_id) < 600 and len(call.tool_name) < 600 for call in calls)
    assert calls[0].call_id != calls[1].call_id
    with m._worker.settled() as pipeline:
        assert pipeline.state.facts.open_calls == []  # both results found their call


def test_recording_methods_a_call_returns_its_id_and_a_result_goes_to_the_last_open_call() -> None:
    m = monitor()
    first, second = m.tool_call("Read", {"path": "a"}), m.tool_call("Bash", {"command": "ls"})
    assert first != second
    assert m.tool_call("Grep", call="mine") == "mine"
    m.tool_result("found")  # Grep
    m.tool_result("text of a", call=first)
    m.tool_result("a b")  # Bash
    with m._worker.settled() as pipeline:
        actions = [action.tool for action in pipeline.state.facts.actions]
    assert actions == ["Grep", "Read", "Bash"]


def test_arguments_are_copied() -> None:
    m = monitor()
    arguments = {"command": "ls"}
    m.tool_call("Bash", arguments)
    arguments["command"] = "rm"
    (record,) = m.events()
    assert type(record.event) is ToolCall
    assert msgspec.json.decode(record.event.arguments) == {"command": "ls"}


def test_unknown_usage_is_unknown_and_not_zero() -> None:
    m = monitor()
    m.usage()
    assert m.events()[0].event == Usage(None, None, None, None)
    assert (m.counters.tokens_in, m.counters.cost_usd) == (None, None)
    m.usage(tokens_in=0, cost_usd=0)
    assert (m.counters.tokens_in, m.counters.tokens_out, m.counters.cost_usd) == (0, None, 0.0)


def test_recording_methods_ten_megabytes_are_recorded_shortened_with_their_length_stated() -> None:
    m = monitor()
    m.tool_result("begin" + "x" * (10_000_000 - 8) + "end")
    event = m.events()[0].event
    assert type(event) is ToolResult
    assert len(event.result) < 201_000
    assert event.result.startswith("begin") and event.result.endswith("end")
    assert "9,800,000 of 10,000,000 characters left out" in event.result  # 200,000 are kept


def test_ten_megabytes_of_arguments_are_shortened_too() -> None:
    m = monitor()
    m.tool_call("Write", {"path": "a.txt", "content": "x" * 10_000_000})
    event = m.events()[0].event
    assert type(event) is ToolCall
    assert len(encode_event(event)) < 201_000
    kept = msgspec.json.decode(event.arguments)
    assert kept.startswith('{"path":"a.txt"') and "characters left out" in kept


def test_a_result_of_an_unknown_call_counts_as_one_of_an_unknown_tool() -> None:
    with Monitor(embedder=False) as m:
        m.tool_result("x", call="nosuch")
        m.tool_result("y", call="other", tool="Bash")
        m.decide()
        assert [action.tool for action in m.state.facts.actions] == ["unknown", "Bash"]


def test_recording_methods_numbers_that_json_does_not_have_are_null() -> None:
    with Monitor(embedder=False) as m:
        assert m.check("pay", float("nan")).kind == m.check("pay", {"sum": float("inf")}).kind == "continue"
        for arguments in (float("nan"), None):
            m.tool_result("ok", call=m.tool_call("pay", arguments))
        m.decide()
        first, second = m.state.facts.actions
        assert first.made.exact == second.made.exact


class Block:
    """A content block as SDKs have it."""

    def __init__(self, type: str, **fields: object) -> None:
        self.type = type
        self.__dict__.update(fields)


GIVEN: list[tuple[str, Any, str]] = [
    ("nothing beside tool calls", None, ""),
    ("blocks", [{"type": "text", "text": "One."}, {"type": "output_text", "text": "Two."}], "One.\nTwo."),
    ("objects", [Block("text", text="One."), Block("tool_use", name="Read", input={})], "One."),
    ("images alone", [{"type": "image_url", "image_url": {"url": "data:"}}], ""),
    ("a result within", [{"type": "tool_result", "content": [{"type": "text", "text": "in"}]}], "in"),
]


@pytest.mark.parametrize(("given", "text"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN])
def test_message_text_what_clients_give_is_taken(given: Any, text: str) -> None:
    m = monitor(strict=True)
    m.message("assistant", given)
    m.tool_result(given, tool="Read")
    said, answered = (record.event for record in reversed(m.events()))
    assert isinstance(said, Message) and said.content == text
    assert isinstance(answered, ToolResult) and answered.result == text


@pytest.mark.parametrize(
    ("given", "text"), [({"ok": True}, '{"ok":true}'), ([1, 2], "[1,2]"), (5, "5"), (b"ab\xff", "ab\ufffd"), ([], "[]")]
)
def test_result_text_data_becomes_json(given: Any, text: str) -> None:
    m = monitor(strict=True)
    m.tool_result(given, tool="Read")
    (answered,) = (record.event for record in m.events())
    assert isinstance(answered, ToolResult) and answered.result == text


def test_monitor_a_bad_value_is_told_once_in_the_log_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    m = monitor()
    secret = "sk-ant-api03-" + "Zq9" * 30
    for _ in range(3):
        m.message("assistant", {"api_key": secret})  # type: ignore[arg-type]  # wrong on purpose
    (told,) = caplog.messages
    assert "text must be a str" in told and "Monitor(strict=True) raises instead" in told
    assert secret[:20] not in told
