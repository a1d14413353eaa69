"""What is found of the hooks in Codex; with the real program in ``tests/hosts/test_codex.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from coherence.integrations.claude_code.diagnosis import Check
from coherence.integrations.codex import diagnosis
from coherence.integrations.codex.diagnosis import diagnose_codex
from coherence.integrations.codex.settings import hook_groups, settings_path
from coherence.integrations.daemon.hook_command import hook_command
from coherence.integrations.hook_settings import apply_change, plan_install

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the daemon needs Unix sockets")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder; Codex has nothing yet, and there is no such program."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "state"


def install(state: Path, *, observe: bool = False) -> Path:
    path = settings_path()
    apply_change(plan_install(path, hook_groups(hook_command(state, observe=observe, host="codex"))))
    return path


def found(state: Path) -> Check:
    """Return the check of what is in the file."""
    checks = {check.name: check for check in diagnose_codex(state)}
    return checks["codex"]


def test_diagnose_codex_without_hooks_there_is_nothing_to_check(state: Path) -> None:
    assert diagnose_codex(state) == []
    settings_path().parent.mkdir()
    settings_path().write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make"}]}]}}')
    assert diagnose_codex(state) == []


@pytest.mark.parametrize("observe", [False, True])
def test_diagnose_codex_all_hooks_are_there(state: Path, observe: bool) -> None:
    path = install(state, observe=observe)
    assert found(state) == Check("codex", "OK", f"{path}: a hook for each of 9 events")


def test_diagnose_codex_hooks_that_are_missing_changed_or_of_another_folder(state: Path, tmp_path: Path) -> None:
    path = install(state)
    written = json.loads(path.read_text())
    path.write_text(json.dumps({"hooks": {**written["hooks"], "PreToolUse": []}}))
    assert found(state) == Check(
        "codex", "FAIL", f"{path}: 1 of 9 events have no hook: PreToolUse", "coherence init --host codex --yes"
    )
    written["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 1
    path.write_text(json.dumps(written))
    assert found(state).status == "FAIL" and "the hook for Stop was changed" in found(state).found
    path.unlink()
    install(tmp_path / "other", observe=True)
    assert (found(state).status, found(state).mend) == ("FAIL", "coherence init --host codex --observe --yes")


def test_diagnose_codex_hooks_are_switched_off(state: Path) -> None:
    config = install(state).with_name("config.toml")
    config.write_text("[features]\nhooks = false\n")
    assert found(state).found == f"no hook runs: hooks = false under [features] is set in {config}"


def test_diagnose_codex_a_file_that_cannot_be_read(state: Path) -> None:
    settings_path().parent.mkdir()
    settings_path().write_text("{")
    (check,) = diagnose_codex(state)
    assert (check.name, check.status) == ("codex", "FAIL") and "this is not JSON" in check.found


def test_diagnose_codex_without_the_program_nobody_tells_what_is_trusted(state: Path) -> None:
    install(state)
    trust = diagnose_codex(state)[1]
    assert (trust.name, trust.status, trust.mend) == ("codex-trust", "WARN", "npm install -g @openai/codex")


@pytest.mark.parametrize("script", ["exit 0", 'echo []; echo \'{"id": 2, "error": {}}\'', "exec /bin/sleep 60"])
def test_diagnose_codex_a_program_that_does_not_tell_is_given_up(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(diagnosis, "ANSWER_S", 0.5)
    install(state)
    program = tmp_path / "bin" / "codex"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    trust = diagnose_codex(state)[1]
    assert trust.status == "WARN" and trust.found.startswith(f"{program} does not tell which hooks it trusts")
