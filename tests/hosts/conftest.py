"""Versions of the real client that the tests of hosts run with."""

from __future__ import annotations

import os

import pytest

from hosts.claude_client import VERSION, UnavailableError, installed


@pytest.fixture(scope="session", params=os.environ.get("COHERENCE_HOSTS_CLAUDE", VERSION).split(","))
def version(request: pytest.FixtureRequest) -> str:
    """Install each version that is asked for, or skip all its tests."""
    try:
        installed(request.param)
    except UnavailableError as error:
        pytest.skip(str(error))
    return str(request.param)
