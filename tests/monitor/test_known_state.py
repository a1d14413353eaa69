"""State of an agent that somebody looks at while it is measured."""

from __future__ import annotations

import threading

import pytest

from coherence import Monitor
from coherence.providers import HashingEmbedder
from monitor.helpers import Gate, until


def test_known_state_is_there_at_once_while_a_measurement_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.monitor.worker.VIEW_WAIT_S", 60)  # who waits at all, waits longer than the gate
    m = Monitor(goal="List the files.", embedder=HashingEmbedder(32), config={"tick": "manual"})
    m.message("assistant", "I look.")
    first = m.decide()
    gate = Gate(monkeypatch)
    m.tool_result("no such file", error=True, tool="Bash")
    asking = threading.Thread(target=m.decide)
    asking.start()
    until(lambda: gate.asked.is_set() and not free(m))
    known = m.known_state
    assert asking.is_alive() and not gate.expired
    assert known.result is not None and known.result.decision == first
    assert (known.steps, known.calls, known.errors, known.spent.calls) == (2, 1, 1, 1)
    gate.go_on.set()
    asking.join()
    assert m.known_state.result is not None and m.known_state.result.decision.seq > first.seq
    m.close()


def free(m: Monitor) -> bool:
    """Tell whether no thread works at a monitor."""
    found = m._worker._lock.acquire(blocking=False)
    if found:
        m._worker._lock.release()
    return found


def test_known_state_is_what_was_folded_and_folds_nothing() -> None:
    m = Monitor(goal="List the files.", embedder=False, config={"tick": "manual"})
    m.flush()
    with m._worker._lock:  # nobody else folds
        m.tool_result("done", tool="Bash")
        assert m.known_state.calls == 0
    m.flush()
    assert m.known_state.calls == 1
    m.close()
