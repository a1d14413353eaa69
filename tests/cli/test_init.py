"""``coherence init``, as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.refusals import complaint
from coherence.cli.main import main
from coherence.integrations.claude_code.settings import EVENTS
from coherence.integrations.codex import settings as codex_settings
from coherence.integrations.daemon.hook_command import hook_command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's settings; the current one is a project's."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "home"


@pytest.fixture
def file(home: Path) -> Path:
    """Return the user's settings, with something in them."""
    home.mkdir()
    path = home / "settings.json"
    path.write_text('{"model": "opus"}')
    return path


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(main, ["init", *arguments], input=input)


def test_init_says_what_it_writes_and_writes_it(file: Path, tmp_path: Path) -> None:
    result = run("--yes")
    command = hook_command(tmp_path / "state")
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout.splitlines() == [
        f"file:    {file}",
        f"hooks:   one for each of 14 events: {', '.join(EVENTS)}",
        f"command: {command}",
        f"backup:  {file}.coherence-backup",
        "done: sessions that start from now on run them",
    ]
    found = json.loads(file.read_text())
    assert found["model"] == "opus" and list(found["hooks"]) == list(EVENTS)
    assert {group[0]["hooks"][0]["command"] for group in found["hooks"].values()} == {command}
    again = run("--yes")
    assert (again.exit_code, again.stdout) == (0, f"{file} has a hook for each of 14 events already: nothing to do\n")


