"""Failures are counted, logged, and free of secrets."""

from __future__ import annotations

import logging

import pytest

from coherence.core.readings import times
from coherence.guard.error_counts import ErrorCounts

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9


def test_error_counts_the_first_and_each_power_of_ten_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ErrorCounts()
    for _ in range(250):
        troubles.add("store", OSError("full"))
    troubles.add("notifier", ValueError("no"))
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("coherence.guard", "WARNING", f"{stage} failed, {times(count)} so far: {text}")
        for stage, count, text in (
            ("store", 1, "OSError: full"),
            ("store", 10, "OSError: full"),
            ("store", 100, "OSError: full"),
            ("notifier", 1, "ValueError: no"),
        )
    ]
    assert troubles.counts == {"store: OSError": 250, "notifier: ValueError": 1}


def test_error_counts_secrets_are_replaced(caplog: pytest.LogCaptureFixture) -> None:
    troubles = ErrorCounts()
    troubles.add("adapter", ValueError(f"401 for key {KEY}"))
    assert troubles.newest == {"adapter": "ValueError: 401 for key [redacted:anthropic-key]"}
    assert KEY not in caplog.text


def test_error_counts_a_handler_that_raises_reaches_nobody() -> None:
    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError

    log, broken = logging.getLogger("coherence.guard"), Broken()
    log.addFilter(broken)
    try:
        troubles = ErrorCounts()
        troubles.add("store", "x")
    finally:
        log.removeFilter(broken)
    assert troubles.counts == {"store: x": 1}
