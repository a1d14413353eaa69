"""Settings files of Claude Code, and the hooks that they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence.integrations.claude_code.settings import EVENTS, disabling_file, hook_groups, settings_path
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import with_hooks

GROUPS = hook_groups(hook_command(Path("/state")))


def test_hook_groups_of_the_events_that_concern_tools_match_all_of_them() -> None:
    found = with_hooks({}, GROUPS)["hooks"]
    matched = {event for event, groups in found.items() if groups[0].get("matcher") == "*"}
    assert matched == {"PreToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"}
    assert found.pop("PostToolUse")[0]["matcher"] == "Agent|Task"  # PostToolBatch tells the results of all
    assert all(list(groups[0]) == ["hooks"] for event, groups in found.items() if event not in matched)
    assert set(found) == set(EVENTS) - {"PostToolUse"} and len(EVENTS) == 17


def test_settings_path_of_each_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert settings_path("user") == tmp_path / "home" / ".claude" / "settings.json"
    assert settings_path("project") == tmp_path / ".claude" / "settings.json"
    assert settings_path("local", tmp_path / "p") == tmp_path / "p" / ".claude" / "settings.local.json"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "config")
    assert settings_path("user") == tmp_path / "config" / "settings.json"


def test_disabling_file_is_the_first_that_decides(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("missing", "broken", "silent", "on", "off")]
    for path, content in zip(
        paths[1:], ("{", "{}", '{"disableAllHooks": false}', '{"disableAllHooks": true}'), strict=True
    ):
        path.write_text(content)
    assert disabling_file(paths) is None
    assert disabling_file([*paths[:3], paths[4], paths[3]]) == paths[4]
