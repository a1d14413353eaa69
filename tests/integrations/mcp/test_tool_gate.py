from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from coherence import Monitor
from coherence.core.events import Event, ToolCall, ToolResult
from coherence.integrations.mcp import tool_gate
from coherence.integrations.mcp.tool_gate import MAX_DIGITS, TOO_DEEP, Passed, ToolGate

WIPE = {"command": "rm -rf /"}


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor(goal="List the files.", embedder=False, strict=True) as m:
        yield m


def asks(tool: str, arguments: Any = None, id: Any = 1, **more: Any) -> bytes:
    params = {"name": tool, "arguments": arguments, **more}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def answers(id: Any, **fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, **fields}).encode() + b"\n"


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def recorded(m: Monitor) -> list[Event]:
    return [each.event for each in m.events()[::-1] if isinstance(each.event, ToolCall | ToolResult)]


def results(m: Monitor) -> list[tuple[str, bool, str | None]]:
    return [(e.result, e.error, e.error_type) for e in recorded(m) if isinstance(e, ToolResult)]


def test_from_client_records_a_call_and_passes_it_byte_for_byte(monitor: Monitor) -> None:
    gate = ToolGate(monitor)
    line = b'{ "method":"tools\\/call",  "id":1,"params":{"name":"ls","arguments":{"path":"\\u00e4"}} }\r\n'
    assert gate.from_client(line) == Passed(line)
    gate.from_server(answers(1, result=says("a.txt", isError=False)))
    call, result = recorded(monitor)
    assert isinstance(call, ToolCall) and isinstance(result, ToolResult)
    assert (call.tool_name, json.loads(bytes(call.arguments))) == ("ls", {"path": "ä"})
    assert (result.result, result.error, result.call_id) == ("a.txt", False, call.call_id)
    assert result.duration_s is not None and 0.0 <= result.duration_s < 10.0


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"some/new","params":{"name":"Bash","arguments":{"command":"rm -rf /"}}}\n',
        b'{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}\n',
        b'{"method":"tools/call","id":1,"params":{"name":7}}\n',
        b'{"method":"tools/call","id":1,"params":[]}\n',
        b'{"method":"tools/call","id":1}\n',
        b"[]\n",
        b"7\n",
        b"\n",
        b"no json\n",
        b"\xff\xfe{}\n",
        b'{"method": "notifications/cancelled", "params": {"requestId": 99}}',
    ],
)
def test_from_client_passes_everything_else_and_records_nothing(monitor: Monitor, line: bytes) -> None:
    assert ToolGate(monitor).from_client(line) == Passed(line)
    assert [each.event.__class__.__name__ for each in monitor.events()] == ["Goal"]


def test_from_client_answers_a_refused_call_with_the_reason(monitor: Monitor) -> None:
    passed = ToolGate(monitor).from_client(asks("Bash", WIPE, id="a"))
    assert passed.on == b""
    answer = json.loads(passed.back)
    assert answer["id"] == "a" and answer["result"]["isError"] is True
    (content,) = answer["result"]["content"]
    assert content["text"].startswith("coherence refused this call: rm -rf /") and "unblock" not in content["text"]
    assert recorded(monitor) == []  # it was never made
    assert len(passed.back) < 2_500


def test_from_client_refuses_beyond_a_budget() -> None:
    with Monitor(goal="List the files.", embedder=False, budget={"calls": 1}) as m:
        gate = ToolGate(m)
        assert gate.from_client(asks("ls", {"at": 1})).on
        gate.from_server(answers(1, result=says("a")))
        refused = gate.from_client(asks("ls", {"at": 2}, id=2))
    assert refused.on == b"" and b"1 of 1 calls are used" in refused.back


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command":"rm -rf /","x":NaN}',
        '{"command":"rm -rf /","x":%s}' % ("9" * (MAX_DIGITS + 1_000)),
        '{"command":"rm -rf /","x":"\\ud800"}',
        '{"command":"rm -rf /","x":"\t"}',
    ],
)
def test_from_client_judges_what_only_lenient_readers_can_read(monitor: Monitor, arguments: str) -> None:
    line = '\ufeff{"id":1,"method":"tools/call","params":{"name":"Bash","arguments":' + arguments + "}}\n"
    assert ToolGate(monitor).from_client(line.encode()).on == b""


def test_from_client_refuses_what_is_nested_too_deeply_to_be_judged(monitor: Monitor) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    line = '{"id":1,"method":"tools/call","params":{"name":"Bash","arguments":' + deep + "}}\n"
    assert ToolGate(monitor).from_client(line.encode()) == Passed(b"", TOO_DEEP)


