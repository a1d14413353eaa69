"""Command of the hooks, and the state folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from coherence.integrations.daemon.hook_command import HOOK_FILE, hook_command, state_folder


def test_hook_command_is_quoted_and_runs_alone() -> None:
    state = Path("/it's my state")
    expected = [sys.executable, "-I", "-S", str(HOOK_FILE), str(state)]
    assert shlex.split(hook_command(state)) == expected
    assert shlex.split(hook_command(state, observe=True)) == [*expected, "--observe"]
    assert shlex.split(hook_command(state, host="codex")) == [*expected, "--host", "codex"]
    assert HOOK_FILE.is_file()


def test_state_folder_is_absolute_and_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COHERENCE_STATE", raising=False)
    assert state_folder().is_absolute()
    monkeypatch.setenv("COHERENCE_STATE", "here")
    assert state_folder() == Path.cwd() / "here"
