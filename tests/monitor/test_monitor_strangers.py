"""Objects of strangers given to a monitor: whatever they do while they are read costs the host a fault at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import hostile
import pytest
from hostile import (
    HANGS,
    RAISES,
    Endless,
    cases,
    failing,
    hang,
    lying_number,
    lying_table,
    lying_text,
    speaking,
    touchy,
)

from coherence.core.events import Fault, Message, ToolCall, ToolResult
from coherence.monitor.monitor import Monitor

SOON_S = 8.0
"""Seconds in which a call that waits 0.1 s for a stranger has returned, on a busy machine too."""

Entry = Callable[[Monitor, Any], object]

ENTRIES: dict[str, Entry] = {
    "goal": lambda m, x: m.goal(x),
    "message role": lambda m, x: m.message(x, "hi"),
    "message text": lambda m, x: m.message("user", x),
    "message model": lambda m, x: m.message("assistant", "hi", model=x),
    "message logprobs": lambda m, x: m.message("assistant", "hi", logprobs=x),
    "message a logprob": lambda m, x: m.message("assistant", "hi", logprobs=[x]),
    "tool_call tool": lambda m, x: m.tool_call(x),
    "tool_call arguments": lambda m, x: m.tool_call("Bash", x),
    "tool_call argument": lambda m, x: m.tool_call("Bash", {"a": [x]}),
    "tool_call call": lambda m, x: m.tool_call("Bash", {}, call=x),
    "tool_result text": lambda m, x: m.tool_result(x),
    "tool_result blocks": lambda m, x: m.tool_result([x]),
    "tool_result error": lambda m, x: m.tool_result("ok", error=x),
    "tool_result duration_s": lambda m, x: m.tool_result("ok", duration_s=x),
    "tool_result tool": lambda m, x: m.tool_result("ok", tool=x),
    "usage tokens_in": lambda m, x: m.usage(tokens_in=x),
    "usage cost_usd": lambda m, x: m.usage(cost_usd=x),
    "feedback score": lambda m, x: m.feedback(x),
    "feedback text": lambda m, x: m.feedback(text=x),
    "correction": lambda m, x: m.correction(x),
    "forget_correction": lambda m, x: m.forget_correction(x),
    "edit_correction": lambda m, x: m.edit_correction(x, x),
    "delivered": lambda m, x: m.delivered(x),
    "label": lambda m, x: m.label(x, True),
    "label good": lambda m, x: m.label("f-1", x),
    "confirm": lambda m, x: m.confirm(x),
    "confirm reason": lambda m, x: m.confirm(1, x),
    "note": lambda m, x: m.note(x),
    "memory": lambda m, x: m.memory(x),
    "memory id": lambda m, x: m.memory("a", id=x),
    "compaction": lambda m, x: m.compaction(x),
    "outcome success": lambda m, x: m.outcome(x),
    "outcome score": lambda m, x: m.outcome(score=x),
    "fault where": lambda m, x: m.fault(x, "error"),
    "fault error": lambda m, x: m.fault("hook", x),
    "check tool": lambda m, x: m.check(x),
    "check arguments": lambda m, x: m.check("Bash", x),
    "unblock reason": lambda m, x: m.unblock(x),
    "unblock decision": lambda m, x: m.unblock(decision=x),
}
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@pytest.fixture(autouse=True)
def end_what_hangs() -> Iterator[None]:
    yield
    hostile.let_go()


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": False, "config": {"tick": "manual", "wait_s": 0.1}, **options})


def faults(m: Monitor) -> list[Fault]:
    return [record.event for record in reversed(m.events()) if type(record.event) is Fault]


def check_survives(m: Monitor, entry: Entry, given: object) -> None:
    """Give something to a monitor, which goes on and has recorded one fault more."""
    before, begun = len(faults(m)), time.monotonic()
    entry(m, given)
    assert time.monotonic() - begun < SOON_S
    assert len(faults(m)) == before + 1
    m.message("user", "and now?")
    assert Message("user", "and now?") in [record.event for record in m.events()]
    assert m.decide().seq == m.decide().seq > 0


@entries
def test_monitor_strangers_a_value_that_raises_or_exits_while_it_is_read_is_one_fault(entry: Entry) -> None:
    m = monitor()
    for act in RAISES.values():
        for make in (speaking, touchy):
            check_survives(m, entry, make(act))
    for act in RAISES.values():
        if entry is not ENTRIES["fault error"]:  # which takes exceptions
            check_survives(m, entry, failing(act))


@pytest.mark.parametrize("entry", cases(ENTRIES, slow=[name for at, name in enumerate(ENTRIES) if at % 4]))
def test_monitor_strangers_a_value_that_hangs_while_it_is_read_is_one_fault(entry: Entry) -> None:
    m = monitor()
    check_survives(m, entry, speaking(hang))
    check_survives(m, entry, touchy(hang))


@pytest.mark.parametrize("act", cases({**HANGS, **RAISES}))
def test_monitor_fault_of_an_exception_without_a_text_is_recorded_with_its_type(act: Callable[[], Any]) -> None:
    m = monitor()
    m.fault("hook", failing(act))
    m.fault("hook", ValueError(speaking(act)))
    assert [(fault.where, fault.error_type, fault.message) for fault in faults(m)] == [
        ("hook", "Failing", "its message cannot be shown"),
        ("hook", "ValueError", "its message cannot be shown"),
    ]


@pytest.mark.parametrize("act", cases({**HANGS, **RAISES}))
def test_monitor_tool_call_keeps_what_can_be_read_beside_an_argument_that_cannot(act: Callable[[], Any]) -> None:
    m = monitor()
    m.tool_call("Bash", {"command": "ls", "context": speaking(act), "more": [{"n": 1}, touchy(act)]})
    (call,) = (record.event for record in m.events() if type(record.event) is ToolCall)
    assert bytes(call.arguments) == b'{"command":"ls","context":"<Speaking>","more":[{"n":1},"<Touchy>"]}'
    (fault,) = faults(m)
    assert fault.message.startswith("arguments: Speaking cannot be read: ")


@pytest.mark.slow
def test_monitor_tool_call_asks_a_type_that_hangs_once_in_a_thousand_calls() -> None:
    m, asked = monitor(), list[int]()

    class Slow:
        def __str__(self) -> str:
            asked.append(1)
            hang()
            return "late"

    begun = time.monotonic()
    for _ in range(1_000):
        m.tool_call("Bash", {"a": Slow()})
    # a thousand waits of 0.1 s would be 100 s
    assert time.monotonic() - begun < 50
    assert len(asked) == 1 and len(faults(m)) == 1
    m.tool_call("Bash", {"a": complex(1, 2)})
    calls = [bytes(record.event.arguments) for record in m.events() if type(record.event) is ToolCall]
    assert calls.count(b'{"a":"<Slow>"}') == 1_000 and calls.count(b'{"a":"(1+2j)"}') == 1


@pytest.mark.parametrize("act", [hang, *RAISES.values()], ids=["hangs", *RAISES])
def test_monitor_message_of_a_text_that_lies_is_recorded_as_the_text_that_it_is(act: Callable[[], Any]) -> None:
    m = monitor(strict=True)
    begun = time.monotonic()
    m.message(lying_text("user", act), lying_text("Fix it", act), model=lying_text("gpt", act))  # type: ignore[arg-type]
    call = m.tool_call(
        lying_text("Bash", act), lying_table(dict, act, {lying_text("a", act, is_key=True): lying_text("b", act)})
    )
    assert m.tool_call("Read", call=lying_text("mine", act)) == "mine"
    m.tool_result(lying_text("done", act), call=lying_text(call, act))
    m.feedback(lying_number(float, 0.5, act), text=lying_text("good", act))
    m.usage(tokens_in=lying_number(int, 5, act), cost_usd=lying_number(float, 0.5, act))
    m.message("assistant", "hi", logprobs=lying_table(list, act, [lying_number(float, -0.5, act)]))
    m.message("assistant", lying_table(list, act, [{"type": "text", "text": "Done."}]))
    assert time.monotonic() - begun < SOON_S
    assert faults(m) == []
    kept = m.events()
    said = [record.event for record in kept if type(record.event) is Message]
    assert {"Fix it", "Done."} <= {each.content for each in said} and {type(each.content) for each in said} == {str}
    assert any(each.model == "gpt" for each in said)
    calls = {event.tool_name: event for record in kept if type(event := record.event) is ToolCall}
    assert bytes(calls["Bash"].arguments) == b'{"a":"b"}' and type(calls["Bash"].tool_name) is str
    (result,) = (record.event for record in kept if type(record.event) is ToolResult)
    assert (result.result, result.call_id) == ("done", call)
    assert m.decide().kind == "continue"


@pytest.mark.parametrize("act", [hang, *RAISES.values()], ids=["hangs", *RAISES])
def test_monitor_message_of_blocks_that_cannot_be_read_is_one_fault(act: Callable[[], Any]) -> None:
    m = monitor()
    m.message("assistant", [touchy(act)])
    m.tool_result([touchy(act)])
    assert len(faults(m)) == 2
    (result,) = (record.event for record in m.events() if type(record.event) is ToolResult)
    assert result.result == '["<Touchy>"]'


def test_monitor_message_of_a_sequence_without_an_end_is_one_fault() -> None:
    class Slow(Endless):
        def __iter__(self) -> Iterator[float]:
            for item in super().__iter__():
                time.sleep(0.001)  # a part as long as is read at most would take a quarter of an hour
                yield item

    check_survives(monitor(), ENTRIES["message logprobs"], Slow())


@pytest.mark.parametrize("act", [hang, *RAISES.values()], ids=["hangs", *RAISES])
def test_monitor_strict_raises_what_it_documents_only(act: Callable[[], Any]) -> None:
    m = monitor(strict=True)
    for make in (speaking, touchy, failing):
        with pytest.raises(TypeError, match=r"^text must be a str, not (Speaking|Touchy|Failing)$"):
            m.goal(make(act))  # type: ignore[arg-type]
        m.tool_call("Bash", {"a": make(act)})
    assert m.decide().kind == "continue"
    # a call whose argument is unreadable is recorded all the same, with a fault
    assert len(faults(m)) == 3


def test_monitor_label_run_of_a_stranger_changes_nothing(tmp_path: Any) -> None:
    with monitor(store=tmp_path / "s.db") as m:
        m.goal("fix it")
        for act in (hang, *RAISES.values()):
            m.label_run(touchy(act))  # type: ignore[arg-type]
        m.label_run(lying_text("good", hang))  # type: ignore[arg-type]
        assert m.decide().kind == "continue"
