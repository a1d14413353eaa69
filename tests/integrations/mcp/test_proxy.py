from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence import Monitor
from coherence.core.events import ToolCall, ToolResult, decode_event
from coherence.integrations.mcp.proxy import Lines
from coherence.store.store import Store

COHERENCE = [sys.executable, "-m", "coherence", "mcp"]
SERVER = Path(__file__).with_name("echo_server.py")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the test speaks by pipes and signals")


def asks(tool: str, arguments: Any, id: int = 1) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode() + b"\n"


def command(store: Path, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    server = [sys.executable, str(SERVER), *words]
    return [*COHERENCE, "--store", str(store), *options, "--proxy", *server]


def run(store: Path, sent: bytes, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(store, *words, options=options), input=sent, capture_output=True, timeout=60)


def alone(sent: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, str(SERVER), *words], input=sent, capture_output=True, timeout=60)


def acts(store: Path) -> list[ToolCall | ToolResult]:
    with Store(store) as kept:
        (row,) = kept.sessions()
        found = [decode_event(event.data) for event in kept.events(row.id)]
        assert (row.agent, row.source) == ("mcp", "wrap")
    return [each for each in found if isinstance(each, ToolCall | ToolResult)]


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"a\nb", b"0123456789\n"])), st.integers(1, 12))
def test_lines_loses_nothing_and_keeps_whole_lines_whole(parts: list[bytes], limit: int) -> None:
    whole = b"".join(parts)
    for lines in (Lines(), Lines(limit)):
        found = [each for part in parts for each in lines.feed(part)]
        assert b"".join(line for line, _ in found) + lines.rest() == whole
        complete = [line for line, is_whole in found if is_whole]
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in complete)
        known = whole.splitlines(keepends=True) if b"\r" not in whole else whole.split(b"\n")
        assert all(line in known or line[:-1] in known for line in complete)
    unbound = Lines()
    assert [is_whole for part in parts for _, is_whole in unbound.feed(part)] == [True] * whole.count(b"\n")


def test_lines_hands_on_a_line_beyond_the_limit_in_parts() -> None:
    lines = Lines(4)
    assert list(lines.feed(b"123456")) == [(b"123456", False)]
    assert list(lines.feed(b"78\nab\n")) == [(b"78\n", False), (b"ab\n", True)]


def test_run_passes_everything_but_refused_calls_as_the_server_alone_would(tmp_path: Path) -> None:
    sent = b"".join(
        [
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"x":  [1, 2.50]}}\n',
            b"what is this\n",
            b'{"jsonrpc":"2.0","method":"notifications/unheard-of"}\r\n',
            asks("ls", {"path": "\u00e4"}, 1),
            asks("broken", {}, 2),
            asks("fail", {}, 3),
            asks("ask", {"for": "a reply"}, 4),
            b'{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}\n',
            b'{"last": "without an end"}',
        ]
    )
    store = tmp_path / "runs.db"
    expected, done = alone(sent), run(store, sent, options=("--goal", "List the files."))
    assert (done.stdout, done.returncode) == (expected.stdout, expected.returncode) and done.returncode == 3
    assert b"the server begins\n" in done.stderr
    calls = [each.tool_name for each in acts(store) if isinstance(each, ToolCall)]
    results = [(e.result, e.error, e.error_type) for e in acts(store) if isinstance(e, ToolResult)]
    assert calls == ["ls", "broken", "fail", "ask"]
    assert results == [
        ('{"path": "\\u00e4"}', False, None),
        ("{}", True, None),
        ("no such file", True, "-32603"),
        ("the server ended with exit status 3", True, "ended"),
    ]


def test_run_refuses_a_call_which_the_server_never_sees(tmp_path: Path) -> None:
    sent = asks("Bash", {"command": "rm -rf /"}, 1) + asks("ls", {}, 2)
    done = run(tmp_path / "runs.db", sent, options=("--goal", "List the files."))
    refused, listed = map(json.loads, done.stdout.splitlines())
    assert refused["id"] == 1 and refused["result"]["isError"] is True
    assert "coherence refused this call: rm -rf /" in refused["result"]["content"][0]["text"]
    assert listed["id"] == 2 and listed["result"]["isError"] is False
    assert [each.tool_name for each in acts(tmp_path / "runs.db") if isinstance(each, ToolCall)] == ["ls"]


