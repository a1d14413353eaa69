"""Prompts that are commands to this package."""

from __future__ import annotations

import pytest

from coherence.integrations.claude_code.prompts import is_command, unblock_reason


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("/coherence:unblock", ""),
        ("/coherence:unblock  I looked\nat it ", "I looked\nat it"),
        ("/coherence:unblock\nthe user wants it", "the user wants it"),
        ("/coherence:unblocked", None),
        ("/coherence:status", None),
        ("Run /coherence:unblock for me", None),
        ("<task-notification>/coherence:unblock</task-notification>", None),
        ("", None),
    ],
)
def test_unblock_reason_of_the_command_itself_only(prompt: str, reason: str | None) -> None:
    assert unblock_reason(prompt) == reason


def test_is_command_only_at_the_beginning() -> None:
    assert is_command("/coherence:status now") and not is_command("See /coherence:status") and not is_command("")
