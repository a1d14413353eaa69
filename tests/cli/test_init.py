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
from coherence.integrations.daemon.hook_command import NEVER_FAILS, hook_command


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
    command = hook_command(tmp_path / "state") + NEVER_FAILS
    assert result.exit_code == 0 and result.stderr == ""
    assert result.stdout.splitlines() == [
        f"file:    {file}",
        f"hooks:   one for each of 17 events: {', '.join(EVENTS)}",
        f"command: {command}",
        f"backup:  {file}.coherence-backup",
        "done: sessions that start from now on run them",
    ]
    found = json.loads(file.read_text())
    assert found["model"] == "opus" and list(found["hooks"]) == list(EVENTS)
    assert {group[0]["hooks"][0]["command"] for group in found["hooks"].values()} == {command}
    again = run("--yes")
    assert (again.exit_code, again.stdout) == (0, f"{file} has a hook for each of 17 events already: nothing to do\n")


@pytest.mark.parametrize(("scope", "name"), [("project", "settings.json"), ("local", "settings.local.json")])
def test_init_scopes_of_a_project_are_in_its_folder(home: Path, scope: str, name: str) -> None:
    result = run("--scope", scope, "--yes", "--observe")
    path = Path(".claude") / name
    assert result.exit_code == 0 and f"{path.absolute()} (a new file)" in result.stdout and not home.exists()
    assert json.loads(path.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"].endswith(" --observe || true")
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


def test_init_plugin_says_what_it_writes_and_how_it_is_installed(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my plug-in"
    result = run("--plugin", str(folder), "--yes")
    assert result.exit_code == 0 and result.stderr == "" and not home.exists()
    lines = result.stdout.splitlines()
    assert lines[0] == f"folder:  {folder} (a new plug-in)"
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert sorted(lines[1].removeprefix("files:   ").split(", ")) == written
    assert lines[-1].endswith(f"claude plugin marketplace add '{folder}' && claude plugin install coherence@coherence")
    again = run("--plugin", str(folder), "--yes")
    assert (again.exit_code, again.stdout) == (0, f"{folder} has the plug-in already: nothing to do\n")
    observe = run("--plugin", str(folder), "--observe", "--yes").stdout.splitlines()
    assert observe[1] == "files:   coherence/hooks/hooks.json" and "if the plug-in is installed" in observe[-1]


def test_init_plugin_dry_run_and_diff_write_nothing(tmp_path: Path) -> None:
    said, diff = (run("--plugin", str(tmp_path / "p"), option) for option in ("--dry-run", "--diff"))
    assert said.stdout.endswith("nothing was written (--dry-run)\n")
    assert f"+++ {tmp_path}/p/coherence/hooks/hooks.json" in diff.stdout
    assert complaint(run("--plugin", str(tmp_path / "p"))).endswith("no terminal to ask on; add --yes")
    assert not (tmp_path / "p").exists()


def test_init_plugin_refuses_other_folders_and_options_of_settings(tmp_path: Path) -> None:
    refused = f"Error: {tmp_path}: other things are in this folder; name a new or an empty one"
    assert complaint(run("--plugin", str(tmp_path), "--yes")) == refused
    removed = complaint(run("--plugin", str(tmp_path / "p"), "--remove", "--yes"))
    assert removed.endswith("claude plugin uninstall coherence@coherence removes the plug-in")
    scoped = complaint(run("--plugin", str(tmp_path / "p"), "--scope", "local", "--yes"))
    assert scoped.endswith("claude plugin install --scope local coherence@coherence has it")
    assert os.listdir(tmp_path) == ["project"]


def test_init_notes_that_settings_and_plugin_both_have_the_hooks(file: Path, tmp_path: Path) -> None:
    assert run("--yes").exit_code == 0
    note = run("--plugin", str(tmp_path / "p"), "--yes").stderr
    assert note == f"note: {file} has the hooks, too; one of both is enough: coherence init --scope user --remove\n"
    (file.parent / "plugins").mkdir()
    known = {"coherence": {"installLocation": str(tmp_path / "p")}}
    (file.parent / "plugins" / "known_marketplaces.json").write_text(json.dumps(known))
    file.write_text('{"enabledPlugins": {"coherence@coherence": true}}')
    assert f"note: the plug-in in {tmp_path / 'p'} has the hooks, too" in run("--yes").stderr


def test_init_http_has_the_events_of_each_step_posted_to_a_port(file: Path, tmp_path: Path) -> None:
    file.chmod(0o644)
    place = tmp_path / "state" / "http.json"
    assert run("--http", "--dry-run").exit_code == 0 and not place.exists()
    result = run("--http", "--yes")
    kept = json.loads(place.read_text())
    assert result.exit_code == 0 and f"port:    {kept['port']} of this machine alone" in result.stdout
    hooks = {event: groups[0]["hooks"][0] for event, groups in json.loads(file.read_text())["hooks"].items()}
    posted = {event for event, hook in hooks.items() if hook["type"] == "http"}
    assert posted == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"} and len(hooks) == 17
    assert hooks["PreToolUse"]["headers"] == {"Authorization": f"Bearer {kept['token']}"}
    # it holds a token now
    assert file.stat().st_mode & 0o777 == 0o600 and place.stat().st_mode & 0o777 == 0o600
    assert "nothing to do" in run("--http", "--yes").stdout
    assert run("--yes").exit_code == 0 and '"http"' not in file.read_text() and not place.exists()
    assert run("--http", "--yes").exit_code == 0 and run("--remove", "--yes").exit_code == 0
    assert file.read_text() == '{"model": "opus"}' and not place.exists()


def test_init_http_of_another_scope_keeps_the_port(file: Path, tmp_path: Path) -> None:
    assert run("--http", "--yes").exit_code == 0
    assert run("--scope", "local", "--yes").exit_code == 0
    assert (tmp_path / "state" / "http.json").exists()


@pytest.mark.parametrize("more", [["--scope", "project"], ["--host", "codex"], ["--plugin", "there"]])
def test_init_http_is_refused_where_others_would_get_the_token(home: Path, more: list[str]) -> None:
    assert "--http is for the user's own settings" in complaint(run("--http", "--yes", *more))


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of Codex, which is not there yet."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path / "codex"


def test_init_host_codex_says_what_it_writes_and_that_the_user_must_trust_it(codex: Path, tmp_path: Path) -> None:
    planned, written = run("--host", "codex", "--dry-run"), run("--host", "codex", "--yes")
    command = hook_command(tmp_path / "state", host="codex") + NEVER_FAILS
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