@pytest.mark.parametrize(("scope", "name"), [("project", "settings.json"), ("local", "settings.local.json")])
def test_init_scopes_of_a_project_are_in_its_folder(home: Path, scope: str, name: str) -> None:
    result = run("--scope", scope, "--yes", "--observe")
    path = Path(".claude") / name
    assert result.exit_code == 0 and f"{path.absolute()} (a new file)" in result.stdout and not home.exists()
    assert json.loads(path.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"].endswith(" --observe")
    assert ("--scope local keeps it out of what others get" in result.stderr) == (scope == "project")
    assert run("--scope", scope, "--yes", "--remove").exit_code == 0 and not path.exists()


def test_init_dry_run_and_diff_write_nothing(file: Path) -> None:
    said, diff = run("--dry-run"), run("--diff")
    assert said.exit_code == diff.exit_code == 0
    assert said.stdout.endswith("nothing was written (--dry-run)\n") and f"file:    {file}" in said.stdout
    assert diff.stdout.startswith(f"--- {file}\n+++ {file}\n@@ ")
    assert file.read_text() == '{"model": "opus"}' and os.listdir(file.parent) == ["settings.json"]


def test_init_diff_is_empty_where_nothing_is_to_be_done(file: Path) -> None:
    assert run("--yes").exit_code == 0
    assert (run("--diff").stdout, run("--diff").exit_code) == ("", 0)
    assert "nothing to do" in run("--diff").stderr


def test_init_asks_first(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.cli.init._has_terminal", lambda: True)
    refused = run(input="n\n")
    assert refused.exit_code == 1 and file.read_text() == '{"model": "opus"}'
    assert run(input="y\n").exit_code == 0 and "hooks" in json.loads(file.read_text())


def test_init_without_a_terminal_says_to_add_yes(file: Path) -> None:
    assert complaint(run()) == "Error: nothing was written: there is no terminal to ask on; add --yes"
    assert file.read_text() == '{"model": "opus"}'


def test_init_remove_restores_the_bytes(file: Path) -> None:
    assert run("--yes").exit_code == 0
    result = run("--remove", "--yes")
    assert result.exit_code == 0 and f"from {file}.coherence-backup" in result.stdout
    assert file.read_text() == '{"model": "opus"}' and os.listdir(file.parent) == ["settings.json"]
    again = run("--remove", "--yes")
    assert (again.exit_code, again.stdout) == (0, f"{file} has no hook of this package: nothing to do\n")


def test_init_remove_says_that_the_backup_stays(file: Path) -> None:
    assert run("--yes").exit_code == 0
    file.write_text(json.dumps({**json.loads(file.read_text()), "model": "sonnet"}))
    assert f"{file}.coherence-backup stays" in run("--remove", "--yes").stdout
    assert json.loads(file.read_text()) == {"model": "sonnet"}


def test_init_says_that_hooks_are_switched_off(file: Path) -> None:
    file.write_text('{"disableAllHooks": true}')
    result = run("--yes")
    assert result.exit_code == 0
    assert result.stderr == f"warning: the hooks will not run: disableAllHooks is set in {file}\n"
    local = Path(".claude") / "settings.local.json"
    local.parent.mkdir()
    local.write_text('{"disableAllHooks": false}')  # it counts before the user's
    assert run("--dry-run").stderr == ""


def test_init_refuses_a_file_that_it_cannot_read(file: Path) -> None:
    file.write_text('{"hooks": []}')
    assert complaint(run("--yes")).startswith(f"Error: {file}:1: hooks must be an object; correct it")
    assert file.read_text() == '{"hooks": []}'
    file.unlink()
    file.mkdir()
    assert complaint(run("--yes")) == f"Error: {file}: Is a directory"


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of Codex, which is not there yet."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path / "codex"


def test_init_host_codex_says_what_it_writes_and_that_the_user_must_trust_it(codex: Path, tmp_path: Path) -> None:
    planned, written = run("--host", "codex", "--dry-run"), run("--host", "codex", "--yes")
    command = f"{hook_command(tmp_path / 'state', host='codex')} || true"
    assert written.exit_code == 0 and written.stderr == ""
    assert written.stdout.splitlines() == [
        f"file:    {codex / 'hooks.json'} (a new file)",
        f"hooks:   one for each of 9 events: {', '.join(codex_settings.EVENTS)}",
        f"command: {command}",
        "done: sessions that start from now on run them",
        f"next:    {codex_settings.NEXT_STEP}",
    ]
    assert planned.stdout.splitlines()[:3] == written.stdout.splitlines()[:3] and "next:" not in planned.stdout
    found = json.loads((codex / "hooks.json").read_text())["hooks"]
    assert {group[0]["hooks"][0]["command"] for group in found.values()} == {command}
    assert "nothing to do" in run("--host", "codex", "--yes").stdout
    removed = run("--host", "codex", "--remove", "--yes")
    assert removed.exit_code == 0 and "next:" not in removed.stdout and os.listdir(codex) == []


def test_init_host_codex_keeps_hooks_of_others_and_restores_the_bytes(codex: Path) -> None:
    codex.mkdir()
    others = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make lint"}]}]}}'
    (codex / "hooks.json").write_bytes(others)
    assert run("--host", "codex", "--observe", "--yes").exit_code == 0
    found = json.loads((codex / "hooks.json").read_text())["hooks"]["Stop"]
    assert found[0]["hooks"][0]["command"] == "make lint" and "--observe" in found[1]["hooks"][0]["command"]
    assert run("--host", "codex", "--remove", "--yes").exit_code == 0
    assert (codex / "hooks.json").read_bytes() == others and os.listdir(codex) == ["hooks.json"]


def test_init_host_codex_has_no_scopes_and_says_that_hooks_are_switched_off(codex: Path) -> None:
    assert complaint(run("--host", "codex", "--scope", "local")) == "Error: codex has no --scope local; it has user"
    codex.mkdir()
    (codex / "config.toml").write_text("[features]\nhooks = false\n")
    off = f"warning: the hooks will not run: hooks = false under [features] is set in {codex / 'config.toml'}\n"
    assert run("--host", "codex", "--dry-run").stderr == off
    for other in ("[features]\nhooks = true\n", "features = 1\n", "no TOML"):
        (codex / "config.toml").write_text(other)
        assert run("--host", "codex", "--dry-run").stderr == ""
