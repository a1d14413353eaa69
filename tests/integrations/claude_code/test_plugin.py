"""The plug-in's folder: what is in it, what may become one, and where the client says that it runs it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from coherence.integrations.claude_code.hook_sources import hook_sources
from coherence.integrations.claude_code.plugin import HOOKS, installed_plugin, plan_plugin, plugin_files
from coherence.integrations.claude_code.settings import EVENTS, hook_groups
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import SettingsError, apply_change, has_ours, read_settings

STATE = Path("/my state")


def files(*, observe: bool = False) -> dict[str, str]:
    return plugin_files(hook_groups(hook_command(STATE, observe=observe)), STATE, "0.1.0")


def write(folder: Path, *, observe: bool = False) -> list[Path]:
    """Write the plug-in; return what was written."""
    changes = [change for change in plan_plugin(folder, files(observe=observe)) if change.needed]
    for change in changes:
        apply_change(change)
    return [change.path.relative_to(folder) for change in changes]


def test_plugin_files_are_what_the_client_reads() -> None:
    found = files()
    market = json.loads(found[".claude-plugin/marketplace.json"])
    plugin = json.loads(found["coherence/.claude-plugin/plugin.json"])
    (entry,) = market["plugins"]
    assert (market["name"], entry["name"], entry["source"]) == ("coherence", plugin["name"], "./coherence")
    assert plugin["version"] == "0.1.0"
    hooks = json.loads(found[HOOKS])["hooks"]
    assert list(hooks) == list(EVENTS) and all(map(has_ours, hooks.values()))


def test_plugin_files_only_a_person_starts_the_commands_and_status_needs_no_permission() -> None:
    found = files()
    commands = [text for name, text in found.items() if "/commands/" in name]
    assert len(commands) == 2 and all("\ndisable-model-invocation: true\n---\n" in text for text in commands)
    head, _, body = found["coherence/commands/status.md"].removeprefix("---\n").partition("---\n")
    command = body.partition("!`")[2].partition("`")[0]
    assert shlex.split(command)[1:] == ["-P", "-m", "coherence", "status", "--state", "/my state"]
    (allowed,) = json.loads(next(line for line in head.splitlines() if line.startswith("allowed")).partition(": ")[2])
    assert allowed == f"Bash({command})"


def test_plugin_files_status_is_of_this_package_whatever_the_project_holds(tmp_path: Path) -> None:
    (tmp_path / "coherence").mkdir()
    (tmp_path / "coherence" / "__main__.py").write_text("print('of the project')")
    text = plugin_files({}, tmp_path / "state", "0.1.0")["coherence/commands/status.md"]
    command = text.partition("!`")[2].partition("`")[0]
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "no daemon runs; the next hook starts it\n"


@pytest.mark.parametrize("name", ["a`b", "a$b", "a\nb"])
def test_plugin_files_refuses_a_path_that_the_client_would_read_otherwise(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot hold"):
        plugin_files({}, Path("/", name), "0.1.0")


def test_plan_plugin_writes_once_and_then_only_what_is_different(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "plug-in"
    assert [str(path) for path in write(folder)] == list(files())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert write(folder) == []
    (folder / "notes.txt").write_text("mine")
    assert write(folder, observe=True) == [Path(HOOKS)]
    assert (folder / "notes.txt").read_text() == "mine"
    assert "--observe" in json.dumps(read_settings(folder / HOOKS))


def test_plan_plugin_refuses_a_folder_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SettingsError, match="other things are in this folder"):
        plan_plugin(tmp_path, files())
    with pytest.raises(SettingsError, match="this is no folder"):
        plan_plugin(tmp_path / "notes.txt", files())
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin" / "marketplace.json").write_text('{"name": "other"}')
    with pytest.raises(SettingsError, match="other things"):
        plan_plugin(tmp_path, files())
    (tmp_path / ".claude-plugin" / "marketplace.json").write_text("{")
    with pytest.raises(SettingsError, match="not JSON"):
        plan_plugin(tmp_path, files())


@pytest.mark.parametrize("link", [".", "coherence", "coherence/hooks", "coherence/hooks/hooks.json"])
def test_plan_plugin_writes_through_no_link(tmp_path: Path, link: str) -> None:
    folder, elsewhere = tmp_path / "plug-in", tmp_path / "elsewhere"
    write(folder)
    (folder / link).rename(elsewhere)
    (Path(os.path.abspath(folder / link))).symlink_to(elsewhere)
    with pytest.raises(SettingsError, match=r"symbolic link|no folder"):
        plan_plugin(folder, files(observe=True))


def notes(home: Path, folder: Path | None, enabled: bool | None) -> list[Path]:
    """Write what the client keeps of a plug-in; return its settings files in the order in which they count."""
    (home / "plugins").mkdir(parents=True)
    place = {} if folder is None else {"coherence": {"installLocation": str(folder)}}
    (home / "plugins" / "known_marketplaces.json").write_text(json.dumps(place))
    settings = {} if enabled is None else {"enabledPlugins": {"coherence@coherence": enabled}}
    (home / "settings.json").write_text(json.dumps(settings))
    return [home / "project.json", home / "settings.json"]


@pytest.mark.parametrize(
    ("known", "enabled", "found"), [(True, True, True), (True, False, False), (True, None, False), (False, True, False)]
)
def test_installed_plugin_is_one_that_is_known_and_switched_on(
    tmp_path: Path, known: bool, enabled: bool | None, found: bool
) -> None:
    settings = notes(tmp_path / "home", tmp_path / "p" if known else None, enabled)
    assert installed_plugin(settings) == (tmp_path / "p" if found else None)


def test_installed_plugin_the_settings_of_a_project_count_first(tmp_path: Path) -> None:
    settings = notes(tmp_path / "home", tmp_path / "p", True)
    settings[0].write_text('{"enabledPlugins": {"coherence@coherence": false}}')
    assert installed_plugin(settings) is None
    settings[0].write_text('{"enabledPlugins": ["broken"]}')
    assert installed_plugin(settings) == tmp_path / "p"


def test_hook_sources_name_what_puts_the_plugin_in_and_takes_it_out(tmp_path: Path) -> None:
    project, user = notes(tmp_path / "home", tmp_path / "my p", True)
    found = hook_sources({"user": user, "project": project, "local": tmp_path / "local.json"})
    assert [source.is_plugin for source in found] == [False, False, False, True]
    assert found[-1].path == tmp_path / "my p" / HOOKS
    assert found[-1].init == f"coherence init --plugin '{tmp_path / 'my p'}'"
    assert found[-1].remove == "claude plugin uninstall coherence@coherence"
