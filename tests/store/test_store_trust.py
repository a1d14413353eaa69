"""Learned trust in the store: over restarts, processes, forks and SIGKILL."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from coherence.fleet.fleet import Fleet, read_trust
from coherence.fleet.trust import Edge
from coherence.monitor.monitor import Monitor
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreError
from coherence.store.store import Store
from store.rows import fork, run_at_once

InChild: TypeAlias = Callable[[Callable[[], object]], str]

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork or SIGKILL")

CONFIG = {"tick": "step", "pressure": {"streak_floor": [0.71]}}
"""One error, and the agent's pressure is 0.71."""

ONCE = 0.4 + 0.1 * 0.71 * (0.95 - 0.4)
"""A weight of 0.4 after a failure while the source is at 0.71."""


def fleet(path: Path | Store, *names: str, **options: Any) -> Fleet:
    made = Fleet(store=path, embedder=HashingEmbedder(32), config=CONFIG, **options)
    for name in names:
        made.agent(name)
    return made


def fail(m: Monitor) -> None:
    m.tool_result("ImportError: no module named x", error=True, tool="Bash")


def learn(agents: Fleet) -> None:
    """Let the planner fail once while its source struggles."""
    fail(agents.agent("sub"))
    agents.agent("planner").outcome(success=False)


def kept(path: Path) -> tuple[Edge, ...]:
    with Store(path) as store:
        return read_trust(store).edges


def test_what_was_learned_goes_on_in_the_next_fleet(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        learn(agents)
    assert [edge.weight for edge in kept(path)] == [pytest.approx(ONCE)]
    with fleet(path, "sub", "planner") as agents:
        assert agents.trust.edge("sub", "planner").weight == pytest.approx(ONCE)  # before the edge is added again
        learn(agents)
        learned = agents.trust.edge("sub", "planner").weight
        assert learned > ONCE
        agents.add_edge("sub", "planner", 0.4)  # as the program does at each start
        assert agents.trust.edge("sub", "planner") == Edge("sub", "planner", learned)
        agents.add_edge("sub", "planner", 0.3)  # a second time, it is meant
        assert agents.trust.edge("sub", "planner").weight == 0.3
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.6, fixed=True)
        assert agents.trust.edge("sub", "planner") == Edge("sub", "planner", 0.6, True)


def test_trust_that_was_set_overrides_and_stays_fixed_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
    with fleet(path, "sub", "planner") as agents:
        agents.set_trust("sub", "planner", 0.2)
        agents.add_edge("sub", "planner", 0.4)
        assert agents.trust.edge("sub", "planner") == Edge("sub", "planner", 0.2, True)
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        learn(agents)
        assert agents.trust.edge("sub", "planner") == Edge("sub", "planner", 0.2, True)


def test_an_edge_or_an_agent_that_was_removed_does_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fleet(path, "sub", "planner", "chief") as agents:
        agents.add_edge("sub", "planner", 0.4)
        agents.add_edge("planner", "chief", 0.4)
    with fleet(path, "sub", "planner", "chief") as agents:
        agents.remove_edge("sub", "planner")
        agents.add_edge("sub", "planner", 0.7)  # a new one: nothing of the old is left
        assert agents.trust.edge("sub", "planner").weight == 0.7
        agents.remove_agent("planner")
        agents.agent("planner")
        agents.add_edge("planner", "chief", 0.8)
        assert agents.trust.edges() == (Edge("planner", "chief", 0.8),)
    with fleet(path, "planner", "chief") as agents:
        agents.remove_edge("planner", "chief")
    assert kept(path) == ()
    with fleet(path, "sub") as agents:
        assert agents.trust.agents == ("sub",)


def test_add_edge_an_edge_that_was_kept_counts_before_it_is_added_again(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.9)
    with fleet(path, "sub") as agents:
        recovered = agents.agent("sub")
        fail(recovered)
        assert list(agents.pressures()) == ["sub"]  # the planner is not there yet
        assert [status.agent for status in agents.status()] == ["sub"]
        assert agents.agent("planner").decide().kind == "warn"


