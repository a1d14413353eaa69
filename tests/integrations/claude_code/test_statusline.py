"""The script of the status line, as the client starts it: a process without the package."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from integrations.running import fail, running, tell

from coherence.integrations.claude_code import statusline
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.control import CONTROL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

PAYLOAD: dict[str, Any] = {
    "session_id": "s1",
    "cwd": "/src/shop",
    "model": {"id": "claude-sonnet-5-5", "display_name": "Sonnet 5.5"},
    "version": "2.1.330",
    "cost": {"total_cost_usd": 0.056088, "total_duration_ms": 379305, "total_api_duration_ms": 89},
    "context_window": {"total_input_tokens": 13978, "used_percentage": 1, "remaining_percentage": 99},
    "exceeds_200k_tokens": False,
}
FIRST = {**PAYLOAD, "cost": {"total_cost_usd": 0}, "context_window": {"current_usage": None, "used_percentage": None}}
"""Of a session in which nothing was asked yet."""

STANDS = {"index": 0.42, "band": "orange", "pressure": 0.5, "decision": "warn", "cause": "the newest calls failed"}


@pytest.fixture(autouse=True)
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # back again at the end
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def run(folder: Path, payload: object, *options: str, **env: str) -> str:
    """Return the line; whatever is asked, it is one, and the script ends well."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    command = [sys.executable, "-I", "-S", statusline.__file__, str(folder), *options]
    done = subprocess.run(command, input=raw, capture_output=True, check=False, env={**os.environ, **env})
    assert (done.returncode, done.stderr) == (0, b"")
    (line,) = done.stdout.decode().splitlines()
    return line


def test_statusline_constants_are_those_of_the_hook_and_the_daemon() -> None:
    assert (statusline.SOCKET, statusline.CONTROL) == (hook.SOCKET, CONTROL)


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        pytest.param(PAYLOAD, "coherence: no daemon · context 1% · $0.06", id="a session"),
        pytest.param(FIRST, "coherence: no daemon · $0.00", id="its beginning"),
        pytest.param(b"", "coherence: no daemon", id="nothing"),
        pytest.param(b"[" * 1_000_000, "coherence: no daemon", id="nested"),
        pytest.param(b"\xff\xfe", "coherence: no daemon", id="no UTF-8"),
        pytest.param({"session_id": 1, "cost": [], "context_window": "x"}, "coherence: no daemon", id="types"),
        pytest.param({"cost": {"total_cost_usd": "1"}}, "coherence: no daemon", id="a number as text"),
    ],
)
def test_main_without_a_daemon_says_so(tmp_path: Path, payload: object, line: str) -> None:
    assert run(tmp_path / "state", payload) == line
    assert not (tmp_path / "state").exists()


def test_main_of_a_real_daemon(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with running(folder):
        assert run(folder, PAYLOAD) == "coherence: nothing seen yet · context 1% · $0.06"
        tell("UserPromptSubmit", "s1", prompt="Make the tests pass")
        while "the daemon is busy" in (line := run(folder, PAYLOAD)):  # the machine, that is: it waits for 0.2 s
            time.sleep(0.1)
        assert "no reading yet" in line or "pressure 0.00" in line
        fail("s1", 8)
        line = run(folder, PAYLOAD, NO_COLOR="1")
        pattern = r"(yellow|orange|red) 0\.\d\d · pressure 0\.\d\d · context 1% · \$0\.06 · \w.*"
        assert re.fullmatch(pattern, line) and len(line) <= 80
        found = json.loads(run(folder, PAYLOAD, "--json"))
        assert found["schema"] == "coherence.statusline/1" and found["daemon"] and found["cause"]
        assert (found["context_percent"], found["cost_usd"]) == (1, 0.056088)


def test_main_a_folder_that_others_may_enter_is_not_asked(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with running(folder):
        tell("UserPromptSubmit", "s1", prompt="Make the tests pass")
        folder.chmod(0o755)
        assert run(folder, PAYLOAD).startswith("coherence: no daemon")
        folder.chmod(0o700)


@pytest.mark.parametrize("answer", [None, b"", b"{}", b'{"sessions": 1}', b'{"sessions": [{}]}', b'{"error": "x"}'])
def test_ask_a_daemon_that_does_not_answer_is_not_waited_for(tmp_path: Path, answer: bytes | None) -> None:
    tmp_path.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(statusline.SOCKET)
        server.listen()
        command = [sys.executable, "-I", "-S", statusline.__file__, str(tmp_path)]
        began = time.monotonic()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            line, _ = server.accept()
            with line:
                if answer is not None:
                    line.sendall(answer)
                    line.shutdown(socket.SHUT_WR)
                said, _ = process.communicate(timeout=10)
    assert said == b"coherence: the daemon is busy\n" and process.returncode == 0
    assert time.monotonic() - began < 5


def test_draw_the_light_is_a_dot_in_its_colour_or_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    found = statusline.figures(PAYLOAD, STANDS)
    rest = " 0.42 · pressure 0.50 · context 1% · $0.06 · the newest calls failed"
    assert statusline.draw(found) == f"\x1b[38;5;208m●\x1b[0m{rest}"
    monkeypatch.setenv("NO_COLOR", "1")
    assert statusline.draw(found) == f"orange{rest}"


@pytest.mark.parametrize("columns", [1, 30, 50, 60, 80, 200])
@pytest.mark.parametrize("cause", ["x" * 500, "没有这样的文件" * 40, "e\u0301" * 300])
def test_draw_no_wider_than_the_terminal_and_80(columns: int, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    line = statusline.draw(statusline.figures(PAYLOAD, {**STANDS, "cause": cause}))
    assert 1 <= statusline._width(line) <= min(columns, 80)


def test_draw_what_an_agent_has_written_controls_no_terminal() -> None:
    line = statusline.draw(statusline.figures(PAYLOAD, {**STANDS, "cause": "\x1b[2J\nred\u202eflag"}))
    assert line.endswith(" [2J red flag")


@pytest.mark.parametrize("scanner", ["_json", "json"])
def test_read_json_is_what_json_reads(scanner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if scanner == "json":
        monkeypatch.setitem(sys.modules, "_json", None)
    for value in (PAYLOAD, [1, -2.5e3, None, True, 'é"\n'], "x", {}):
        assert statusline.read_json(b" \n" + json.dumps(value).encode()) == value
    assert statusline.quoted('a"\n\ud800é') == json.dumps('a"\n\ud800é')
    for wrong in (b"", b"{", b"nope", b'{"a": }'):
        with pytest.raises(ValueError):  # noqa: PT011  # of json, with its own words
            statusline.read_json(wrong)


def test_statusline_imports_as_little_as_possible(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-X", "importtime", statusline.__file__, str(tmp_path)]
    listed = subprocess.run(command, input=json.dumps(PAYLOAD), capture_output=True, check=True, text=True)
    loaded = {line.rpartition("|")[2].strip() for line in listed.stderr.splitlines()}
    assert {"_socket", "_json"} <= loaded
    assert not loaded & {"socket", "json", "re", "subprocess", "coherence", "typing", "hashlib"}
