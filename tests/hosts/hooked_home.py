"""A home, a project and a state folder of their own, into which ``coherence init`` puts the hooks of a client."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, TypeVar

import pytest

from coherence.core.events import Message, decode_event
from coherence.integrations.daemon.folder import LOCK
from coherence.store.store import Store
from hosts.npm_client import UnavailableError

WARMING = "warm"
"""Session of an event that a test itself reports, so that a daemon starts."""


class HookedHome:
    """What a client finds and leaves behind, and what was recorded of it.

    Parameters
    ----------
    folder : Path
        An empty one with a short name, for the sake of the socket.
    host : str
        Name of the client.
    """

    FILES: ClassVar[Mapping[str, str]] = {"notes.txt": "nothing to see"}
    """What is in the project to begin with."""

    def __init__(self, folder: Path, host: str) -> None:
        self.home, self.project, self.state = folder / "home", folder / "project", folder / "s"
        self.home.mkdir()
        self.project.mkdir()
        for name, text in self.FILES.items():
            (self.project / name).write_text(text)
        self.host = host
        self._daemon: subprocess.Popen[bytes] | None = None
        self.env = {"COHERENCE_STATE": str(self.state), "COHERENCE_STORE": str(folder / "store.db")}
        self.env |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.env |= {"HOME": str(self.home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}

    def coherence(self, *arguments: str) -> str:
        """Run a command of this package, and return what it prints."""
        command = [sys.executable, "-m", "coherence", *arguments]
        env = {**os.environ, **self.env}
        return subprocess.run(command, env=env, cwd=self.project, capture_output=True, text=True, check=True).stdout

    def init(self, *options: str) -> None:
        """Put the client's hooks in, or take them out."""
        self.coherence("init", "--host", self.host, "--yes", *options)

    def files(self) -> dict[str, bytes]:
        """Return what is in the home, by name."""
        return {str(path.relative_to(self.home)): path.read_bytes() for path in self.home.rglob("*") if path.is_file()}

    def start_daemon(self) -> None:
        """Start the daemon, and wait until it answers."""
        command = [sys.executable, "-m", "coherence", "daemon", "run"]
        self.state.mkdir(mode=0o700, exist_ok=True)
        with (self.state / "daemon.log").open("ab") as log:
            self._daemon = subprocess.Popen(command, env={**os.environ, **self.env}, stdout=log, stderr=log)
        self.wait_for_daemon()

    def stop_daemon(self) -> None:
        """End the daemon, if one runs, and wait until it has written all that it knows."""
        self.coherence("daemon", "stop")
        if self.state.exists():
            with (self.state / LOCK).open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # it is held to the daemon's end
        if self._daemon is not None:
            self._daemon.wait(60)

    def wait_for_daemon(self) -> None:
        """Wait until the daemon answers that a hook has started."""
        until = time.monotonic() + 60
        while not (self.state / "daemon.sock").exists():
            assert time.monotonic() < until, (self.state / "daemon.log").read_text()
            time.sleep(0.05)

    def kinds(self) -> dict[str, list[str]]:
        """Return the kinds of the events that are stored, by agent; the daemon ends."""
        self.stop_daemon()
        with Store(self.env["COHERENCE_STORE"]) as store:
            return {
                row.agent: [event.kind for event in store.events(row.id)]
                for row in store.sessions()
                if row.session != WARMING
            }

    def messages(self) -> list[Message]:
        """Return what was said in all sessions, guidance that was shown included."""
        with Store(self.env["COHERENCE_STORE"]) as store:
            events = [decode_event(event.data) for row in store.sessions() for event in store.events(row.id)]
        return [event for event in events if isinstance(event, Message)]


_Home = TypeVar("_Home", bound=HookedHome)


@contextmanager
def skipping() -> Iterator[None]:
    """Skip the test that needs a client which cannot be had here."""
    try:
        yield
    except UnavailableError as error:
        pytest.skip(str(error))


@contextmanager
def temporary(make: Callable[[Path], _Home]) -> Iterator[_Home]:
    """Make a home in a folder that goes at the end, after its daemon."""
    # In /tmp, so that the name is short: a socket lies in it. What a client leaves running may still write there.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as name:
        home = make(Path(name))
        yield home
        home.stop_daemon()
