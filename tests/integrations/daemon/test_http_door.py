"""Hooks over HTTP: what is answered, and what is not."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from integrations.running import running, tell

from coherence.core.errors import CoherenceError
from coherence.integrations.bounded_server import MAX_CONNECTIONS
from coherence.integrations.daemon.folder import control
from coherence.integrations.daemon.http_door import HttpDoor
from coherence.integrations.daemon.http_place import (
    FILE,
    HttpPlace,
    choose_place,
    is_http_hook,
    keep_place,
    owner_of,
    path_of,
    read_place,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

PATH = path_of("claude-code", "steer")
DELETION = {"hook_event_name": "PreToolUse", "session_id": "s1", "tool_name": "Bash"}
DELETION["tool_input"] = {"command": "rm -rf ~"}  # type: ignore[assignment]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # back again at the end
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


def make_place(folder: Path) -> HttpPlace:
    place = choose_place(folder)
    keep_place(folder, place)
    return place


@contextmanager
def door(folder: Path, handle: Callable[[bytes], bytes] = lambda raw: raw) -> Iterator[tuple[HttpDoor, HttpPlace]]:
    place = make_place(folder)
    made = HttpDoor(folder, handle, 1_000)
    made.mind()
    try:
        yield made, place
    finally:
        made.close()


def post(place: HttpPlace, body: bytes = b"{}", path: str = PATH, **headers: str) -> tuple[int, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    try:
        sent = {"Authorization": f"Bearer {place.token}", **{name.replace("_", "-"): headers[name] for name in headers}}
        line.request("POST", path, body, sent)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def ask(place: HttpPlace, payload: dict[str, Any], path: str = PATH) -> dict[str, Any]:
    status, body = post(place, json.dumps(payload).encode(), path)
    assert status == 200
    found: dict[str, Any] = json.loads(body)
    return found


def test_http_door_hands_over_what_a_hook_would_send_and_returns_the_answer(folder: Path) -> None:
    with door(folder) as (_, place):
        status, body = post(place, b'{"session_id": "s1"}')
        line, _, payload = body.partition(b"\n")
        assert status == 200 and line.split()[:2] == [b"coherence-hook", b"claude-code"]
        assert line.split()[3] == b"steer" and payload == b'{"session_id": "s1"}'
        _, body = post(place, path=path_of("claude-code", "observe"))
        assert body.partition(b"\n")[0].split()[3] == b"observe"


@pytest.mark.parametrize(
    ("headers", "path", "body", "status"),
    [
        ({"Authorization": "Bearer wrong"}, PATH, b"{}", 401),
        ({"Authorization": ""}, PATH, b"{}", 401),
        ({"Authorization": "Bearer \xff"}, PATH, b"{}", 401),
        ({"Origin": "http://127.0.0.1"}, PATH, b"{}", 401),
        ({"Host": "evil.example"}, PATH, b"{}", 401),
        ({"Host": "localhost"}, PATH, b"{}", 401),
        ({}, "/coherence/nobody/steer", b"{}", 404),
        ({}, "/../../etc/passwd", b"{}", 404),
        ({"Content-Length": "-1"}, PATH, b"", 411),
        ({"Content-Length": "9" * 4_000}, PATH, b"", 413),
        ({}, PATH, b"x" * 1_001, 413),
    ],
)
def test_http_door_answers_nothing_without_token_to_pages_or_of_another_form(
    folder: Path, headers: dict[str, str], path: str, body: bytes, status: int
) -> None:
    asked = []
    with door(folder, lambda raw: asked.append(raw) or b"told") as (_, place):  # type: ignore[func-returns-value]
        assert post(place, body, path, **headers) == (status, b"")
    assert not asked


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01 nonsense\r\n\r\n", b"POST\r\n\r\n"])
def test_http_door_answers_another_method_or_no_http_without_a_word(folder: Path, sent: bytes) -> None:
    with door(folder) as (_, place), socket.create_connection(("127.0.0.1", place.port), 10) as line:
        line.sendall(sent)
        answer = b""
        while part := line.recv(1_000):
            answer += part
        assert b"coherence" not in answer.lower() and b"python" not in answer.lower()
        assert answer.partition(b"\r\n\r\n")[2] == b""
        assert post(place)[0] == 200


def test_http_door_sends_an_answer_in_one_piece(folder: Path) -> None:
    with (
        door(folder, lambda _: b"x" * 500) as (_, place),
        socket.create_connection(("127.0.0.1", place.port), 10) as line,
    ):
        head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nAuthorization: Bearer {place.token}\r\n"
        line.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
        assert line.recv(10_000).endswith(b"x" * 500)  # one segment: one call returns all of it


def test_http_door_with_all_connections_taken_goes_on_when_one_ends(folder: Path) -> None:
    with door(folder) as (_, place):
        taken = [socket.create_connection(("127.0.0.1", place.port), 10) for _ in range(MAX_CONNECTIONS)]
        with pytest.raises((OSError, http.client.HTTPException)):
            post(place)
        for line in taken:
            line.close()
        until = time.monotonic() + 20
        while True:
            try:
                assert post(place)[0] == 200
                break
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < until
                time.sleep(0.05)


def test_http_door_mind_follows_the_state_folder(folder: Path) -> None:
    with door(folder) as (made, place):
        (folder / FILE).unlink()
        made.mind()
        assert (made.is_open, made.port, made.shut) == (False, None, "")
        with pytest.raises(ConnectionRefusedError):
            post(place)
        (folder / FILE).write_text("{")
        (folder / FILE).chmod(0o600)
        made.mind()
        assert (made.is_open, made.port) == (False, None) and "damaged" in made.shut
        (folder / FILE).unlink()
        again = make_place(folder)
        made.mind()
        assert (made.is_open, made.port, made.shut) == (True, again.port, "") and post(again)[0] == 200


def test_http_door_prove_holds_once(folder: Path) -> None:
    with door(folder) as (made, place):
        proof = made.prove()
        assert post(place, Authorization=f"Bearer {proof.word}") == (200, proof.answer.encode())
        assert post(place, Authorization=f"Bearer {proof.word}") == (401, b"")
        words = [made.prove().word for _ in range(100)]
        assert made.proven(words[0]) is None and made.proven(words[-1]) is not None


def test_http_door_a_port_that_is_taken_is_said_and_tried_again(folder: Path) -> None:
    place = make_place(folder)
    made = HttpDoor(folder, lambda raw: raw, 1_000)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", place.port))
        other.listen()
        made.mind()
        assert (made.is_open, made.port) == (False, place.port)
        assert f"port {place.port} belongs to another process" in made.shut
        assert not made.is_strangers()  # it is this user's
        if Path("/proc/net/tcp").exists():
            assert owner_of(place.port) == os.getuid()
    made.mind()
    try:
        assert (made.is_open, made.shut) == (True, "")
    finally:
        made.close()


def test_choose_place_and_keep_place_are_for_good_and_for_the_user_alone(folder: Path) -> None:
    assert choose_place(folder) != choose_place(folder)  # nothing is kept yet
    place = make_place(folder)
    assert choose_place(folder) == read_place(folder) == place
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600 and len(place.token) >= 40
    (folder / FILE).chmod(0o644)
    with pytest.raises(CoherenceError, match="only you can read"):
        read_place(folder)


def test_is_http_hook_goes_by_the_whole_url() -> None:
    ours = HttpPlace(20_000, "t").hook("claude-code", "steer", 5)
    assert is_http_hook(ours)
    assert not is_http_hook({**ours, "url": "http://127.0.0.1.evil.org:20000/coherence/claude-code/steer"})
    assert not is_http_hook({**ours, "url": ours["url"] + "/more"}) and not is_http_hook({"url": 7})


def test_owner_of_reads_the_listeners_alone(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    # 20001 = 0x4E21; 0A: listens, 01: is connected
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:4E20 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000 0 1\n"
        "   1: 0200000A:4E21 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001 0 1\n"
        "   2: 00000000:4E21 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002 0 1\n"
    )
    assert owner_of(20_000, str(table)) is None
    assert owner_of(20_001, str(table)) == 1002
    assert owner_of(20_001, str(tmp_path / "none")) is None


def test_hook_daemon_answers_both_ways_of_one_session(folder: Path) -> None:
    place = make_place(folder)
    with running(folder):
        tell("UserPromptSubmit", "s1", prompt="List the files.")
        answer = ask(place, DELETION)
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
        assert ask(place, DELETION, path_of("claude-code", "observe")) == {}
        found = control(folder, "prove")
        assert found is not None and found["port"] == place.port and found["shut"] == ""
        assert post(place, Authorization=f"Bearer {found['word']}") == (200, found["answer"].encode())


@pytest.mark.skipif(
    sys.platform == "win32" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users"
)
def test_hook_daemon_a_port_of_another_user_is_told_and_refuses_the_next_prompt(folder: Path) -> None:
    place = make_place(folder)
    listens = (
        f"import os, socket; os.setuid(65534); s = socket.socket(); s.bind(('127.0.0.1', {place.port})); "
        "s.listen(); print('up', flush=True); s.accept()"
    )
    with subprocess.Popen([sys.executable, "-c", listens], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"up\n"
        try:
            with running(folder):
                told = tell("SessionStart", "s1", source="startup")
                assert f"port {place.port} belongs to another process" in told["systemMessage"]
                answer = tell("UserPromptSubmit", "s1", prompt="List the files.")
                assert answer["decision"] == "block" and "coherence init --yes" in answer["reason"]
        finally:
            other.kill()
