"""The seed from which everything in this folder is drawn."""

from __future__ import annotations

import zlib

import pytest


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return a number of the test's own, which follows from ``--torture-seed``; a failure shows how to repeat it."""
    chosen = int(request.config.getoption("--torture-seed"))
    name = request.node.nodeid
    print(f"repeat with: pytest -m 'slow or torture' '{name}' --torture-seed={chosen}")
    return zlib.crc32(f"{chosen} {name.rpartition('::')[2]}".encode())
