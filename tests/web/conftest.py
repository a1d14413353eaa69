"""The browser and the store that all tests of the page share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from web.browsing import Look, launched, looking
from web.recorded_store import record_all, record_calm
from web.serving import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with something on every page; who writes to it copies it first."""
    path = tmp_path_factory.mktemp("recorded") / "runs.db"
    record_all(path)
    record_calm(path)
    return path


@pytest.fixture(scope="session")
def served(recorded: Path) -> Iterator[Served]:
    with serving(recorded) as served:
        yield served


@pytest.fixture
def look(browser: Browser, served: Served) -> Iterator[Look]:
    """Return a tab on the shared store, which is read only."""
    with looking(browser, served.server.url) as look:
        yield look
