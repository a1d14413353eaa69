"""Each check of an installation, on what it finds and on what is wrong with it; nothing is changed by looking."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.integrations.claude_code import diagnosis
from coherence.integrations.claude_code.diagnosis import Check, diagnose, mend
from coherence.integrations.claude_code.plugin import HOOKS, plan_plugin, plugin_files
from coherence.integrations.claude_code.settings import (
    EVENTS,
    Scope,
    hook_groups,
    settings_path,
)
from coherence.integrations.daemon import hook
from coherence.integrations.daemon.control import schema_of
from coherence.integrations.daemon.folder import control
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import apply_change, plan_install
from coherence.providers import MiniLMEmbedder
from coherence.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")
RUN = "import sys; from coherence.cli.entry import run; sys.argv[0] = 'coherence'; run()"


class Place:
    """A user's folders, all of them empty."""

    def __init__(self, root: Path) -> None:
        self.root, self.state, self.store, self.bin = root, root / "state", root / "store.db", root / "bin"

    def look(self) -> dict[str, Check]:
        return {check.name: check for check in diagnose(self.state, self.store)}

    def client(self, script: str) -> None:
        (self.bin / "claude").write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / "claude").chmod(0o755)

    def install(self, scope: Scope = "user", *, observe: bool = False) -> Path:
        path = settings_path(scope)
        apply_change(plan_install(path, hook_groups(hook_command(self.state, observe=observe))))
        return path

    def files(self) -> dict[Path, tuple[int, int]]:
        return {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in self.root.rglob("*")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("bin", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("COHERENCE_STORE", str(tmp_path / "store.db"))  # of a daemon that a hook may start
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("COHERENCE_DISABLED", raising=False)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(MiniLMEmbedder, "embed", lambda *_: None)  # the command's tests load the model
    return Place(tmp_path)


def status(place: Place) -> dict[str, Any] | None:
    with chdir("."):
        return control(place.state, "status")


@contextmanager
def daemon(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Run a real daemon; it is killed at the end."""
    place.state.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-c", RUN, "daemon", "run", "--state", str(place.state), "--store", str(place.store)]
    with (place.state / hook.LOG).open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while status(place) is None:
            assert process.poll() is None and time.monotonic() < until, (place.state / hook.LOG).read_text()
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def listener(place: Place, answer: bytes | None) -> Iterator[None]:
    """Listen as a daemon that gives one answer to everything; ``None``: it never answers."""
    place.state.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as line:
        with chdir(place.state):
            line.bind(hook.SOCKET)
        line.listen(64)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    other, _ = line.accept()
                    with other:
                        while other.recv(1_000):
                            pass
                        other.sendall(answer or b"")

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield
        line.shutdown(socket.SHUT_RDWR)


def test_diagnose_where_nothing_is_installed_nothing_fails_and_nothing_is_written(place: Place) -> None:
    before = place.files()
    found = place.look()
    assert {name: check.status for name, check in found.items()} == {
        "client": "WARN",
        "hooks": "WARN",
        "state": "WARN",
        "daemon": "WARN",
        "port": "OK",
        "settings": "OK",
        "latency": "WARN",
        "spool": "OK",
        "store": "WARN",
        "gaps": "OK",
        "transcript": "WARN",
        "embedder": "OK",
        "clock": "OK",
        "disk": "OK",
    }
    assert found["hooks"].mend == "coherence init --yes"
    assert place.files() == before and Path.cwd() == place.root / "project"


def test_diagnose_with_a_daemon_at_work_all_is_well_and_looking_records_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.client("echo '2.1.330 (Claude Code)'")
    settings = place.install()
    transcript = settings.parent / "projects" / "-shop" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text('{"type": "user", "sessionId": "s1", "message": {"role": "user", "content": "List them."}}\n')
    with daemon(place) as process:
        payload = json.dumps({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "List them."})
        subprocess.run(shlex.split(hook_command(place.state)), input=payload.encode(), check=True)
        until = time.monotonic() + 30
        while place.look()["store"].status != "OK":  # it writes after a second at most
            assert time.monotonic() < until
        found = place.look()
        assert [check for check in found.values() if check.status != "OK" and check.name != "latency"] == []
        assert f"process {process.pid} runs, with 1 session" in found["daemon"].found
        assert "1 session of Claude Code" in found["store"].found
        assert "(p50)" in found["latency"].found and "Python starts in" in found["latency"].found
        with Store(place.store) as store:
            assert [row.session for row in store.sessions()] == ["s1"]

        monkeypatch.setattr(diagnosis, "SLOW_MS", 0.0)
        monkeypatch.setattr(diagnosis, "TOO_SLOW_MS", 1e6)
        assert place.look()["latency"].status == "WARN"
        monkeypatch.setattr(diagnosis, "TOO_SLOW_MS", 0.0)
        assert place.look()["latency"].status == "FAIL"

        other = place.root / hook.__name__.replace(".", "/")  # the same file in another installation, made later
        other.parent.mkdir(parents=True)
        other.with_suffix(".py").write_text("")
        settings.write_text(settings.read_text().replace(hook.__file__, str(other.with_suffix(".py"))))
        found = place.look()
        assert "another version" in found["daemon"].found and found["daemon"].mend == "coherence daemon stop"
        assert found["hooks"].status == "WARN" and "another installation" in found["hooks"].found
        assert mend(place.state) == []
    found = place.look()
    assert (found["daemon"].status, found["daemon"].mend) == ("WARN", "coherence doctor --fix")
    assert mend(place.state) == [f"removed {place.state / hook.SOCKET}: no daemon listened there"]
    assert place.look()["daemon"].found == "none runs; the next hook starts it"


def test_diagnose_the_hooks_of_the_plugin_as_those_of_settings(place: Place) -> None:
    user = settings_path("user")
    folder = place.root / "plug-in"
    (user.parent / "plugins").mkdir(parents=True)
    known = {"coherence": {"installLocation": str(folder)}}
    (user.parent / "plugins" / "known_marketplaces.json").write_text(json.dumps(known))
    user.write_text('{"enabledPlugins": {"coherence@coherence": true}}')
    again = f"coherence init --plugin {folder}"

    gone = place.look()["hooks"]
    assert (gone.status, gone.mend) == ("FAIL", f"{again} --yes") and "does not exist" in gone.found
    for change in plan_plugin(folder, plugin_files(hook_groups(hook_command(place.state)), place.state, "0.1.0")):
        apply_change(change)
    found = place.look()["hooks"]
    assert (found.status, found.mend) == ("OK", "") and found.found.startswith(f"{folder / HOOKS}: a hook for each")

    place.install()
    both = place.look()["hooks"]
    assert (both.status, both.mend) == ("WARN", "claude plugin uninstall coherence@coherence")
    assert "which is counted once" in both.found and str(user) in both.found
    user.write_text('{"enabledPlugins": {"coherence@coherence": true}}')

    text = (folder / HOOKS).read_text()
    (folder / HOOKS).write_text(text.replace('"timeout": 5', '"timeout": 1', 1))
    changed = place.look()["hooks"]
    assert (changed.status, changed.mend) == ("FAIL", f"{again} --yes")
    (folder / HOOKS).write_text(text.replace('"matcher": "*"', '"matcher": "Bash"', 1))
    matched = place.look()["hooks"]
    assert (matched.status, matched.mend) == ("FAIL", f"{again} --yes") and "for 'Bash' alone" in matched.found
    user.write_text('{"enabledPlugins": {"coherence@coherence": false}}')
    assert place.look()["hooks"].mend == "coherence init --yes"


@pytest.mark.parametrize(
    ("script", "status", "told"),
    [
        ("echo '2.1.197 (Claude Code)'", "OK", "is 2.1.197"),
        ("echo '3.0.0'", "OK", "is 3.0.0"),
        ("echo '2.1.196 (Claude Code)'", "WARN", "is 2.1.196; the hooks were tried from 2.1.197 on"),
        ("echo Hello", "WARN", "does not tell its version"),
        ("exit 1", "WARN", "does not tell its version"),
        ("exec sleep 60", "WARN", "gave no answer within 0.3 s"),
    ],
)
def test_diagnose_the_version_of_the_client(
    place: Place, monkeypatch: pytest.MonkeyPatch, script: str, status: str, told: str
) -> None:
    monkeypatch.setattr(diagnosis, "CLIENT_S", 0.3 if "sleep" in script else 30.0)
    place.client(script)
    found = place.look()["client"]
    assert found.status == status and told in found.found


def test_diagnose_hooks_of_each_scope_and_kind_are_found(place: Place) -> None:
    path = place.install("local", observe=True)
    assert place.look()["hooks"] == Check("hooks", "OK", f"{path}: a hook for each of 17 events, which only look on")


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Return an edit of the hooks in a settings file."""

    def edit(path: Path) -> None:
        settings = json.loads(path.read_text())
        change(settings["hooks"])
        path.write_text(json.dumps(settings))

    return edit


def replaced(old: str, new: str, count: int = -1) -> Callable[[Path], None]:
    """Return an edit of the text of a settings file."""

    def edit(path: Path) -> None:
        path.write_text(path.read_text().replace(old, new, count))

    return edit


INIT, ANEW = "coherence init --yes", "coherence init --remove --yes && coherence init --yes"


@pytest.mark.parametrize(
    ("change", "told", "mends"),
    [
        (
            edited(lambda hooks: (hooks.pop("Stop"), hooks.pop("PreCompact"))),
            "2 of 17 events have no hook: Stop, P",
            INIT,
        ),
        (replaced("hook.py ", "hook.py /x", 1), "the hooks run different commands", INIT),
        (
            edited(lambda hooks: hooks["Stop"][0]["hooks"][0].update(timeout=1)),
            "changed by hand: the hook for Stop",
            INIT,
        ),
        (edited(lambda hooks: hooks["PreToolUse"][0].update(matcher="Bash")), "PreToolUse is for 'Bash' alone", ANEW),
        (replaced(" -I -S ", " "), "the command was changed", INIT),
        (replaced(" -I -S ", " -I -S ' "), "the command was changed", INIT),
        (replaced(sys.executable, "/no/python"), "need /no/python, which does not exist", INIT),
        (replaced(hook.__file__, "/no/coherence/integrations/daemon/hook.py"), "hook.py, which does not", INIT),
    ],
)
def test_diagnose_hooks_that_were_changed_fail(
    place: Place, change: Callable[[Path], None], told: str, mends: str
) -> None:
    path = place.install()
    change(path)
    found = place.look()["hooks"]
    assert (found.status, found.mend) == ("FAIL", mends)
    assert found.found.startswith(f"{path}: ") and told in found.found


def test_diagnose_the_mend_of_a_projects_hooks_names_their_scope_and_kind(place: Place) -> None:
    edited(lambda hooks: hooks.pop("Stop"))(place.install("project", observe=True))
    assert place.look()["hooks"].mend == "coherence init --scope project --observe --yes"


def test_diagnose_hooks_that_meet_another_daemon_are_a_warning(place: Place) -> None:
    path = place.install()
    path.write_text(path.read_text().replace(str(place.state), "/other"))
    found = place.look()["hooks"]
    assert (found.status, found.mend) == ("WARN", "COHERENCE_STATE=/other coherence doctor")


def test_diagnose_hooks_that_run_twice_are_a_warning(place: Place) -> None:
    place.install()
    path = place.install("local")
    assert place.look()["hooks"].status == "OK"  # the client runs the same command once
    path.unlink()
    place.install("local", observe=True)
    found = place.look()["hooks"]
    assert (found.status, found.mend) == ("WARN", "coherence init --scope local --remove --yes")


def test_diagnose_in_the_home_folder_the_settings_are_looked_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.root / "project" / ".claude"))
    path = place.install()
    assert place.look()["hooks"].found == f"{path}: a hook for each of {len(EVENTS)} events, all with the same command"


def test_diagnose_hooks_that_are_switched_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.install()
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    found = place.look()["hooks"]
    assert (found.status, found.mend) == ("WARN", "unset COHERENCE_DISABLED")
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
    assert place.look()["hooks"] == Check(
        "hooks",
        "FAIL",
        f"no hook runs: disableAllHooks is set in {path}",
        f"take disableAllHooks out of {path}",
    )


def test_diagnose_settings_that_cannot_be_read_fail(place: Place) -> None:
    path = settings_path("user")
    path.parent.mkdir()
    path.write_text("{")
    found = place.look()["hooks"]
    assert found.status == "FAIL" and found.found.startswith(f"{path}:1: this is not JSON")


def test_diagnose_a_state_folder_that_others_may_enter_fails_and_is_mended(place: Place) -> None:
    place.state.mkdir(mode=0o755)
    found = place.look()
    assert found["state"].status == found["daemon"].status == "FAIL"
    assert found["state"].mend == f"chmod 700 {place.state}" and "mode 0755" in found["state"].found
    assert mend(place.state) == [f"made {place.state} private: its mode was 0755, and is 0700"]
    assert place.look()["state"] == Check("state", "OK", f"{place.state} is private")
    assert mend(place.state) == []


def test_diagnose_a_state_folder_that_is_none_of_ones_own_fails_and_stays(place: Place) -> None:
    real = place.root / "real"
    real.mkdir(mode=0o755)
    place.state.symlink_to(real)
    found = place.look()["state"]
    assert found.status == "FAIL" and "symbolic link" in found.found and mend(place.state) == []
    place.state.unlink()
    place.state.write_text("")
    found = place.look()["state"]
    assert found.status == "FAIL" and "no folder" in found.found and mend(place.state) == []
    real.chmod(0o1777)  # as /tmp
    assert {check.status for check in diagnose(real, place.store) if check.name == "state"} == {"FAIL"}
    assert mend(real) == [] and real.stat().st_mode & 0o7777 == 0o1777


def test_diagnose_a_daemon_that_does_not_answer_fails(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook, "ANSWER_S", 0.3)
    with listener(place, None):
        found = place.look()
    assert found["daemon"].status == "FAIL" and "does not answer within 0.3 s" in found["daemon"].found
    assert found["latency"].status == "WARN"


def test_diagnose_a_daemon_that_talks_nonsense_fails_in_one_row(place: Place) -> None:
    with listener(place, b"?"):
        found = place.look()
    assert [check.name for check in found.values() if check.status == "FAIL"] == ["daemon"]


def test_diagnose_payloads_that_a_daemon_does_not_take_are_a_warning(place: Place) -> None:
    answer = json.dumps({"schema": schema_of("status"), "pid": 1, "build": hook.build(), "sessions": []}).encode()
    with listener(place, answer):
        (place.state / hook.SPOOL).mkdir()
        (place.state / hook.SPOOL / "1.payload").touch()
        found = place.look()
    assert found["daemon"].status == "OK"
    assert (found["spool"].status, found["spool"].found) == ("WARN", "1 payload that the daemon does not take in")
    (place.state / hook.SOCKET).unlink()
    waits = "1 payload for the daemon to take in when it starts"
    assert place.look()["spool"] == Check("spool", "OK", waits)


FAILED = """2026-01-01 10:00:00,000 ERROR a request failed; the agent goes on
Traceback (most recent call last):
  File "x.py", line 1, in <module>
    1 / 0

ZeroDivisionError: division by zero
"""
HARMLESS = "2026-01-01 10:00:01,000 INFO another version of the package is installed: this daemon ends\n"


@pytest.mark.parametrize(
    ("log", "newest"),
    [
        (HARMLESS, ""),
        (
            FAILED + HARMLESS,
            "2026-01-01 10:00:00,000 ERROR a request failed; the agent goes on: ZeroDivisionError: div",
        ),
        (FAILED.partition("\n")[2], "ZeroDivisionError: division by zero"),
        (FAILED + "Error: /state must be a folder\n", "Error: /state must be a folder"),
        ("/old/python: No module named coherence\n", "/old/python: No module named coherence"),
        (FAILED + 200 * HARMLESS, ""),
    ],
)
def test_diagnose_the_newest_error_of_the_daemons_log_is_told(place: Place, log: str, newest: str) -> None:
    place.state.mkdir(mode=0o700)
    path = place.state / hook.LOG
    path.write_text(log)
    found = place.look()["daemon"]
    assert found.status == "WARN" and ("newest error" in found.found) == bool(newest)
    assert f"none runs; the next hook starts it{'; newest error in its log: ' if newest else ''}{newest}" in found.found
    assert found.mend == (f"tail -n 40 {path}" if newest else "")


def test_diagnose_a_daemon_that_never_came_is_told_and_mended(place: Place) -> None:
    place.state.mkdir(mode=0o700)
    waking = place.state / hook.WAKING
    waking.touch()
    assert mend(place.state) == []
    os.utime(waking, (time.time() - 100, time.time() - 100))  # 40 s more than it may take
    assert "did not come" in place.look()["daemon"].found
    assert [text.partition(":")[0] for text in mend(place.state)] == [f"removed {waking}"]
    assert not waking.exists()


def test_diagnose_stores_that_cannot_be_used_fail(place: Place) -> None:
    place.store.touch()
    assert place.look()["store"] == Check("store", "WARN", f"{place.store} is empty")
    place.store.write_text("no store" * 1_000)
    found = place.look()
    assert found["store"].status == "FAIL" and "not a database" in found["store"].found
    place.store.unlink()
    with sqlite3.connect(place.store) as other:
        other.execute("PRAGMA user_version = 3")
    other.close()
    found = place.look()
    assert found["store"].found == f"{place.store} is a file of another program" and found["clock"].status == "OK"
    place.store.unlink()
    Store(place.store).close()
    with sqlite3.connect(place.store) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    assert place.look()["store"].mend == "pip install -U coherence-sensor"


def test_diagnose_a_damaged_store_fails(place: Place) -> None:
    with Monitor(agent="a", store=place.store, embedder=False) as monitor:
        for number in range(300):
            monitor.message("user", f"{number} " * 50)
    assert place.look()["store"].status == "WARN"  # no session of hooks
    raw = bytearray(place.store.read_bytes())
    half = len(raw) // 2 // 4_096 * 4_096
    raw[half : half + 40_960] = b"x" * 40_960  # ten pages in the middle
    place.store.write_bytes(raw)
    found = place.look()["store"]
    assert found.status == "FAIL" and "damaged" in found.found
    assert "coherence audit verify" in found.mend + found.found


def test_diagnose_events_in_the_future_are_a_warning(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with Monitor(agent="a", store=place.store, embedder=False) as monitor:
        monitor.message("user", "hello")
    assert place.look()["clock"].status == "OK"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3_600)
    found = place.look()["clock"]
    assert found.status == "WARN" and "in the future" in found.found


def test_diagnose_the_newest_transcript_is_the_one_that_counts(place: Place) -> None:
    folder = settings_path("user").parent / "projects" / "-shop"
    folder.mkdir(parents=True)
    (folder / "old.jsonl").write_text('{"type": "user", "message": {"role": "user", "content": "Hello"}}\n')
    os.utime(folder / "old.jsonl", (1.0, 1.0))
    assert place.look()["transcript"].status == "OK"
    (folder / "new.jsonl").write_text('{"type": "user", "message": 7}\n')
    found = place.look()["transcript"]
    assert found.status == "WARN" and f"{folder / 'new.jsonl'}:1" in found.found


@pytest.mark.parametrize(("free", "status"), [(5e8, "OK"), (4.99e8, "WARN"), (5e7, "WARN"), (4.9e7, "FAIL")])
def test_diagnose_free_space(place: Place, monkeypatch: pytest.MonkeyPatch, free: float, status: str) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": int(free)}))
    assert place.look()["disk"].status == status


def test_diagnose_a_check_that_fails_itself_is_a_row(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("no model")

    monkeypatch.setattr(MiniLMEmbedder, "embed", breaks)
    failed = Check("embedder", "FAIL", "the check failed: RuntimeError: no model")
    assert [check for check in place.look().values() if check.status == "FAIL"] == [failed]
