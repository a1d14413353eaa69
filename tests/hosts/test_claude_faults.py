"""Sessions of the real client among faults of the daemon: they end as without hooks, and the record is complete."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import coherence
from hosts.hooked_claude import HookedClaude
from hosts.messages_stub import MessagesStub, Step, Text, Tool

pytestmark = pytest.mark.hosts

COMMANDS = [f"echo {number}" for number in range(8)]
STEPS: list[Step] = [[Tool("Bash", {"command": command})] for command in COMMANDS]
WORK = {"work": [*STEPS, [Text("Done.")]]}


def work(host: HookedClaude, meanwhile: Callable[[], object], after: int = 4) -> None:
    """Run a session of eight calls, and do something when the model has been asked so often."""
    with MessagesStub(WORK) as stub, ThreadPoolExecutor(1) as pool:
        running = pool.submit(host.run, "[[script:work]] Print some numbers.", stub)
        until = time.monotonic() + 60
        while len(stub.turns) < after and not running.done():
            assert time.monotonic() < until
            time.sleep(0.02)
        meanwhile()
        done = running.result()
    assert (done.returncode, done.result["result"]) == (0, "Done."), done


def assert_complete(host: HookedClaude) -> None:
    """Let a daemon take in what is left, and look whether each call and each result is stored once."""
    host.wait_for_daemon()
    found = host.calls()
    found.pop("warm", None)
    (calls,) = found.values()
    assert sorted(calls.values()) == [(command, True) for command in COMMANDS]
    assert not [path for path in (host.state / "spool").iterdir() if path.suffix in (".payload", ".taken")]


def test_daemon_killed_in_the_middle_of_a_session(host: HookedClaude) -> None:
    host.hook()
    work(host, lambda: os.kill(host.daemon(), signal.SIGKILL))
    assert_complete(host)


def test_daemon_stopped_in_the_middle_of_a_session(host: HookedClaude) -> None:
    host.hook()

    def stop() -> None:
        process = host.daemon()
        os.kill(process, signal.SIGSTOP)
        time.sleep(6)  # longer than a hook waits
        os.kill(process, signal.SIGCONT)

    work(host, stop)
    assert_complete(host)


def test_daemon_without_room_on_the_disk(host: HookedClaude) -> None:
    host.hook()
    unlimited = resource.RLIM_INFINITY
    process = host.daemon()
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, unlimited))  # it can write nothing more
    work(host, lambda: None)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    assert host.daemon() == process
    assert_complete(host)


def test_daemon_two_versions_at_once(host: HookedClaude, tmp_path: Path) -> None:
    other = HookedClaude(tmp_path, host.version)
    package = tmp_path / "package" / "coherence"
    shutil.copytree(coherence.__path__[0], package, ignore=shutil.ignore_patterns("__pycache__"))
    os.utime(package / "integrations/daemon/hook.py", ns=(1, 1))  # its time tells one version from another
    shared = {name: host.env[name] for name in ("COHERENCE_STATE", "COHERENCE_STORE")}
    other.env |= {**shared, "PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    for each in (host, other):
        each.hook(waits=False)
    settings = [(each.home / ".claude/settings.json").read_text() for each in (host, other)]
    assert [str(package.parent) in text for text in settings] == [False, True]
    with MessagesStub(WORK) as stub, ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda each: each.run("[[script:work]] Print some numbers.", stub), (host, other)):
            assert (done.returncode, done.result["result"]) == (0, "Done."), done
    host.wait_for_daemon()
    found = host.calls()
    found.pop("warm", None)
    assert [sorted(calls.values()) for calls in found.values()] == [[(command, True) for command in COMMANDS]] * 2


def test_daemon_four_sessions_at_once_of_500_calls_that_come_together(host: HookedClaude) -> None:
    host.hook()
    together: list[list[str]] = [[f"echo {step}-{number}" for number in range(20)] for step in range(25)]
    steps: list[Step] = [[Tool("Bash", {"command": command}) for command in commands] for commands in together]
    with MessagesStub({"work": [*steps, [Text("Done.")]]}) as stub, ThreadPoolExecutor(4) as pool:
        for done in pool.map(lambda _: host.run("[[script:work]] Print some numbers.", stub, timeout=900), range(4)):
            assert (done.returncode, done.result["result"]) == (0, "Done."), done
    found = host.calls()
    found.pop("warm", None)
    asked = sorted((command, True) for commands in together for command in commands)
    assert [sorted(calls.values()) for calls in found.values()] == [asked] * 4
