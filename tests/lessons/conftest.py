"""Fixtures of the tests of lessons."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a test keeps its store."""
    return tmp_path / "lessons.db"
