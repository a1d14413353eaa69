"""Settings of the daemon's sessions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from coherence.core.config import MonitorConfig
from coherence.integrations.daemon.config import config_path, read_config, usable_config


def test_config_path_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COHERENCE_CONFIG", raising=False)
    assert config_path().is_absolute() and config_path().name == "config.toml"
    monkeypatch.setenv("COHERENCE_CONFIG", "mine.toml")
    assert config_path() == Path.cwd() / "mine.toml"


def test_read_config_of_a_file_and_of_none(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert read_config(path) == MonitorConfig()
    path.write_text("[budget]\ncalls = 3\n")
    budget = read_config(path).budget
    assert budget is not None and budget.calls == 3


@pytest.mark.parametrize("text", ["budget = ", "[budget]\ncals = 3\n", '[budget]\ncalls = "three"\n'])
def test_usable_config_of_a_bad_file_is_the_default_one_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"config\.toml"):
        read_config(path)
    with caplog.at_level(logging.ERROR):
        assert usable_config(path) == MonitorConfig()
    assert str(path) in caplog.text
