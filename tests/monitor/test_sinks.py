from __future__ import annotations

import logging
from typing import Any

import pytest

from coherence.core.events import Message, Ticked
from coherence.monitor.monitor import Monitor
from coherence.monitor.sinks import AgentRecord


class Kept:
    def __init__(self) -> None:
        self.records: list[AgentRecord] = []
        self.over: list[tuple[str, str]] = []

    def emit(self, record: AgentRecord, /) -> None:
        self.records.append(record)

    def ended(self, agent: str, session: str) -> None:
        self.over.append((agent, session))


class Broken:
    def emit(self, record: object, /) -> None:
        raise ConnectionError("password=hunter2!x")

    def ended(self, agent: str, session: str) -> None:
        raise ConnectionError("gone")


def told(**options: Any) -> None:
    with Monitor(agent="a", goal="List.", embedder=False, config={"tick": "manual"}, **options) as m:
        m.message("assistant", "I look, password=hunter2!x")
        m.decide()


def test_sinks_get_every_record_once_with_its_result_and_without_secrets() -> None:
    kept = Kept()
    told(sinks=[kept])
    assert [(record.seq, record.agent, record.session) for record in kept.records] == [
        (seq, "a", "1") for seq in range(1, len(kept.records) + 1)
    ]
    assert [record.event.content for record in kept.records if isinstance(record.event, Message)] == [
        "I look, password=[redacted:password]"
    ]
    [tick] = [record for record in kept.records if isinstance(record.event, Ticked)]
    assert tick.result is not None
    assert tick.result.reading is not None
    assert kept.over == [("a", "1")]


def test_sinks_that_fail_cost_one_line_of_the_log_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    with caplog.at_level(logging.WARNING, "coherence"):
        told(sinks=[Broken(), kept])
    assert [record.message for record in caplog.records] == [
        "coherence: a sink failed (Broken: ConnectionError); told once"
    ]
    assert len(kept.records) >= 3


def test_check_sink_says_what_a_sink_has() -> None:
    with pytest.raises(TypeError, match=r"a sink has a method emit\(record\); object has none"):
        Monitor(sinks=[object()])  # type: ignore[list-item]
