"""``coherence init --host``: the hooks of clients other than Claude Code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.refusals import complaint
from coherence.cli.main import main
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.gemini.settings import EVENTS
from coherence.integrations.opencode.settings import plugin_text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which clients have their settings; the current one is a project's."""
    for name in ("GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["init", *arguments])


def test_init_gemini_says_what_it_writes_and_writes_it(home: Path, tmp_path: Path) -> None:
    path = home / ".gemini" / "settings.json"
    command = f"{hook_command(tmp_path / 'state', host='gemini')} || true"
    result = run("--host", "gemini", "--yes")
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout.splitlines() == [
        f"file:    {path} (a new file)",
        f"hooks:   one for each of 6 events: {', '.join(EVENTS)}",
        f"command: {command}",
        "done: sessions that start from now on run them",
    ]
    found = json.loads(path.read_text())["hooks"]
    assert {group[0]["hooks"][0]["command"] for group in found.values()} == {command}
    assert run("--host", "gemini", "--remove", "--yes").exit_code == 0
    assert not path.exists()


def test_init_gemini_hooks_that_are_switched_off_are_told(home: Path) -> None:
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text('{"hooksConfig": {"enabled": false}}')
    told = "warning: the hooks will not run: hooksConfig.enabled = false is set in"
    assert told in run("--host", "gemini", "--dry-run").stderr


def test_init_gemini_a_scope_that_it_does_not_have_is_refused() -> None:
    assert "gemini has no --scope local; it has user, project" in complaint(run("--host", "gemini", "--scope", "local"))


def test_init_opencode_writes_its_plug_in_and_takes_it_away(home: Path, tmp_path: Path) -> None:
    path = home / "opencode" / "plugins" / "coherence.js"
    assert "new file" in run("--host", "opencode", "--dry-run").stdout and not path.exists()
    result = run("--host", "opencode", "--observe", "--yes")
    assert result.exit_code == 0, result.output
    assert path.read_text() == plugin_text(hook_command(tmp_path / "state", observe=True, host="opencode"))
    assert "nothing to do" in run("--host", "opencode", "--observe", "--yes").stdout
    assert run("--host", "opencode", "--remove", "--yes").exit_code == 0
    assert not path.exists()


def test_init_opencode_for_a_project_names_no_scope_that_it_does_not_have() -> None:
    result = run("--host", "opencode", "--scope", "project", "--yes")
    assert result.stderr == "note: the command names files of this machine\n"
    assert Path(".opencode/plugins/coherence.js").exists()


def test_init_opencode_a_plug_in_of_somebody_else_is_refused(home: Path) -> None:
    path = home / "opencode" / "plugins" / "coherence.js"
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = async () => ({})")
    assert "this is a plug-in of somebody else" in complaint(run("--host", "opencode", "--yes"))
