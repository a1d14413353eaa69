"""The real Claude Code that posts the hooks of each step itself: it is answered as by the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.claude_client import Finished, run_claude
from hosts.hooked_home import HookedHome, temporary
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool, results_of, texts_of

pytestmark = pytest.mark.hosts

SCRIPTS: Scripts = {
    "delete": [[Tool("Bash", {"command": "ls"})], [Tool("Bash", {"command": "find . -delete"})], [Text("Done.")]],
    "loop": [[Tool("Bash", {"command": "python3 missing.py"})] for _ in range(9)] + [[Text("It does not work.")]],
}


class HttpHome(HookedHome):
    """A home whose client posts its hooks."""

    def __init__(self, folder: Path, version: str) -> None:
        super().__init__(folder, "claude-code")
        self._version = version
        self.init("--http")

    def run(self, prompt: str, stub: MessagesStub) -> Finished:
        """Run the client on a prompt, to its end."""
        return run_claude(prompt, stub=stub, folder=self.project, home=self.home, env=self.env, version=self._version)


@pytest.fixture
def home(version: str) -> Iterator[HttpHome]:
    with temporary(lambda folder: HttpHome(folder, version)) as made:
        yield made


def test_init_http_a_deletion_is_denied_and_a_loop_is_told(home: HttpHome) -> None:
    home.start_daemon()
    with MessagesStub(SCRIPTS) as stub:
        assert home.run("[[script:delete]] Tell me what is in this folder.", stub).returncode == 0
        assert (home.project / "notes.txt").exists()
        refused = [block for turn in stub.turns for block in results_of(turn) if block.get("is_error")]
        assert "coherence refused this call" in str(refused)
    with MessagesStub(SCRIPTS) as stub:
        assert home.run("[[script:loop]] Run missing.py.", stub).returncode == 0
        told = "\n".join(text for turn in stub.turns for text in texts_of(turn))
        assert "missing.py" in told.partition("hook additional context")[2]
    kinds = home.kinds()["claude-code"]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 9  # of the newest session


def test_init_http_without_a_daemon_the_agent_goes_on(home: HttpHome) -> None:
    with MessagesStub(SCRIPTS) as stub:
        home.state.joinpath("waking").touch()  # none is started, as if one had just failed to start
        assert home.run("[[script:loop]] Run missing.py.", stub).returncode == 0
    assert len(stub.turns) == 10
