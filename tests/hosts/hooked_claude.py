"""The real Claude Code with the hooks that ``coherence init`` puts in, and what the tests ask of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import msgspec

from coherence.core.events import ToolCall, ToolResult, decode_event
from coherence.store.store import Store
from hosts.claude_client import Finished, run_claude
from hosts.hooked_home import WARMING, HookedHome
from hosts.messages_stub import MessagesStub, results_of, texts_of
from hosts.stub_server import Body

ADDED = "hook additional context: "
"""Words with which the client shows the model what a hook has told."""

REFUSED = "coherence refused this call"


class HookedClaude(HookedHome):
    """The client of one version, with an empty home and project of its own."""

    FILES: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path, version: str) -> None:
        super().__init__(folder, "claude-code")
        self.version = version

    def hook(self, *, waits: bool = True) -> None:
        """Put in the hooks as a person does; by default the daemon is up before the session, as after the first one."""
        self.coherence("init", "--yes")
        if waits:
            self.wait_for_daemon()

    def run(self, prompt: str, stub: MessagesStub, *extra: str, timeout: float = 120) -> Finished:
        return run_claude(
            prompt,
            stub=stub,
            folder=self.project,
            home=self.home,
            env=self.env,
            version=self.version,
            extra=extra,
            timeout=timeout,
        )

    def wait_for_daemon(self) -> None:
        """Start the daemon as a session's first event does, and wait for it."""
        command = ["-I", "-S", str(Path(sys.modules["coherence"].__path__[0]) / "integrations/daemon/hook.py")]
        env = {**os.environ, **self.env}
        begin = {"hook_event_name": "SessionStart", "session_id": WARMING, "source": "startup"}
        until = time.monotonic() + 30
        asked = 0.0
        while not (self.state / "daemon.sock").exists() or not asked:
            if time.monotonic() - asked > 3:  # a daemon of another version may just have answered, and ended
                asked = time.monotonic()
                subprocess.run(
                    [sys.executable, *command, str(self.state)], input=json.dumps(begin).encode(), env=env, check=True
                )
            assert time.monotonic() < until, (self.state / "daemon.log").read_text()
            time.sleep(0.05)

    def daemon(self) -> int:
        """Return the process id of the daemon that runs."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if f"daemon\0run\0--state\0{self.state}\0".encode() in path.read_bytes():
                    return int(path.parent.name)
        raise AssertionError("no daemon runs")

    def calls(self) -> dict[str, dict[str, tuple[str, bool]]]:
        """Return the command of each stored call, and whether it has a result, by session and the call's id."""
        self.stop_daemon()
        found: dict[str, dict[str, tuple[str, bool]]] = {}
        with Store(self.env["COHERENCE_STORE"]) as store:
            for row in store.sessions():
                events = [decode_event(event.data) for event in store.events(row.id)]
                ended = {event.call_id for event in events if isinstance(event, ToolResult)}
                for event in events:
                    if isinstance(event, ToolCall):
                        command = str(msgspec.json.decode(event.arguments)["command"])
                        assert event.call_id not in found.setdefault(row.session, {}), "a call is stored twice"
                        found[row.session][event.call_id] = command, event.call_id in ended
        return found

    def delivered(self) -> int:
        """Return how many pieces of guidance the transcript has shown."""
        return sum(bool(said.firing) for said in self.messages())


def told(stub: MessagesStub) -> str:
    return "\n".join(text for turn in stub.turns for text in texts_of(turn))


def added(turn: Body) -> list[str]:
    """Return what hooks have added to the newest part of a request: behind its last result of a tool."""
    texts: list[str] = []
    for message in turn["messages"]:
        own = texts_of({"messages": [message]})
        texts = [] if results_of({"messages": [message]}) else texts
        texts += [text.partition(ADDED)[2] for text in own if ADDED in text]
    return texts


def refused(turn: Body) -> bool:
    """Return whether the newest call in a request was refused."""
    newest = results_of(turn)[-1]
    return bool(newest.get("is_error")) and REFUSED in str(newest["content"])
