"""Settings files of Gemini CLI, and the hooks that they get."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.gemini.settings import EVENTS, disabling_file, hook_groups, settings_path
from coherence.integrations.hook_settings import apply_change, is_ours, plan_install, plan_removal

GROUPS = hook_groups(hook_command(Path("/state"), host="gemini"))


def test_hook_groups_of_all_events_are_known_as_ours_and_name_the_host() -> None:
    for event, matcher in EVENTS.items():
        (hook,) = GROUPS[event]["hooks"]
        assert is_ours(hook)
        assert "--host gemini" in hook["command"]
        assert hook["timeout"] == 5_000
        assert GROUPS[event].get("matcher") == matcher


def test_hook_groups_a_command_that_is_gone_refuses_nothing() -> None:
    # To this client any exit status but 0 and 1 refuses, so that a package that was deinstalled would stop all work.
    command = hook_groups(shlex.join(["/gone/python", "/gone/hook.py"]))["BeforeTool"]["hooks"][0]["command"]
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 0


def test_hook_groups_are_put_in_and_taken_out_again(tmp_path: Path) -> None:
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    before = b'{\n    "theme": "dark", "hooks": {"BeforeTool": [{"matcher": "write_.*", "hooks": []}]}\n}'
    path.write_bytes(before)
    apply_change(plan_install(path, GROUPS))
    assert path.read_bytes() != before
    apply_change(plan_removal(path, GROUPS))
    assert path.read_bytes() == before


def test_settings_path_of_each_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    assert settings_path("user") == tmp_path / "home" / ".gemini" / "settings.json"
    assert settings_path("project") == tmp_path / ".gemini" / "settings.json"
    monkeypatch.setenv("GEMINI_CLI_HOME", "other")
    assert settings_path("user") == tmp_path / "other" / ".gemini" / "settings.json"


def test_disabling_file_is_the_first_that_decides(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("missing", "broken", "silent", "on", "off")]
    contents = ("{", '{"hooksConfig": 7}', '{"hooksConfig": {"enabled": true}}', '{"hooksConfig": {"enabled": false}}')
    for path, content in zip(paths[1:], contents, strict=True):
        path.write_text(content)
    assert disabling_file(paths) is None
    assert disabling_file([*paths[:3], paths[4], paths[3]]) == paths[4]