@pytest.mark.slow
def test_run_a_budget_of_the_settings_ends_calls(tmp_path: Path) -> None:
    config = tmp_path / "coherence.toml"
    config.write_text("[budget]\ncalls = 1\n")
    sent = asks("ls", {"at": 1}, 1) + asks("ls", {"at": 2}, 2)
    done = run(tmp_path / "runs.db", sent, options=("--config", str(config)))
    answers = {each["id"]: each["result"] for each in map(json.loads, done.stdout.splitlines())}
    assert answers[1]["isError"] is False and answers[2]["isError"] is True
    assert "1 of 1 calls are used" in answers[2]["content"][0]["text"]


def test_run_ends_with_a_server_that_dies_while_the_client_waits(tmp_path: Path) -> None:
    with subprocess.Popen(command(tmp_path / "a.db"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(asks("die", {}))
        process.stdin.flush()  # and stays open
        assert process.stdout.read() == b""
        assert process.wait(30) == 7
    (call, result) = acts(tmp_path / "a.db")
    assert isinstance(call, ToolCall) and isinstance(result, ToolResult)
    assert (result.result, result.error) == ("the server ended with exit status 7", True)


@pytest.mark.parametrize(
    "trick", ["garbage", *(pytest.param(trick, marks=pytest.mark.slow) for trick in ("flood", "endless"))]
)
def test_run_passes_whatever_a_server_writes(tmp_path: Path, trick: str) -> None:
    sent = asks("ls", {})
    assert run(tmp_path / "a.db", sent, trick).stdout == alone(sent, trick).stdout
    assert len(acts(tmp_path / "a.db")) == 2


@pytest.mark.slow
def test_run_ends_though_another_process_holds_the_output_open(tmp_path: Path) -> None:
    server = f"sleep 60 & echo $! > {tmp_path}/pid; exit 5"
    command = [
        sys.executable,
        "-m",
        "coherence",
        "mcp",
        "--store",
        str(tmp_path / "a.db"),
        "--proxy",
        "sh",
        "-c",
        server,
    ]
    began = time.monotonic()
    assert subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=50).returncode == 5
    assert time.monotonic() - began < 40
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_run_hands_on_a_signal_to_the_server(tmp_path: Path) -> None:
    with subprocess.Popen(command(tmp_path / "a.db"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"seen: {}\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_run_ends_a_server_whose_client_has_gone(tmp_path: Path) -> None:
    with subprocess.Popen(
        command(tmp_path / "a.db", "flood"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        process.stdin.close()
        assert process.wait(30) != 0  # the server learns it by a broken pipe


def test_run_says_that_a_server_cannot_be_started(tmp_path: Path) -> None:
    words = [*COHERENCE, "--store", str(tmp_path / "a.db"), "--proxy", "no-such-server"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "error: no-such-server: cannot be started: No such file or directory\n"


def test_run_goes_on_without_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("this is no store, but somebody's notes " * 20)
    sent = asks("ls", {}, 1) + asks("Bash", {"command": "rm -rf /"}, 2)
    done = run(tmp_path / "a.db", sent)
    assert b"warning: nothing is recorded: " in done.stderr
    assert {each["id"]: each["result"]["isError"] for each in map(json.loads, done.stdout.splitlines())} == {
        1: False,
        2: True,
    }


@pytest.mark.slow
def test_run_records_what_a_monitor_fed_by_hand_records(tmp_path: Path) -> None:
    script = [("ls", {"at": at % 3}) for at in range(9)] + [("broken", {"at": 1})] * 3
    with Monitor(agent="mcp", store=tmp_path / "hand.db", goal="List the files.", source="wrap") as m:
        for tool, arguments in script:
            assert m.check(tool, arguments)
            call = m.tool_call(tool, arguments)
            m.tool_result(json.dumps(arguments), error=tool == "broken", call=call, duration_s=0.0)
    with subprocess.Popen(
        command(tmp_path / "proxy.db", options=("--goal", "List the files.")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for at, (tool, arguments) in enumerate(script):
            process.stdin.write(asks(tool, arguments, at))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == at
        process.stdin.close()
    assert _told(tmp_path / "proxy.db") == _told(tmp_path / "hand.db")


def _told(path: Path) -> list[Any]:
    """Return all that is recorded of a session but ids, times and durations."""
    found: list[Any] = []
    with Store(path) as kept:
        (row,) = kept.sessions()
        for event in kept.events(row.id):
            data = json.loads(event.data)
            for name in ("gen_ai.tool.call.id", "coherence.duration_s", "duration_s"):
                data.pop(name, None)
            decision = event.decision and event.decision.kind
            if event.reading is None:
                found.append((event.kind, data, decision))
            else:
                pressure = round(event.reading.pressure or 0.0, 2)  # it calms down with time
                found.append((event.kind, data, decision, event.reading.coherence_index, pressure))
    return found
