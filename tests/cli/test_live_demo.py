"""``coherence demo --live``: three recorded runs told again, the face beside them, and how the show ends."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from coherence import Store
from coherence.cli.live_demo import CAST, FILE, read_cast
from coherence.cli.main import main
from coherence.store.told import all_refusals
from coherence.views.views import Views

SHOW = [sys.executable, "-m", "coherence", "demo", "--live", "--embedder", "hashing"]
"""Without a model: it need not be loaded."""

QUICK = [*SHOW, "--speed", "100"]


def names(path: Path) -> list[str]:
    with Store(path) as store:
        assert store.verify() == []
        return sorted(row.agent for row in store.sessions())


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder in which the show has run to its end with the shipped model, and what it printed."""
    folder = tmp_path_factory.mktemp("show")
    command = [*QUICK[:5], "--speed", "100", "--no-face"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0 and result.stderr == ""
    return folder, result.stdout


def test_read_cast_finds_a_run_for_each_agent() -> None:
    parts = read_cast()
    assert {part.agent: part.run.id for part in parts} == {agent: id for agent, (_, id) in CAST.items()}
    assert {part.agent: part.run.success for part in parts} == {
        "coder": True,
        "office-assistant": False,
        "answer-team": False,
    }


@pytest.mark.slow
def test_demo_live_records_three_agents_of_which_one_stays_on_course(shown: tuple[Path, str]) -> None:
    folder, _ = shown
    assert names(folder / FILE) == sorted(CAST)
    with Store(folder / FILE) as store:
        told = {
            row.agent: {kind for (kind,) in store.fetch("SELECT kind FROM decisions WHERE session_id = ?", (row.id,))}
            for row in store.sessions()
        }
        refused = [(each.agent, each.tool) for each in all_refusals(store) if each.tool is not None]
    assert told["coder"] == {"continue"}
    assert told["answer-team"] == {"continue", "guide", "warn"}
    assert told["office-assistant"] == {"continue", "warn", "block"}
    assert refused == [("office-assistant", "send_email")]


@pytest.mark.slow
def test_demo_live_prints_what_changes_and_how_to_look_again(shown: tuple[Path, str]) -> None:
    _, printed = shown
    lines = printed.splitlines()
    assert any(
        re.match(r"\d:\d\d  ■ R  office-assistant  step  3 of 5   refused: send_email\(", line) for line in lines
    )
    assert any(re.match(r"\d:\d\d  ◆ O  answer-team +step  7 of 10  warn: ", line) for line in lines)
    assert any(re.match(r"\d:\d\d  ● G  coder +step 27 of 27  ends$", line) for line in lines)
    with Views(shown[0] / FILE) as views:  # the numbers are those of the other faces
        assert {line.agent: line.steps for line in views.overview().lines}["coder"] == 27
    assert lines[-2] == "All three runs have ended."
    assert lines[-1] == f"Recorded in {FILE}. To look again: coherence serve {FILE}, or coherence watch {FILE}"


class Server:
    """The show with its page."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [*SHOW, "--no-open", "--port", "0", *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        found = re.search(r"is shown on http://127\.0\.0\.1:(\d+)/#token=(\S+)$", first)
        assert found is not None, first + self.process.communicate(timeout=30)[1]
        self.connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=20)
        origin = f"http://127.0.0.1:{found[1]}"
        headers = {"Content-Type": "application/json", "Origin": origin}
        self.connection.request("POST", "/login", json.dumps({"token": found[2]}), headers)
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status < 300
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def get(self, path: str) -> Any:
        self.connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = self.connection.getresponse()
        assert answer.status == 200
        return json.load(answer)

    def end(self, number: signal.Signals) -> str:
        """End it, and return the last line that it printed."""
        self.connection.close()
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, err
        return out.splitlines()[-1]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    pytest.importorskip("uvicorn")
    started = Server(tmp_path, "--speed", "20")
    yield started
    started.connection.close()
    started.process.kill()
    started.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_demo_live_shows_the_agents_on_a_page_until_it_is_ended(
    server: Server, tmp_path: Path, number: signal.Signals
) -> None:
    """Half way: at speed 20, the coder's third step comes after 2 s, and the whole show takes 27."""
    deadline = time.monotonic() + 20
    seen = server.get("/api/overview")
    while {line["agent"]: line["steps"] for line in seen["lines"]}.get("coder", 0) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        seen = server.get("/api/overview")
    assert {line["agent"]: line["live"] for line in seen["lines"]} == dict.fromkeys(CAST, True)
    assert server.get("/api/about")["write"] is True
    assert server.end(number).startswith(f"Recorded in {FILE}. To look again: coherence serve {FILE}")
    assert names(tmp_path / FILE) == sorted(CAST)


@pytest.mark.slow
def test_demo_live_killed_leaves_a_store_that_opens(server: Server, tmp_path: Path) -> None:
    while server.get("/api/overview")["total"] < 3:
        time.sleep(0.05)
    server.process.kill()
    assert server.process.wait(30) == -signal.SIGKILL
    assert names(tmp_path / FILE) == sorted(CAST)


@pytest.mark.slow
def test_demo_live_in_the_terminal_ends_with_q(tmp_path: Path) -> None:
    pytest.importorskip("textual")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SHOW, "--watch", "--speed", "20"],
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
    ) as process:
        os.close(theirs)
        read_until(ours, b"office-assistant")
        os.write(ours, b"q")
        printed = read_until(ours, b"To look again: coherence serve")
        assert process.wait(30) == 0
    assert f"Recorded in {FILE}".encode() in printed
    assert names(tmp_path / FILE) == sorted(CAST)


