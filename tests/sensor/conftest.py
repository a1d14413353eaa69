from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture
def forever() -> Iterator[threading.Event]:
    """An event that is never set while the test runs, so that what waits for it hangs."""
    event = threading.Event()
    yield event
    event.set()
