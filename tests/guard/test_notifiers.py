"""The log notifier: one line an event, without secrets and without control characters."""

from __future__ import annotations

import logging

import pytest

from coherence.guard.notifiers import LogNotifier

KEY = "sk-ant-api03-" + "Ab3dE5fG7h" * 9


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(("kind", "level"), [("ending", "WARNING"), ("restore_failed", "WARNING"), ("serving", "INFO")])
def test_log_notifier_writes_one_line_an_event(caplog: pytest.LogCaptureFixture, kind: str, level: str) -> None:
    caplog.set_level(logging.INFO, logger="coherence.guard")
    LogNotifier().notify({"agent": "support", "kind": kind, "text": "too\nslow \x1b[31m %s", "details": {"note": KEY}})
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("coherence.guard", level)
    start = f"support: {kind}: too slow [31m %s: " + '{"details":{"note":"[redacted'
    assert record.getMessage().startswith(start)
    assert KEY not in record.getMessage()


def test_log_notifier_takes_anything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="coherence.guard")
    for odd in (None, Odd(), "x" * 1_000_000, {"kind": ["a"]}, {"kind": {"b": 1}, "text": 3, "agent": None}, 7):
        LogNotifier().notify(odd)
    assert len(caplog.records) == 6
    assert all(len(record.getMessage()) < 10_000 for record in caplog.records)
    assert not logging.getLogger("coherence.guard").handlers