def test_flush_two_fleets_on_one_store_keep_what_only_one_has_changed(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        with fleet(store, "a", "b", "c") as first:
            first.add_edge("a", "b", 0.4)
            first.add_edge("b", "c", 0.4)
        one, other = fleet(store, "a", "b", "c"), fleet(store, "a", "b", "c")
        one.set_trust("a", "b", 0.1)
        one.add_edge("a", "c", 0.3)
        one.close()
        other.set_trust("a", "b", 0.9, fixed=False)  # it has not seen that the edge was fixed
        other.set_trust("b", "c", 0.8, fixed=False)
        other.close()
        assert read_trust(store).edges == (Edge("a", "b", 0.1, True), Edge("a", "c", 0.3), Edge("b", "c", 0.8))
        other.flush()  # what was written once is not written again over what others have done since
        with fleet(store, "a", "b", "c") as last:
            last.set_trust("b", "c", 0.2)
        other.flush()
        assert read_trust(store).edges[-1] == Edge("b", "c", 0.2, True)


def test_trust_of_a_version_to_come_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store(path) as store, store.transaction() as transaction:
        transaction.set_trust(1.0, '{"version": 2}')
    with pytest.raises(ValueError, match="version 2, and this package reads version 1 only"):
        fleet(path)
    assert not path.with_name("s.db-wal").exists()  # the fleet closed what it had opened
    with Store(path) as store:
        assert store.trust() == '{"version": 2}'


def test_set_trust_the_store_takes_json_alone(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        with pytest.raises(StoreError), store.transaction() as transaction:
            transaction.set_trust(1.0, '{"edges"')
        with pytest.raises(ValueError, match="ts"), store.transaction() as transaction:
            transaction.set_trust(float("nan"), "{}")
        assert store.trust() is None


def until(path: Path, weight: float) -> bool:
    """Wait until the store holds an edge of this weight."""
    for _ in range(1_000):
        if [edge.weight for edge in kept(path)] == [pytest.approx(weight)]:
            return True
        time.sleep(0.01)
    return False


def test_flush_what_outcomes_teach_is_written_soon_without_a_flush(tmp_path: Path) -> None:
    with fleet(tmp_path / "s.db", "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        learn(agents)
        assert until(tmp_path / "s.db", ONCE)


def test_with_full_durability_it_is_written_before_the_outcome_returns(tmp_path: Path) -> None:
    with fleet(tmp_path / "s.db", "sub", "planner", durability="full") as agents:
        agents.add_edge("sub", "planner", 0.4)
        learn(agents)
        assert agents.store is not None
        assert [edge.weight for edge in read_trust(agents.store).edges] == [pytest.approx(ONCE)]


def test_flush_a_store_that_others_are_writing_to_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    monkeypatch.setattr("coherence.fleet.fleet.RETRY_S", 0.01)
    with Store(path, timeout_s=0.05) as store, Store(path) as other, fleet(store, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        with other.transaction():
            learn(agents)
            time.sleep(0.3)  # long enough for a first attempt that fails
        assert until(path, ONCE)


def test_a_store_that_cannot_be_written_stops_no_outcome_and_is_told_by_close(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db", timeout_s=0.05) as store:
        agents = fleet(store, "sub", "planner")
        agents.add_edge("sub", "planner", 0.4)
        store.close()
        learn(agents)
        assert agents.trust.edge("sub", "planner").weight == pytest.approx(ONCE)
        with pytest.raises(StoreError):
            agents.close()


@pytest.mark.slow
def test_agents_come_go_fail_and_decide_on_eight_threads(tmp_path: Path) -> None:
    raised: list[BaseException] = []
    with fleet(tmp_path / "s.db", "hub") as agents:

        def act(number: int) -> None:
            try:
                for turn in range(12):
                    name = f"{number}-{turn % 3}"
                    m = agents.agent(name)
                    agents.add_edge(name, "hub", 0.9)
                    agents.add_edge("hub", name, 0.9)
                    fail(m)
                    assert m.decide().kind in ("warn", "block")
                    assert 0.0 <= agents.agent("hub").pressure <= 1.0
                    agents.agent("hub").decide()
                    agents.pressures()
                    agents.status()
                    agents.agent("hub").outcome(success=turn % 2 == 0)
                    agents.remove_agent(name)
            except BaseException as error:  # what a thread raises would be lost
                raised.append(error)

        threads = [threading.Thread(target=act, args=(number,), daemon=True) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)
        assert raised == []
        assert agents.trust.agents == ("hub",) and agents.trust.edges() == ()
        assert agents.agent("hub").pressure == agents.agent("hub").own_pressure
    assert kept(tmp_path / "s.db") == ()
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []
        for row in store.sessions():
            assert Replay(store, row).report().differences == []


def learn_alone(path: Path, name: str, turns: int) -> Fleet:
    agents = fleet(path, name, "planner")
    agents.add_edge(name, "planner", 0.4)
    for _ in range(turns):
        fail(agents.agent(name))
        agents.agent("planner").outcome(success=False)
    return agents


@pytest.mark.slow
@posix
def test_processes_that_learn_at_once_lose_nothing_of_each_others_edges(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    def work(name: str) -> None:
        learn_alone(path, name, 3).close()

    run_at_once(*(partial(work, f"sub {number}") for number in range(4)))
    edges = kept(path)
    assert [edge.source for edge in edges] == [f"sub {number}" for number in range(4)]
    # w <- w + 0.071 (0.95 - w), three times
    assert [edge.weight for edge in edges] == [pytest.approx(0.95 - 0.55 * 0.929**3)] * 4


@posix
def test_flush_a_killed_process_loses_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    flushed, sender = os.pipe()
    child = fork()
    if child == 0:
        try:
            agents = learn_alone(path, "sub", 2)
            agents.flush()
            os.write(sender, b"x")
            while True:
                learn(agents)
                agents.flush()
        finally:
            os._exit(1)
    os.close(sender)
    assert os.read(flushed, 1) == b"x"
    os.close(flushed)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    (edge,) = kept(path)
    assert 0.95 - 0.55 * 0.929**2 <= edge.weight + 1e-12 <= 0.95
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        assert agents.trust.edge("sub", "planner") == edge
        assert agents.agent("planner").pressure == pytest.approx(agents.agent("sub").pressure * edge.weight)
    with Store(path) as store:
        assert store.verify() == []


@pytest.mark.slow
@posix
def test_fork_a_child_goes_on_by_itself_while_others_are_at_work(tmp_path: Path, in_child: InChild) -> None:
    path = tmp_path / "s.db"
    with fleet(path, "sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.4)
        fail(agents.agent("sub"))
        agents.flush()
        done = threading.Event()

        def churn() -> None:
            number = 0
            while not done.is_set():
                number += 1
                agents.agent("guest", config={"tick": "manual"})
                agents.add_edge("guest", "planner", 0.01)
                agents.pressures()
                agents.remove_agent("guest")

        thread = threading.Thread(target=churn, daemon=True)
        thread.start()

        def go_on() -> str:
            assert agents.agent("planner").pressure == 0.71 * 0.4
            kind = agents.agent("planner").decide().kind
            agents.agent("own")
            agents.add_edge("own", "planner", 0.5)
            agents.remove_agent("own")
            return kind

        assert [in_child(go_on) for _ in range(5)] == ["'guide'"] * 5
        done.set()
        thread.join(60)
    assert kept(path) == (Edge("sub", "planner", 0.4),)
