"""The plug-in of this package in OpenCode's folder of plug-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import SettingsError, apply_change
from coherence.integrations.opencode.settings import (
    EVENTS,
    PLUGIN,
    hook_groups,
    plan_plugin,
    plugin_text,
    settings_path,
)

COMMAND = hook_command(Path('/a "state"'), host="opencode")
GROUPS = hook_groups(COMMAND)


def test_plan_plugin_there_and_back_leaves_nothing_but_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "plugins" / "coherence.js"
    apply_change(plan_plugin(path, GROUPS))
    assert path.read_text() == plugin_text(COMMAND)
    assert not plan_plugin(path, GROUPS).needed
    apply_change(plan_plugin(path, GROUPS, remove=True))
    assert list(path.parent.iterdir()) == []
    assert not plan_plugin(path, GROUPS, remove=True).needed


def test_plan_plugin_replaces_the_plug_in_of_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "coherence.js"
    path.write_text('const COMMAND = ["python", "/old/coherence/integrations/daemon/hook.py"]')
    apply_change(plan_plugin(path, GROUPS))
    assert path.read_text() == plugin_text(COMMAND)


def test_plan_plugin_a_plug_in_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "coherence.js"
    path.write_text("export const Mine = async () => ({})")
    for remove in (False, True):
        with pytest.raises(SettingsError, match=r"coherence\.js: this is a plug-in of somebody else"):
            plan_plugin(path, GROUPS, remove=remove)


def test_plan_plugin_writes_through_no_link(tmp_path: Path) -> None:
    path = tmp_path / "coherence.js"
    path.symlink_to(tmp_path / "elsewhere.js")
    with pytest.raises(SettingsError, match="symbolic link"):
        plan_plugin(path, GROUPS)


def test_plugin_text_names_the_command_of_the_hook_and_all_events() -> None:
    assert COMMAND not in PLUGIN.read_text()
    text = plugin_text(COMMAND)
    assert '/state"' not in text  # a quote of a path ends no string of the program
    assert '"/a \\"state\\"", "--host", "opencode"]' in text
    assert '["COMMAND"]' not in text
    # "session.idle" is handed on by the name that it has.
    assert all(f'"{event}"' in text for event in EVENTS)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")
def test_plugin_text_is_a_program(tmp_path: Path) -> None:
    path = tmp_path / "plugin.mjs"
    path.write_text(plugin_text(COMMAND))
    done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_settings_path_of_each_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert settings_path("user") == tmp_path / "home/.config/opencode/plugins/coherence.js"
    assert settings_path("project") == tmp_path / ".opencode/plugins/coherence.js"
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert settings_path("user") == tmp_path / "config/opencode/plugins/coherence.js"
