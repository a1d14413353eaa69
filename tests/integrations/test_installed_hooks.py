"""Diagnosis of the hooks in Gemini CLI and OpenCode."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.gemini import settings as gemini
from coherence.integrations.hook_plans import plan_change
from coherence.integrations.hook_settings import apply_change
from coherence.integrations.installed_hooks import diagnose_hooks
from coherence.integrations.opencode import settings as opencode

HOSTS = pytest.mark.parametrize(("host", "settings"), [("gemini", gemini), ("opencode", opencode)])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the clients, and those of a project, in folders of the test."""
    for name in ("GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def install(host: str, settings: ModuleType, state: str, scope: str = "user", *, observe: bool = False) -> Path:
    """Put the hooks in, and return their file."""
    path: Path = settings.settings_path(scope)
    groups = settings.hook_groups(hook_command(Path(state), observe=observe, host=host))
    apply_change(plan_change(settings, path, groups))
    return path


@HOSTS
def test_diagnose_hooks_where_there_are_none_says_nothing(host: str, settings: ModuleType) -> None:
    assert diagnose_hooks(host, settings, Path("/state")) == []


@HOSTS
def test_diagnose_hooks_that_are_all_there_are_ok(host: str, settings: ModuleType) -> None:
    user = install(host, settings, "/state")
    project = install(host, settings, "/state", "project", observe=True)
    found = diagnose_hooks(host, settings, Path("/state"))
    assert [(each.status, each.found, each.mend) for each in found] == [
        ("OK", f"{user}: all hooks are there", ""),
        ("OK", f"{project}: only looks on", ""),
    ]


@HOSTS
def test_diagnose_hooks_of_another_state_folder_fail_and_init_mends_them(host: str, settings: ModuleType) -> None:
    path = install(host, settings, "/elsewhere", observe=True)
    (found,) = diagnose_hooks(host, settings, Path("/state"))
    assert (found.name, found.status) == (host, "FAIL") and str(path) in found.found
    assert found.mend == f"coherence init --host {host} --scope user --observe --yes"
    install(host, settings, "/state", observe=True)
    assert [each.status for each in diagnose_hooks(host, settings, Path("/state"))] == ["OK"]


def test_diagnose_hooks_that_are_switched_off_fail() -> None:
    path = install("gemini", gemini, "/state")
    path.write_text(path.read_text().replace("{", '{"hooksConfig": {"enabled": false},', 1))
    (found,) = diagnose_hooks("gemini", gemini, Path("/state"))
    assert found.status == "FAIL" and "no hook runs: hooksConfig.enabled = false" in found.found


def test_diagnose_hooks_settings_that_cannot_be_read_are_a_warning() -> None:
    path = gemini.settings_path("user")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    (found,) = diagnose_hooks("gemini", gemini, Path("/state"))
    assert found.status == "WARN" and "settings.json:1: this is not JSON" in found.found
