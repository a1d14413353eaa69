"""The real Claude Code in a terminal of its own, for what only a person at the keyboard can do."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from hosts.claude_client import VERSION, client_environment, installed
from hosts.messages_stub import MessagesStub
from hosts.npm_client import UnavailableError


class ClaudeTerminal:
    """Run the client in tmux, from entering the context to leaving it.

    Parameters
    ----------
    stub
        Answers the client.
    folder
        The project, which the client trusts already.
    home
        The client's HOME.
    extra
        Arguments for the client.
    env
        Variables beside the client's own.

    Raises
    ------
    UnavailableError
        There is no tmux, or the client cannot be had here.
    """

    def __init__(
        self,
        *,
        stub: MessagesStub,
        folder: Path,
        home: Path,
        extra: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        version: str = VERSION,
    ) -> None:
        if shutil.which("tmux") is None:
            raise UnavailableError("tmux is not here")
        home.mkdir(parents=True, exist_ok=True)
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(folder): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }
        (home / ".claude.json").write_text(json.dumps(known))
        variables = client_environment(stub, home) | dict(env or {})
        assigned = [f"{name}={value}" for name, value in variables.items()]
        self._command = shlex.join(["env", "-i", *assigned, str(installed(version)), *extra])
        self._folder = folder
        self._socket = home / "tmux"

    def __enter__(self) -> Self:
        self._tmux("new-session", "-d", "-x", "140", "-y", "45", "-c", str(self._folder), self._command)
        try:
            self.wait_for("? for shortcuts", "for agents")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server", check=False)

    def type(self, text: str) -> None:
        """Type a text and the return key."""
        self._tmux("send-keys", "-l", text)
        self.wait_for(text)
        self.press("Enter")

    def press(self, key: str) -> None:
        """Press a key, by tmux's name of it."""
        time.sleep(1.0)  # else the client takes the key for a part of something pasted, or is not ready for it
        self._tmux("send-keys", key)

    def screen(self) -> str:
        """Return what the screen shows, without empty lines."""
        shown = self._tmux("capture-pane", "-p", "-J")
        return "\n".join(line.rstrip() for line in shown.splitlines() if line.strip())

    def wait_for(self, *texts: str, seconds: float = 60) -> str:
        """Return the screen once it shows one of some texts."""
        self.wait_until(lambda: any(text in self.screen() for text in texts), seconds=seconds)
        return self.screen()

    def wait_until(self, condition: Callable[[], bool], *, seconds: float = 60) -> None:
        """Wait until something has come about; the screen is told if it does not."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, self.screen()
            time.sleep(0.1)

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout
