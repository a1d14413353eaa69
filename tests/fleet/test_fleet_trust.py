"""Trust between the agents of a fleet: what of one agent's pressure another one decides by, and when."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest

from coherence.core.decisions import Decision, Finding, Mode
from coherence.core.events import Received, Ticked
from coherence.fleet.fleet import Fleet
from coherence.monitor.monitor import Monitor
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.store.store import Store

CONFIG = {"tick": "step", "pressure": {"streak_floor": [0.71]}}
"""One error, and the agent's pressure is 0.71; the share of errors alone would make 0.70 of it."""


def fleet(*names: str, **options: Any) -> Fleet:
    made = Fleet(**{"embedder": HashingEmbedder(32), "config": CONFIG, **options})
    for name in names:
        made.agent(name)
    return made


def fail(m: Monitor) -> None:
    m.tool_result("ImportError: no module named x", error=True, tool="Bash")


def recover(m: Monitor) -> None:
    """Let a hundred calls succeed: no error is left among the last ten."""
    for number in range(100):
        m.tool_result(f"ok {number}", tool="Read")


def received(decision: Decision) -> Finding | None:
    return next((finding for finding in decision.findings if finding.rule == "received_pressure"), None)


def chain(agents: Fleet) -> tuple[Monitor, Monitor, Monitor]:
    agents.add_edge("claude_sub", "planner", trust_weight=0.4)
    agents.add_edge("planner", "orchestrator", trust_weight=0.9)
    return agents.agent("claude_sub"), agents.agent("planner"), agents.agent("orchestrator")


NAMES = ("claude_sub", "planner", "orchestrator")


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], ("planner", "orchestrator", "claude_sub")])
def test_pressures_a_struggling_agent_is_felt_by_its_parent_and_on_from_there_in_any_order(
    order: tuple[str, ...],
) -> None:
    with fleet(*order) as agents:
        sub, planner, orchestrator = chain(agents)
        assert (sub.pressure, planner.pressure, orchestrator.pressure) == (0.0, 0.0, 0.0)
        fail(sub)
        assert sub.pressure == 0.71
        assert planner.pressure == pytest.approx(0.284, abs=1e-12)  # 0.71 x 0.4
        assert orchestrator.pressure == pytest.approx(0.2556, abs=1e-12)  # 0.284 x 0.9
        assert (planner.own_pressure, orchestrator.own_pressure) == (0.0, 0.0)
        assert {name: found.path for name, found in agents.pressures().items()} == {
            "claude_sub": ("claude_sub",),
            "planner": ("claude_sub", "planner"),
            "orchestrator": NAMES,
        }


def test_the_parents_mode_and_decision_follow_at_once_without_an_event_of_its_own() -> None:
    with fleet(*NAMES) as agents:
        sub, planner, orchestrator = chain(agents)
        assert (planner.mode, planner.decide().kind) == (Mode.OBSERVE, "continue")
        fail(sub)
        assert planner.mode is Mode.GUIDE  # 0.284: from 0.25 on
        decision = planner.decide()
        assert decision.kind == "guide"
        found = received(decision)
        assert found is not None and found.active
        assert found.score == pytest.approx(0.284) and found.threshold == 0.25
        assert found.why == "claude_sub is in trouble, and 0.28 of it reaches this agent (claude_sub > planner)"
        assert "look at claude_sub" in found.action and found.why in decision.message
        far = received(orchestrator.decide())
        assert far is not None and far.why.endswith(
            "0.26 of it reaches this agent (claude_sub > planner > orchestrator)"
        )
        assert received(sub.decide()) is None  # nothing leaks against the direction of an edge
        assert planner.check("Bash", {"command": "ls"}).kind == "guide"


def test_add_edge_what_reaches_the_parent_but_stays_below_its_threshold_is_told_and_not_acted_upon() -> None:
    with fleet("sub", "planner") as agents:
        agents.add_edge("sub", "planner", 0.35)  # 0.71 x 0.35 = 0.2485
        fail(agents.agent("sub"))
        decision = agents.agent("planner").decide()
        found = received(decision)
        assert found is not None and not found.active
        assert (decision.kind, agents.agent("planner").mode) == ("continue", Mode.OBSERVE)


def test_add_edge_nothing_echoes_when_the_struggling_agent_has_recovered() -> None:
    with fleet("a", "b") as agents:
        agents.add_edge("a", "b", 0.8)
        agents.add_edge("b", "a", 0.8)
        a, b = agents.agent("a"), agents.agent("b")
        fail(a)
        assert b.pressure == pytest.approx(0.568) and b.decide().kind == "warn"  # 0.71 x 0.8
        assert a.pressure == 0.71  # not fed by itself
        recover(a)
        calm = a.own_pressure
        assert calm < 0.1
        assert b.pressure == calm * 0.8
        assert (b.decide().kind, b.mode, a.pressure) == ("continue", Mode.OBSERVE, calm)


