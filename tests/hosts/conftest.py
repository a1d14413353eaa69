"""Versions of the real client that the tests of hosts run with."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hosts.claude_client import VERSION, installed
from hosts.hooked_claude import HookedClaude
from hosts.hooked_home import skipping, temporary


@pytest.fixture(scope="session", params=os.environ.get("COHERENCE_HOSTS_CLAUDE", VERSION).split(","))
def version(request: pytest.FixtureRequest) -> str:
    """Install each version that is asked for, or skip all its tests."""
    with skipping():
        installed(request.param)
    return str(request.param)


@pytest.fixture
def host(version: str) -> Iterator[HookedClaude]:
    """Give a client with an empty home and project."""
    with temporary(lambda folder: HookedClaude(folder, version)) as made:
        yield made
