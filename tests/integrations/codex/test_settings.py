"""Where the hooks in Codex are, and what they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence.integrations.codex.session import CodexSession
from coherence.integrations.codex.settings import EVENTS, LAST_TIMEOUT_S, TIMEOUT_S, hook_groups, settings_path
from coherence.integrations.daemon import hook
from coherence.integrations.hook_settings import has_ours


def test_settings_path_is_in_the_folder_of_codex(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert settings_path() == tmp_path / "hooks.json"
    monkeypatch.delenv("CODEX_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_path() == tmp_path / ".codex" / "hooks.json"


def test_hook_groups_have_what_a_session_follows_and_a_time_that_codex_allows() -> None:
    with_hook = hook_groups("python coherence/integrations/daemon/hook.py /state")
    assert list(with_hook) == list(EVENTS) and all(has_ours([group]) for group in with_hook.values())
    timeouts = {event: group["hooks"][0]["timeout"] for event, group in with_hook.items()}
    assert timeouts.pop("SessionEnd") == LAST_TIMEOUT_S == 3 and set(timeouts.values()) == {TIMEOUT_S}
    assert hook.ANSWER_S + hook.CONNECT_S < TIMEOUT_S


def test_hook_groups_cover_each_event_that_a_session_knows() -> None:
    from coherence.fleet.fleet import Fleet

    with Fleet(embedder=False) as fleet:
        assert set(CodexSession(fleet, "s1").handlers) == set(EVENTS)
