"""``coherence serve`` as a process: what it prints, what it refuses, how it ends, and what a kill leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from coherence.cli.main import main
from coherence.monitor.monitor import Monitor
from coherence.store.store import Store
from coherence.web.browser import open_page

WAIT_S = 30.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Monitor(agent="coder", session="1", store=tmp_path / "runs.db", embedder=False, goal="say hello") as monitor:
        monitor.message("assistant", "Hello.")
        monitor.decide()
    return tmp_path / "runs.db"


class Command:
    """The command as a process of its own, with a client that has logged in."""

    def __init__(self, *arguments: str | Path, code: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, *(["-c", code] if code else ["-m", "coherence"]), "serve", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#token=(\S{43})$", self.said.strip())
        assert found is not None, self.said + self.process.stdout.read()
        self.base, self.token = found.groups()

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Log a client in."""
        with httpx.Client(base_url=self.base, headers={"Origin": self.base}, timeout=WAIT_S) as client:
            assert client.post("/login", json={"token": self.token}).status_code == 204
            yield client


@contextmanager
def running(*arguments: str | Path, code: str = "") -> Iterator[Command]:
    command = Command(*arguments, code=code)
    try:
        yield command
    finally:
        command.process.kill()
        command.process.communicate(timeout=WAIT_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_serve_prints_its_address_and_ends_at_once_while_a_page_is_live(path: Path, number: signal.Signals) -> None:
    with running(path, "--port", "0") as command, command.client() as client:
        about = client.get("/api/about").json()
        assert (about["store"], about["write"]) == ("runs.db", False) and about["version"]
        with client.stream("GET", "/api/live") as live:
            lines = live.iter_lines()
            while not next(lines).startswith("data:"):
                pass
            began = time.monotonic()
            command.process.send_signal(number)
            assert command.process.wait(WAIT_S) == 0
            # within a second; a loaded machine takes its time to end a process
            assert time.monotonic() - began < 3
            with suppress(httpx.HTTPError):
                assert not [line for line in lines if line.startswith("data:")]
        assert command.process.stdout is not None
        rest = command.process.stdout.read()
        assert "read-only; --write lets pages label" in rest and rest.endswith("ends\n") and "Traceback" not in rest


SLOW = """
import sys, time
from coherence.cli.main import main
from coherence.views.views import Views
Views.fleet = lambda self: time.sleep(300)
sys.argv[0] = "coherence"
main()
"""


@pytest.mark.slow
def test_serve_ends_while_a_query_goes_on(path: Path) -> None:
    with running(path, "--port", "0", code=SLOW) as command, command.client() as client:

        def ask() -> None:
            with suppress(httpx.HTTPError):
                client.get("/api/fleet")

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.5)
        assert client.get("/api/about").status_code == 200 and thread.is_alive()
        began = time.monotonic()
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(WAIT_S) == 0
        assert time.monotonic() - began < 5, "an answer has a second to be sent"
        thread.join(WAIT_S)


def test_serve_write_and_host_name_reach_the_server(path: Path) -> None:
    with running(path, "--port", "0", "--write", "--host-name", "dev.example") as command, command.client() as client:
        assert client.get("/api/about", headers={"Host": "dev.example"}).json()["write"] is True
        assert client.get("/api/about", headers={"Host": "evil.example"}).status_code == 421
        body = {"agent": "coder", "session": "1", "label": "good"}
        assert client.post("/api/label", json=body).json() == {"run": 1}


@pytest.mark.slow
def test_serve_a_kill_while_pages_write_leaves_the_store_whole(path: Path) -> None:
    for _ in range(3):
        with running(path, "--port", "0", "--write") as command, command.client() as client:
            stop = threading.Event()

            def write(client: httpx.Client = client, stop: threading.Event = stop) -> None:
                number = 0
                with suppress(httpx.HTTPError):
                    while not stop.is_set():
                        number += 1
                        client.post("/api/unblock", json={"agent": "coder", "session": "1", "reason": f"no. {number}"})

            body = {"agent": "coder", "session": "1", "reason": "first"}
            assert client.post("/api/unblock", json=body).status_code == 200
            thread = threading.Thread(target=write)
            thread.start()
            with Monitor(agent="other", store=path, embedder=False, goal="say hello") as monitor:
                for number in range(40):
                    monitor.message("assistant", f"Hello {number}.")
                    monitor.decide()
                    if number == 20:
                        os.kill(command.process.pid, signal.SIGKILL)
            stop.set()
            thread.join(WAIT_S)
        with Store(path) as store:
            assert not store.verify()
            row = store.session("other")
            assert row is not None and sum(event.kind == "message" for event in store.events(row.id)) == 40
            pages = store.session("coder", "1")
            assert pages is not None and any(event.kind == "feedback" for event in store.events(pages.id))


@pytest.mark.parametrize(
    ("make", "says"),
    [("nothing", "no such file"), ("folder", "this is a folder"), ("text", "not a store"), ("link", "symbolic link")],
)
def test_serve_says_what_is_wrong_with_its_store(path: Path, make: str, says: str) -> None:
    wrong = path.with_name("wrong.db")
    if make == "folder":
        wrong.mkdir()
    elif make == "text":
        wrong.write_text("hello")
    elif make == "link":
        wrong.symlink_to(path)
    result = CliRunner().invoke(main, ["serve", str(wrong)])
    assert result.exit_code == 2 and says in result.stderr and "wrong.db" in result.stderr
    assert make != "nothing" or not wrong.exists()


def test_serve_says_that_a_port_or_a_name_cannot_be_used(path: Path) -> None:
    with running(path, "--port", "0") as command:
        port = command.base.rpartition(":")[2]
        result = CliRunner().invoke(main, ["serve", str(path), "--port", port])
        assert result.exit_code == 2 and f"port {port} cannot be listened on" in result.stderr
    for name in ("", "http://dev.example", "a b", "me@host"):
        result = CliRunner().invoke(main, ["serve", str(path), "--host-name", name])
        assert result.exit_code == 2 and "no host name" in result.stderr
    two = CliRunner().invoke(main, ["serve", str(path), "--store", str(path)])
    assert two.exit_code == 2 and "two stores are named" in two.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_serve_without_its_extra_names_the_line_that_installs_it(path: Path, package: str) -> None:
    code = f"import sys\nsys.modules[{package!r}] = None\nfrom coherence.cli.main import main\nmain()"
    result = subprocess.run([sys.executable, "-c", code, "serve", str(path)], capture_output=True, text=True)
    assert result.returncode == 2 and f"{package} is not installed" in result.stderr
    assert 'pip install "coherence-sensor[web]"' in result.stderr


def test_open_page_keeps_the_token_out_of_the_arguments_of_the_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    with open_page("http://127.0.0.1:1/#token=secret"):
        file = Path(opened[0].removeprefix("file://"))
        assert "secret" not in opened[0] and "0;url=http://127.0.0.1:1/#token=secret" in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    assert not file.exists()