def read_until(terminal: int, text: bytes) -> bytes:
    """Return what a terminal shows, once a text is there."""
    shown, deadline = b"", time.monotonic() + 30
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0.0))
        assert ready, shown[-2000:]
        shown += os.read(terminal, 65_536)
    return shown


def test_demo_live_takes_a_new_name_beside_an_older_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    from coherence.cli.live_demo import free_name

    assert free_name(Path(FILE)) == Path("live-demo.db")
    (tmp_path / FILE).write_bytes(b"older")
    assert free_name(Path(FILE)) == Path("live-demo-2.db")
    (tmp_path / "live-demo-2.db").touch()
    assert free_name(Path(FILE)) == Path("live-demo-3.db")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--live", "--html", "a.html"), "--html does not go with --live"),
        (("--live", "--json"), "--json does not go with --live"),
        (("--speed", "3"), "--speed goes only with --live"),
        (("--no-open",), "--open goes only with --live"),
        (("--live", "--speed", "0.5"), "0.5 is not in the range"),
        (("--live", "--speed", "101"), "101.0 is not in the range"),
        (("--live", "--watch", "--no-face"), "--watch shows a face"),
        (("--live", "--store", "old.db"), "--store old.db exists"),
        (("--live", "--store", "no/such/folder.db"), "cannot write no/such/folder.db"),
    ],
)
def test_demo_live_refuses_what_it_cannot_do(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.db").write_bytes(b"older")
    result = CliRunner().invoke(main, ["demo", *arguments])
    assert result.exit_code == 2 and said in result.stderr
    assert os.listdir(tmp_path) == ["old.db"] and (tmp_path / "old.db").read_bytes() == b"older"


@pytest.mark.parametrize(
    ("module", "options", "extra"),
    [("uvicorn", (), "web"), pytest.param("textual", ("--watch",), "tui", marks=pytest.mark.slow)],
)
def test_demo_live_without_its_extra_names_the_line_that_installs_it(
    module: str, options: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; from coherence.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "demo", "--live", *options], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 2 and f'pip install "coherence-sensor[{extra}]"' in result.stderr
    assert os.listdir(tmp_path) == []
