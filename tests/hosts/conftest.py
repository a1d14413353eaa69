"""Versions of the real client that the tests of hosts run with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hosts.claude_client import VERSION, installed
from hosts.hooked_claude import HookedClaude
from hosts.npm_client import UnavailableError


@pytest.fixture(scope="session", params=os.environ.get("COHERENCE_HOSTS_CLAUDE", VERSION).split(","))
def version(request: pytest.FixtureRequest) -> str:
    """Install each version that is asked for, or skip all its tests."""
    try:
        installed(request.param)
    except UnavailableError as error:
        pytest.skip(str(error))
    return str(request.param)


@pytest.fixture
def host(version: str) -> Iterator[HookedClaude]:
    """Give a client with an empty home and project."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # short: a socket lies in it
        made = HookedClaude(Path(name), version)
        yield made
        made.stop_daemon()