def test_from_client_takes_refused_calls_out_of_a_batch(monitor: Monitor) -> None:
    good, bad, other = (json.loads(asks(*each)) for each in (("ls", {}, 1), ("Bash", WIPE, 2), ("cat", {}, 3)))
    gate = ToolGate(monitor)
    whole = json.dumps([good, other, "odd"]).encode() + b"\n"
    assert gate.from_client(whole) == Passed(whole)
    passed = gate.from_client(json.dumps([good, bad, other]).encode())
    assert json.loads(passed.on) == [good, other] and json.loads(passed.back)["id"] == 2
    assert gate.from_client(json.dumps([bad]).encode()).on == b""
    assert gate.from_client(json.dumps([{key: bad[key] for key in ("method", "params")}]).encode()) == Passed(b"")


def test_from_server_takes_errors_of_tools_and_of_the_protocol(monitor: Monitor) -> None:
    gate = ToolGate(monitor)
    for id in (1, "1", 2, 3):
        gate.from_client(asks("cat", {"of": str(id)}, id=id))
    gate.from_server(answers("1", result=says("not found", isError=True)))
    gate.from_server(answers(1, error={"code": -32602, "message": "unknown tool"}))
    gate.from_server(answers(1, result=says("twice")))
    gate.from_server(json.dumps([json.loads(answers(2, result={"structuredContent": {"a": 1}}))]).encode())
    gate.from_server(answers(3, error="odd"))
    assert results(monitor) == [
        ("not found", True, None),
        ("unknown tool", True, "-32602"),
        ('{"a":1}', False, None),
        ("odd", True, None),
    ]


@pytest.mark.parametrize("line", [b"garbage", b"", b"[[[", b'{"id":[1]}', b'{"id":1,"method":"ping"}', b"[7]", b"\xff"])
def test_from_server_is_left_cold_by_garbage(monitor: Monitor, line: bytes) -> None:
    gate = ToolGate(monitor)
    gate.from_client(asks("ls"))
    gate.from_server(line)
    assert len(recorded(monitor)) == 1 and not [each for each in monitor.events() if "Fault" in repr(each)]


def test_from_client_a_cancelled_call_has_its_end(monitor: Monitor) -> None:
    gate = ToolGate(monitor)
    gate.from_client(asks("ls"))
    cancel = b'{"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "too slow"}}\n'
    assert gate.from_client(cancel) == Passed(cancel)
    gate.from_server(answers(1, result=says("late")))
    assert results(monitor) == [("too slow", True, "cancelled")]


def test_from_client_a_call_that_asked_for_input_goes_on_as_one_call(monitor: Monitor) -> None:
    gate = ToolGate(monitor)
    gate.from_client(asks("book", {"seat": 1}))
    gate.from_server(answers(1, result={"resultType": "input_required", "inputRequests": {"a": {}}}))
    gate.from_client(asks("book", {"seat": 1}, id=2, inputResponses={"a": {"action": "accept"}}))
    gate.from_server(answers(2, result=says("booked", resultType="complete")))
    call, result = recorded(monitor)
    assert isinstance(call, ToolCall) and isinstance(result, ToolResult)
    assert (result.result, result.call_id) == ("booked", call.call_id)


def test_end_gives_calls_without_a_result_an_end(monitor: Monitor) -> None:
    gate = ToolGate(monitor)
    gate.from_client(asks("ls"))
    gate.from_client(asks("ls", id=2))
    gate.from_server(answers(2, result={"resultType": "input_required"}))
    gate.end("the server ended")
    gate.end("twice")
    assert results(monitor) == [("the server ended", True, "ended")] * 2


def test_from_client_remembers_only_so_many_calls(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_gate, "MAX_OPEN", 2)
    gate = ToolGate(monitor)
    for id in (1, 2, 3):
        gate.from_client(asks("ls", {"at": id}, id=id))
    for id in (1, 2, 3):
        gate.from_server(answers(id, result=says(str(id))))
    assert [text for text, _, _ in results(monitor)] == ["2", "3"]


def test_from_client_a_failure_inside_lets_the_message_through() -> None:
    with Monitor(goal="List the files.", embedder=False) as m:
        gate = ToolGate(m)
        gate._open = None  # type: ignore[assignment]  # a slip of this package
        line = asks("ls")
        assert gate.from_client(line) == Passed(line)
        assert any("mcp" in repr(each.event) for each in m.events())
