"""``coherence prometheus`` without its extra; with it, in ``tests/frameworks/test_prometheus.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from coherence.cli.main import main


def test_prometheus_without_its_extra_names_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    result = CliRunner().invoke(main, ["prometheus", "--store", str(tmp_path / "a.db")])
    assert result.exit_code == 2
    assert "prometheus_client is not installed" in result.stderr
    assert 'pip install "coherence-sensor[prometheus]"' in result.stderr


def test_prometheus_says_that_a_file_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["prometheus", str(tmp_path / "a.db")])
    assert result.exit_code == 2 and "a.db: no such file" in result.stderr