def test_pressures_full_trust_in_a_ring_is_damped_and_feeds_nobody() -> None:
    with fleet("a", "b", "c", "d") as agents:
        for source, target in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
            agents.add_edge(source, target, 1.0)
        fail(agents.agent("a"))
        values = {name: found.value for name, found in agents.pressures().items()}
        # 0.9 for each edge of the ring, 1 for the one that leads out of it
        assert values == pytest.approx({"a": 0.71, "b": 0.639, "c": 0.5751, "d": 0.5751})
        assert agents.pressures()["a"].path == ("a",)
        recover(agents.agent("a"))
        assert max(m.pressure for m in agents) < 0.1


def test_add_edge_a_tick_at_a_step_sees_what_has_been_folded_of_the_others() -> None:
    with fleet("sub", "planner", config={**CONFIG, "tick": "step"}) as agents:
        agents.add_edge("sub", "planner", 0.9)
        sub, planner = agents.agent("sub"), agents.agent("planner")
        fail(sub)
        sub.flush()
        planner.message("assistant", "next I shall read the file")
        planner.flush()  # folds it and measures, as the background thread does: nobody asks for a decision
        verdict = planner.result
        assert verdict is not None and verdict.decision.kind == "warn"
        assert verdict.appraisal.received == Received(0.71 * 0.9, ("sub", "planner"))
        assert verdict.appraisal.seq == 2  # of the tick: the message is event 1


def test_add_edge_an_interval_tick_notices_without_an_event_or_a_question() -> None:
    with fleet("sub") as agents:
        fail(agents.agent("sub"))
        planner = agents.agent("planner", config={"tick": 0.01})
        agents.add_edge("sub", "planner", 0.9)
        noticed = threading.Event()
        for _ in range(1_000):
            if planner.result is not None and planner.result.decision.kind == "warn":
                break
            noticed.wait(0.01)
        assert planner.result is not None and planner.result.decision.kind == "warn"
        assert not [record for record in planner.events() if type(record.event) is not Ticked]


def test_status_shows_the_effective_pressure_and_its_mode() -> None:
    with fleet(*NAMES) as agents:
        sub, planner, orchestrator = chain(agents)
        fail(sub)
        shown = {status.agent: (status.pressure, status.mode) for status in agents.status()}
        assert shown == {m.agent: (m.pressure, m.mode) for m in (sub, planner, orchestrator)}
        assert shown["planner"][0] == pytest.approx(0.284) and shown["planner"][1] is Mode.GUIDE
        # At once, without a measurement: 0.284 guides, 0.2556 too.
        assert [status.decision for status in agents.status()] == ["warn", "guide", "guide"]
        planner.decide()
        assert [status.decision for status in agents.status()] == ["warn", "guide", "guide"]
        assert "sub > planner > orchestrator" in agents.status()[2].cause


def test_a_removed_agent_leaves_no_edge_and_no_pressure() -> None:
    with fleet("sub", "planner", "chief") as agents:
        agents.add_edge("sub", "planner", 0.9)
        agents.add_edge("planner", "chief", 0.9)
        sub, planner = agents.agent("sub"), agents.agent("planner")
        fail(sub)
        assert agents.agent("chief").pressure > 0.5
        agents.remove_agent("planner")
        assert agents.trust.edges() == () and agents.trust.agents == ("chief", "sub")
        assert agents.agent("chief").pressure == 0.0
        assert list(agents.pressures()) == ["sub", "chief"]
        assert planner.pressure == 0.0  # closed, and on its own
        agents.agent("planner")
        assert agents.trust.edges() == () and agents.agent("planner").pressure == 0.0
        with pytest.raises(ValueError, match="'nobody' is not an agent of this fleet"):
            agents.remove_agent("nobody")


def test_agents_and_edges_that_are_not_there_are_refused_by_name() -> None:
    with fleet("a", "b") as agents:
        for source, target, field in (("nobody", "b", "source"), ("a", "nobody", "target")):
            with pytest.raises(ValueError, match=f"{field} 'nobody' is not an agent of this fleet: make it"):
                agents.add_edge(source, target)
        with pytest.raises(ValueError, match="must be two agents"):
            agents.add_edge("a", "a")
        with pytest.raises(TypeError, match="fixed"):
            agents.add_edge("a", "b", 0.5, fixed="yes")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="no edge from 'a' to 'b'"):
            agents.set_trust("a", "b", 0.5)
        with pytest.raises(ValueError, match="no edge from 'a' to 'b'"):
            agents.remove_edge("a", "b")
        with pytest.raises(ValueError, match="budget"):
            agents.agent("c", budget={"calls": -1})
        assert agents.trust.agents == ("a", "b") and agents.trust.edges() == ()


