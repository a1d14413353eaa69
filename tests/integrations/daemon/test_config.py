"""Settings of the daemon's sessions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from coherence.core.config import Budget, MonitorConfig
from coherence.integrations.daemon.config import usable_config


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "user.toml"
    monkeypatch.setenv("COHERENCE_CONFIG", str(path))
    return path


def test_usable_config_of_the_user_and_of_the_project_in_which_the_agent_works(user: Path, tmp_path: Path) -> None:
    assert usable_config(tmp_path) == usable_config(None) == MonitorConfig()
    user.write_text("window = 5\n[budget]\ncalls = 3\n")
    (tmp_path / "coherence.toml").write_text("window = 9\n[budget]\ncalls = 2\n")
    assert usable_config(None) == MonitorConfig(window=5, budget=Budget(calls=3))
    assert usable_config(tmp_path) == MonitorConfig(window=5, budget=Budget(calls=2))


@pytest.mark.parametrize("text", ["budget = ", "[budget]\ncals = 3\n", '[budget]\ncalls = "three"\n'])
def test_usable_config_leaves_out_a_bad_file_and_says_why(
    user: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    user.write_text("window = 5\n")
    (tmp_path / "coherence.toml").write_text(text)
    with caplog.at_level(logging.ERROR):
        assert usable_config(tmp_path) == MonitorConfig(window=5)
    assert str(tmp_path / "coherence.toml") in caplog.text
    user.write_text(text)
    with caplog.at_level(logging.ERROR):
        assert usable_config(tmp_path) == MonitorConfig()
    assert str(user) in caplog.text
