from __future__ import annotations

import os
from pathlib import Path

import pytest

from coherence.export.store_records import StoreRecords
from coherence.guard import Guard
from coherence.monitor.monitor import Monitor
from coherence.monitor.sinks import AgentRecord
from coherence.store.errors import StoreError
from coherence.store.store import Store


class Kept:
    """Sink that keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[AgentRecord] = []

    def emit(self, record: AgentRecord) -> None:
        self.records.append(record)


def work(m: Monitor) -> None:
    call = m.tool_call("Bash", {"command": "pytest -q"})
    m.tool_result("ImportError", error=True, call=call)
    m.decide()
    m.flush()


def test_store_records_are_those_of_a_sink_each_once(tmp_path: Path) -> None:
    store, kept = tmp_path / "runs.db", Kept()
    records = StoreRecords(store)
    with Monitor(agent="a", goal="Fix it", store=store, embedder=False, sinks=[kept]) as m:
        work(m)
        first = list(records.newer())
        assert first == kept.records and any(record.result is not None for record in first)
        assert list(records.newer()) == []
        work(m)
        assert first + list(records.newer()) == kept.records


def test_store_records_leave_out_tests_guards_and_what_was_purged(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for agent, source in (("real", "api"), ("probe", "test"), ("gone", "api")):
        with Monitor(agent=agent, store=store, embedder=False, source=source) as m:  # type: ignore[arg-type]
            work(m)
    with Guard(store=store) as guard:
        guard.run(lambda: 1, agent="guarded")
    assert {record.agent for record in StoreRecords(store).newer()} == {"real", "gone"}
    with Store(store) as opened:
        opened.purge("gone")
    assert {record.agent for record in StoreRecords(store).newer()} == {"real"}


def test_store_records_of_another_file_begin_anew(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with Monitor(agent=name, store=tmp_path / f"{name}.db", embedder=False) as m:
            work(m)
    records = StoreRecords(tmp_path / "one.db")
    assert not records.is_new_file() and {record.agent for record in records.newer()} == {"one"}
    os.replace(tmp_path / "other.db", tmp_path / "one.db")
    assert records.is_new_file() and {record.agent for record in records.newer()} == {"other"}
    (tmp_path / "one.db").write_bytes(b"no store at all, and long enough to be looked at")
    with pytest.raises(StoreError, match=r"one\.db"):
        list(records.newer())
