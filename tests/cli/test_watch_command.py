from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import coherence.cli.watch
from coherence.cli.main import main


def test_watch_without_a_terminal_it_names_what_is_for_programs(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["watch", str(tmp_path / "none.db")])
    assert result.exit_code == 2 and "draws on a terminal" in result.output and "sessions --json" in result.output
    assert not (tmp_path / "none.db").exists()


def test_watch_without_textual_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coherence.cli.watch, "find_spec", lambda name: None)
    result = CliRunner().invoke(main, ["watch"])
    assert result.exit_code == 2 and 'pip install "coherence-sensor[tui]"' in result.output


def test_watch_a_folder_is_no_store(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["watch", str(tmp_path)])
    assert result.exit_code == 2 and "is a directory" in result.output
