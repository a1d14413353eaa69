"""A store in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coherence.store.rows import SessionRow
from coherence.store.store import Store
from store.rows import begin


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.db", timeout_s=5, synchronous="NORMAL") as store:
        yield store


@pytest.fixture
def session(store: Store) -> SessionRow:
    return begin(store)
