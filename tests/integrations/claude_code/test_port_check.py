"""Check of the port to which the client posts hooks."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import pytest
from integrations.running import running

from coherence.integrations.claude_code.port_check import check_port
from coherence.integrations.daemon.http_place import HttpPlace, choose_place, keep_place

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # back again at the end
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


def place_of(state: Path) -> HttpPlace:
    place = choose_place(state)
    keep_place(state, place)
    return place


def test_check_port_without_one_is_ok(state: Path) -> None:
    assert check_port(state) == ("OK", "no hook is posted", "")


def test_check_port_without_a_daemon_and_with_one(state: Path, tmp_path: Path) -> None:
    place = place_of(state)
    assert check_port(state)[0] == "WARN"
    assert Path.cwd() == tmp_path
    with running(state):
        assert check_port(state) == ("OK", f"the daemon answers on port {place.port}", "")


def test_check_port_of_another_process_fails_and_shows_it_no_token(state: Path) -> None:
    place = place_of(state)
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", place.port)) as other:

        def answer() -> None:
            line, _ = other.accept()
            got.append(line.recv(10_000))
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            line.close()

        threading.Thread(target=answer, daemon=True).start()
        with running(state):
            level, found, mend = check_port(state)
    assert (level, mend) == ("FAIL", "coherence init --yes") and str(place.port) in found
    assert not any(place.token.encode() in each for each in got)