def test_remove_agent_hostile_names_are_one_agent_each_however_they_are_written() -> None:
    with fleet() as agents:
        broken, long = "a\ud800\0", "\u202eagent " * 400
        assert agents.agent(broken) is agents.agent("a\ufffd\0")
        agents.agent(long)
        agents.add_edge(broken, long, 0.9)
        fail(agents.agent(broken))
        assert agents.agent(long).decide().kind == "warn"
        assert agents.agent(long).pressure == 0.71 * 0.9
        agents.remove_agent(broken)
        assert agents.trust.edges() == () and len(agents.status()) == 1


@pytest.mark.parametrize(("count", "names"), [(16, 16), (17, 17), (18, 17), (60, 17)])
def test_pressures_a_long_path_is_told_by_both_of_its_ends(count: int, names: int) -> None:
    chained = [f"agent {number}" for number in range(count)]
    with fleet(*chained) as agents:
        for source, target in itertools.pairwise(chained):
            agents.add_edge(source, target)
        fail(agents.agent("agent 0"))
        found = received(agents.agent(chained[-1]).decide())
        assert found is not None and found.score == 0.71
        assert found.why.startswith("agent 0 is in trouble") and f"> {chained[-1]})" in found.why
        assert found.why.count(" > ") == names - 1
        assert (f"… {count - 16} more …" in found.why) == (count > 17)
        assert len(agents.pressures()[chained[-1]].path) == count


def weight(agents: Fleet, source: str = "sub", target: str = "planner") -> float:
    return agents.trust.edge(source, target).weight


def test_a_failure_under_pressure_raises_trust_and_a_success_lowers_it() -> None:
    with fleet("sub", "calm", "far", "planner") as agents:
        for source, target in (("sub", "planner"), ("calm", "planner"), ("far", "sub"), ("planner", "far")):
            agents.add_edge(source, target, 0.4)
        sub, planner = agents.agent("sub"), agents.agent("planner")
        planner.outcome(success=False)
        assert weight(agents) == 0.4  # nobody struggled
        fail(sub)  # not folded when the outcome comes: it counts all the same
        planner.outcome(success=False)
        raised = 0.4 + 0.1 * 0.71 * (0.95 - 0.4)
        assert weight(agents) == pytest.approx(raised)
        planner.outcome(success=True)
        assert weight(agents) == pytest.approx(raised + 0.1 * 0.71 * (0.05 - raised))
        learned = weight(agents)
        planner.outcome(text="neither the one nor the other")
        assert weight(agents) == learned
        planner.outcome(score=0.4)  # below 0.5: a failure
        assert weight(agents) == pytest.approx(learned + 0.1 * 0.71 * (0.95 - learned))
        assert weight(agents, "calm") == weight(agents, "far", "sub") == weight(agents, "planner", "far") == 0.4


@pytest.mark.slow
def test_set_trust_a_session_that_was_decided_by_others_replays_bit_for_bit(tmp_path: Path) -> None:
    with fleet(*NAMES, store=tmp_path / "s.db", budget={"calls": 1_000}) as agents:
        sub, planner, orchestrator = chain(agents)
        for turn in range(12):
            (fail if turn % 4 < 2 else recover)(sub)
            planner.message("assistant", f"step {turn}")
            planner.check("Bash", {"command": "rm -rf build"})
            kinds = {planner.decide().kind, orchestrator.decide().kind}
            assert kinds == ({"guide"} if turn % 4 < 2 else {"continue"})
            agents.set_trust("claude_sub", "planner", 0.4)
            planner.outcome(success=False)
    with Store(tmp_path / "s.db") as store:
        rows = store.sessions()
        assert sorted(row.agent for row in rows) == sorted(NAMES)
        for row in rows:
            report = Replay(store, row).report()
            assert (report.differences, report.kept) == ([], 0)
            assert report.ticks == report.equal >= 12


def test_a_fleet_that_is_switched_off_feels_and_learns_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    with Store(tmp_path / "s.db") as store, fleet("sub", "planner", store=store) as agents:
        agents.add_edge("sub", "planner", 0.9)
        fail(agents.agent("sub"))
        agents.agent("planner").outcome(success=False)
        assert agents.agent("planner").decide().kind == "continue"
        assert [status.pressure for status in agents.status()] == [0.0, 0.0]
        agents.flush()
        assert store.trust() is None and weight(agents) == 0.9
