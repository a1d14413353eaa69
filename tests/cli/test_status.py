"""``coherence status``, ``statusline`` and ``unblock``, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from integrations.running import call, fail, running
from jsonschema import Draft202012Validator

from coherence.cli.documents import read_schema
from coherence.cli.main import main
from coherence.cli.status import table_of
from coherence.integrations.daemon import hook

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")

NO_DAEMON = "no daemon runs; the next hook starts it"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder, which is not there yet."""
    monkeypatch.chdir(tmp_path)  # back again at the end
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=input)


def agent(name: str, parent: str | None = None, **changed: Any) -> dict[str, Any]:
    stands = {"index": 0.97, "band": "green", "trend": "steady", "pressure": 0.0, "mode": "observe"}
    counted = {"decision": "continue", "cause": "", "refusal": None, "steps": 12, "calls": 11, "errors": 0}
    told = {"cost_usd": None, "context_percent": None}
    return {"agent": name, "parent": parent, **stands, **counted, **told, **changed}


def test_status_without_a_daemon_is_no_failure(folder: Path) -> None:
    done = run("status")
    assert (done.exit_code, done.stdout) == (0, f"{NO_DAEMON}\n")
    found = json.loads(run("status", "--json").stdout)
    assert found == {"schema": "coherence.status/1", "pid": None, "build": None, "sessions": []}
    assert not folder.exists()
    assert run("daemon", "status").exit_code == 2


def test_table_of_subagents_stand_below_the_agent_that_started_them() -> None:
    agents = [
        agent("claude-code", cause="the newest calls failed", index=0.42, band="orange", trend="down", pressure=0.5),
        agent("claude-code/Explore-a1", "claude-code", index=None, band=None, trend=None, cost_usd=0.25),
        agent("claude-code/Explore-a1/Plan-b2", "claude-code/Explore-a1", refusal="refusal-1807ca99981cde9d"),
        agent("claude-code/Explore-c3", "claude-code"),
    ]
    sessions = [{"session": "s1", "idle_s": 4.0, "agents": agents}, {"session": "s2", "idle_s": 150.0, "agents": []}]
    assert table_of(sessions, 80) == [
        "agent         light        trend   press  decision  steps  calls  errors  cost",
        "session s1, used 4 s ago",
        "claude-code   orange 0.42  down    0.50   continue  12     11     0       –",
        "    the newest calls failed",
        "└ Explore-a1  unknown      –       0.00   continue  12     11     0       $0.25",
        "  └ Plan-b2   green 0.97   steady  0.00   continue  12     11     0       –",
        "    newest refusal: coherence explain refusal-1807ca99981cde9d",
        "└ Explore-c3  green 0.97   steady  0.00   continue  12     11     0       –",
        "session s2, used 2 min ago",
    ]


def test_table_of_fits_80_columns_whatever_the_names_and_reasons_are() -> None:
    worst: dict[str, Any] = {"index": 0.72, "band": "yellow", "cost_usd": 12.34, "errors": 1234}
    worst["cause"], worst["refusal"] = "why\n\x1b[2J" * 100, "refusal-1807ca99981cde9d"
    agents = [agent("claude-code", **worst)]
    agents += [agent(f"claude-code/general-purpose-a1b2c3d4e5{at}6", "claude-code", **worst) for at in range(3)]
    lines = table_of([{"session": "s" * 200, "idle_s": 0.0, "agents": agents}], 80)
    assert max(map(len, lines)) <= 80 and all(map(str.isprintable, lines))
    assert len({line.split("  ")[0] for line in lines if line.startswith("└")}) == 3
    assert table_of([], 80) == []


def test_unblock_without_a_daemon_says_so() -> None:
    done = run("unblock")
    assert (done.exit_code, done.stderr) == (1, f"Error: {NO_DAEMON}\n")


def test_unblock_the_newest_session_lets_the_refused_call_run(folder: Path) -> None:
    with running(folder):
        assert run("unblock").stderr == "Error: no session is followed now; name one: --session\n"
        assert call("s1", "ls") and not call("s2", "rm -rf /")
        done = run("unblock", "I looked at it")
        assert (done.exit_code, done.stdout.splitlines()) == (
            0,
            [
                "session s2, claude-code: the call refused last may run",
                "forgotten: 1 refusal kept for hooks without a daemon",
            ],
        )
        assert call("s2", "rm -rf /")
        assert run("unblock", "--session", "s1").stdout == "session s1: no agent is blocked\n"
        unknown = run("unblock", "--session", "s3")
        assert (unknown.exit_code, unknown.stderr) == (1, "Error: nothing is known of the session s3\n")
        assert run("unblock", "--agent", "Plan").exit_code == 1
        assert not [path for path in (folder / hook.BLOCKED).iterdir() if path.is_file()]


def test_unblock_ends_the_block_of_a_subagent(folder: Path) -> None:
    with running(folder):
        fail("s1", 12, agent_id="a1", agent_type="Explore")
        said = run("unblock").stdout
        assert "claude-code/Explore-a1: the block by " in said and said.endswith(" ended\n")
        (_, child) = json.loads(run("status", "--json").stdout)["sessions"][0]["agents"]
        assert child["decision"] == "warn"


def test_status_of_a_real_daemon_fits_its_schema(folder: Path) -> None:
    with running(folder) as process:
        fail("s1", 6)
        fail("s1", 3, agent_id="a1", agent_type="Explore")
        found = json.loads(run("status", "--json").stdout)
        Draft202012Validator(read_schema("status")).validate(found)
        first, head, session, main, cause, child, *_ = run("status").stdout.splitlines()
        assert first == f"daemon {process.pid} follows 1 session" and head.startswith("agent ")
        assert session.startswith("session s1, used ") and session.endswith(" s ago")
        assert main.startswith("claude-code ") and cause.startswith("    ") and child.startswith("└ Explore-a1 ")
        line = json.loads(run("statusline", "--json", input='{"session_id": "s1"}').stdout)
        Draft202012Validator(read_schema("statusline")).validate(line)
        assert line["band"] == found["sessions"][0]["agents"][0]["band"]


def test_statusline_print_setting_has_a_command_that_runs(folder: Path) -> None:
    setting = json.loads(run("statusline", "--print-setting").stdout)["statusLine"]
    assert setting["type"] == "command" and str(folder) in setting["command"]
    done = subprocess.run(["sh", "-c", setting["command"]], input="{}", capture_output=True, text=True, check=True)
    assert done.stdout == run("statusline", input="{}").stdout == "coherence: no daemon\n"
