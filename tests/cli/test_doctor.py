"""``coherence doctor``, as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder, which others may enter; no client is installed."""
    for name, value in (("CLAUDE_CONFIG_DIR", "claude"), ("COHERENCE_STATE", "state"), ("COHERENCE_STORE", "store.db")):
        monkeypatch.setenv(name, str(tmp_path / value))
    for name in ("CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)
    return tmp_path / "state"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_doctor_says_what_fails_and_what_mends_it(state: Path) -> None:
    result = run("doctor")
    lines = result.stdout.splitlines()
    at = lines.index(f"FAIL   state       {state} has the mode 0755 and must have 0700")
    assert lines[at + 1] == f"                   > chmod 700 {state}"
    # The daemon cannot be asked either. Client, hooks, latency, store and transcript are not there.
    assert lines[-1] == "14 checks: 7 OK, 5 WARN, 2 FAIL"
    assert result.exit_code == 1 and result.stderr == "" and state.stat().st_mode & 0o777 == 0o755


def test_doctor_fix_says_what_it_has_done(state: Path) -> None:
    result = run("doctor", "--fix")
    assert result.exit_code == 0 and state.stat().st_mode & 0o777 == 0o700
    assert result.stdout.startswith(f"FIXED  made {state} private: its mode was 0755, and is 0700\n")
    assert result.stdout.endswith("14 checks: 8 OK, 6 WARN, 0 FAIL\n")  # no daemon runs


def test_doctor_json_has_the_same(state: Path) -> None:
    document = json.loads(run("doctor", "--fix", "--json").stdout)
    assert document["schema"] == "coherence.doctor/1" and len(document["mended"]) == 1
    assert {"name": "state", "status": "OK", "found": f"{state} is private", "mend": ""} in document["checks"]


def test_doctor_a_narrow_terminal_folds_all_but_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.cli.columns.width", lambda: 60)
    lines = run("doctor").stdout.splitlines()
    assert len(lines) > 20 and all(len(line) <= 60 for line in lines if "> " not in line)


def test_doctor_what_it_tells_to_do_mends_the_hooks() -> None:
    settings = Path("claude") / "settings.json"
    assert run("init", "--yes").exit_code == 0
    settings.write_text(settings.read_text().replace('"matcher": "*"', '"matcher": "Bash"', 1))
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json").stdout)["checks"]}
    assert checks["hooks"]["status"] == "FAIL"
    for command in checks["hooks"]["mend"].split(" && "):
        assert run(*command.split()[1:]).exit_code == 0
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json").stdout)["checks"]}
    assert checks["hooks"]["status"] == "OK"
