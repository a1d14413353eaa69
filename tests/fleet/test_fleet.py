"""Budgets of one agent and of many, and what a fleet shows."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pytest
from hostile import HANGS, RAISES, lying_number, lying_text, speaking, touchy

from coherence import Budget, Fleet, Monitor, Store
from coherence.core.decisions import Decision, Finding
from coherence.core.strangers import Asking, asking
from coherence.monitor import worker as engine_module
from coherence.providers import HashingEmbedder
from coherence.store.errors import StoreError


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"embedder": HashingEmbedder(32), "config": {"tick": "manual"}, **options})


def fleet(**options: Any) -> Fleet:
    return Fleet(**{"embedder": HashingEmbedder(32), "config": {"tick": "manual"}, **options})


def finding(decision: Decision, rule: str) -> Finding:
    (found,) = [finding for finding in decision.findings if finding.rule == rule]
    return found


def test_fleet_a_budget_of_tokens_warns_at_its_soft_limit_and_refuses_the_next_call_at_its_hard_one() -> None:
    m = monitor(budget={"tokens": 1_000})
    m.usage(tokens_in=500, tokens_out=299)
    assert m.decide().kind == "continue"  # 799 of 1,000; soft is 0.8
    assert m.check("Bash").kind == "continue"
    m.usage(tokens_out=1)
    decision = m.decide()
    assert decision.kind == "warn"
    assert "budget.tokens: 800 of 1,000 tokens are used (80%)" in map(str, decision.findings)
    assert m.check("Bash").kind == "warn"
    m.usage(tokens_in=200)  # the call that goes over is not refused, the next one is
    assert m.check("Bash").kind == "block"
    assert finding(m.check("Bash"), "budget.tokens").threshold == 1.0


def test_a_budget_of_time_counts_from_the_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]

    class Clock:
        @staticmethod
        def time() -> float:
            return now[0]

    monkeypatch.setattr(engine_module, "time", Clock)
    m = monitor(budget=Budget(wall_s=60.0, soft=0.5))
    m.message("user", "hello")
    for at, kind in ((1_029.9, "continue"), (1_030.0, "warn"), (1_059.0, "warn"), (1_060.0, "block")):
        now[0] = at
        assert m.check("Bash").kind == kind
    now[0] = 900.0  # a clock set back counts as standing still
    assert m.check("Bash").kind == "block"


def test_fleet_a_cost_is_as_told_or_by_price_and_else_unknown_and_said_so() -> None:
    m = monitor(budget={"cost_usd": 2.0}, config={"prices": {"m-1": {"input": 3.0, "output": 15.0}}})
    m.usage(tokens_in=100_000, tokens_out=20_000, model="m-1")
    assert m.counters.cost_usd == pytest.approx(0.6)  # 0.1 x 3 + 0.02 x 15
    m.usage(tokens_in=1_000_000, cost_usd=0.5, model="m-1")
    assert m.counters.cost_usd == pytest.approx(1.1)  # what was told wins over the price
    m.usage(tokens_in=50, model="m-2")
    assert m.counters.cost_usd == pytest.approx(1.1)
    assert m.spent.unpriced == 1
    why = finding(m.decide(), "budget.cost_usd").why
    assert why == "1.1 of 2 US dollars are used (55%), without 1 model call of unknown cost (m-2)"
    m.usage(tokens_in=50)
    assert "without 2 model calls of unknown cost (unknown)" in finding(m.decide(), "budget.cost_usd").why
    m.usage(cost_usd=0.9)
    assert m.check("Bash").kind == "block"


def test_fleet_a_budget_of_nothing_refuses_everything() -> None:
    for limit in ({"tokens": 0}, {"calls": 0}, {"cost_usd": 0.0}, {"wall_s": 0.0}):
        assert monitor(budget=limit).check("Bash").kind == "block"


def test_agents_of_a_fleet_share_its_budget_beside_their_own() -> None:
    with fleet(budget={"calls": 4, "tokens": 1_000}) as agents:
        planner = agents.agent("planner", budget={"calls": 2})
        coder = agents.agent("coder", parent="planner")
        assert agents.agent("coder") is coder
        planner.tool_call("Read")
        coder.tool_call("Bash")
        assert coder.check("Bash").kind == "continue"
        coder.usage(tokens_in=900)
        assert planner.check("Read").kind == "warn"  # the tree's tokens: 900 of 1,000
        assert finding(planner.check("Read"), "tree_budget.tokens").score == 0.9
        planner.tool_call("Read")
        assert planner.check("Read").kind == "block"  # its own: 2 of 2
        assert coder.check("Bash").kind == "warn"
        coder.tool_call("Bash")
        assert coder.check("Bash").kind == "block"  # the tree's: 4 of 4
        assert coder.decide().seq == coder.decide().seq


def test_fleet_a_decision_follows_what_the_others_spend() -> None:
    with fleet(budget={"calls": 10}) as agents:
        one, other = agents.agent("one"), agents.agent("other")
        one.message("assistant", "hello")
        before = one.decide()
        assert one.decide() is before
        for _ in range(9):
            other.tool_call("Bash")
        after = one.decide()
        assert (before.kind, after.kind) == ("continue", "warn")
        assert one.decide() is after


@pytest.mark.slow
def test_status_agents_on_different_threads_do_not_wait_for_each_other_for_ever(tmp_path: Path) -> None:
    count = 6
    with fleet(store=tmp_path / "s.db", budget={"calls": 10_000}, config={"tick": "step"}) as agents:
        together = threading.Barrier(count + 1)
        raised: list[BaseException] = []

        def act(name: str) -> None:
            try:
                together.wait()
                m = agents.agent(name)
                for number in range(30):
                    assert m.check("Bash").kind in ("continue", "guide", "warn")
                    call = m.tool_call("Bash", {"command": str(number)})
                    m.tool_result(f"line {number}", call=call)
                    m.decide()
                    agents.status()
            except BaseException as error:  # what a thread raises would be lost
                raised.append(error)

        threads = [threading.Thread(target=act, args=(f"agent {number}",), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        together.wait()
        for thread in threads:
            thread.join(120)
        assert not any(thread.is_alive() for thread in threads)
        assert raised == []
        assert sum(status.spent.calls for status in agents.status()) == count * 30
        last = agents.agent("agent 0").check("Bash")
        assert finding(last, "tree_budget.calls").score == count * 30 / 10_000
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []
        assert len(store.sessions()) == count


def test_status_tells_of_each_agent_in_the_order_they_were_made() -> None:
    with fleet(config={"tick": "step"}) as agents:
        planner = agents.agent("planner", goal="ship it")
        coder = agents.agent("coder", parent="planner")
        agents.agent("idle", parent="planner")
        planner.message("assistant", "ship it")
        for _ in range(6):
            coder.tool_call("Bash", {"command": "pytest"})
            coder.tool_result("ImportError", error=True)
        coder.usage(tokens_in=7, cost_usd=0.5)
        first, second, third = agents.status()
        assert agents.status(wait=False) == [first, second, third]  # all is processed
        assert [(s.agent, s.parent) for s in (first, second, third)] == [
            ("planner", None),
            ("coder", "planner"),
            ("idle", "planner"),
        ]
        assert (first.decision, second.decision, third.decision) == ("continue", "warn", "continue")
        assert (second.calls, second.errors, second.spent.tokens, second.spent.cost_usd) == (6, 6, 7, 0.5)
        assert "6 times" in second.cause and second.pressure == coder.pressure and second.mode == coder.mode
        assert (third.coherence_index, third.band, third.cause) == (None, None, "")
        assert [monitor.agent for monitor in agents] == ["planner", "coder", "idle"]


def test_fleet_a_bad_agent_leaves_nothing_behind() -> None:
    with fleet() as agents:
        with pytest.raises(ValueError, match="parent 'nobody' is not an agent of this fleet"):
            agents.agent("a", parent="nobody")
        with pytest.raises(ValueError, match="budget"):
            agents.agent("a", budget={"calls": -1})
        assert agents.status() == []
        agents.agent("a")
        with pytest.raises(ValueError, match="agent 'a' exists already: budget cannot be changed"):
            agents.agent("a", budget={"calls": 1})


def test_fleet_one_agent_that_cannot_be_written_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    agents = fleet(store=tmp_path / "s.db")
    bad, good = (agents.agent(name, strict=True) for name in ("bad", "good"))
    broken = Store(tmp_path / "other.db")
    broken.close()
    for m in (bad, good):
        m.message("assistant", "hello")
    assert bad._worker.recorder is not None
    bad._worker.recorder.store = broken
    with pytest.raises(StoreError):
        agents.flush()
    assert agents.store is not None
    assert agents.store.count_events() == 1
    good.message("assistant", "more")
    with pytest.raises(StoreError):
        agents.close()
    assert agents.store.closed
    with Store(tmp_path / "s.db") as store:
        assert store.count_events() == 2


def test_fleet_an_agent_goes_on_under_the_same_tree_budget_after_a_restart(tmp_path: Path) -> None:
    for turn in range(1, 3):
        with fleet(store=tmp_path / "s.db", budget={"calls": 3}, resume=True) as agents:
            one, other = agents.agent("one"), agents.agent("other")
            one.tool_call("Bash")
            other.message("assistant", "hello")
            assert one.session == other.session == "1"
            assert finding(other.decide(), "tree_budget.calls").score == turn / 3


def test_fleet_explain_says_for_each_agent_by_which_scale_its_index_was_made() -> None:
    with fleet() as f:
        tester, _ = f.agent("tester", goal="run the tests", embedder=False), f.agent("idle")
        classic = f.agent("classic", config={"tick": "manual", "weights": "classic"})
        assert f.status()[0].scale == ""
        for m in (tester, classic):
            m.tool_result("boom", error=True, tool="Bash")
            m.tool_result("bang", error=True, tool="Bash")
            m.decide()
        told = f.explain()
        assert [status.scale for status in f.status()] == ["events-5", "", ""]
    assert re.search(r"^tester: index 0\.\d\d \(\w+\), .*; scale events-5, which compares no meanings", told)
    assert "\nidle: no reading yet\nclassic: index " in told and "; classic index: a weighted mean" in told
    assert re.search(r"\n  the newest calls failed \(failure_streak 0.50\) takes 0\.\d\d: ", told)


@pytest.mark.parametrize("act", [*HANGS.values(), *RAISES.values()], ids=[*HANGS, *RAISES])
def test_fleet_of_strangers_names_is_refused_or_takes_them_for_the_texts_that_they_are(act: Callable[[], Any]) -> None:
    with fleet() as agents, asking(Asking(0.1)):
        for bad in (speaking(act), touchy(act)):
            given: Any = bad
            for call in (
                lambda given=given: agents.agent(given),
                lambda given=given: agents.agent("b", parent=given),
                lambda given=given: agents.add_edge(given, "a"),
                lambda given=given: agents.set_trust("a", given, 1.0),
                lambda given=given: agents.remove_agent(given),
            ):
                with pytest.raises((TypeError, ValueError)):
                    call()
        one = agents.agent(lying_text("a", act))
        two = agents.agent("b", parent=lying_text("a", act))
        agents.add_edge(lying_text("a", act), "b", lying_number(float, 0.5, act))
        one.message("user", "hi")
        assert [status.agent for status in agents.status()] == ["a", "b"] and two.decide().kind == "continue"
    hostile.let_go()


def test_decide_of_an_agent_does_not_wait_for_another_one_that_cannot_be_folded() -> None:
    with fleet(budget={"tokens": 1_000}, config={"tick": "manual", "timeout_s": 0.2}) as agents:
        stuck, free = agents.agent("stuck"), agents.agent("free")
        until, begun = threading.Event(), threading.Event()

        def hold() -> None:
            with stuck._worker._lock:
                begun.set()
                until.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(30)
        free.message("assistant", "hello")
        began = time.monotonic()
        free.decide()
        took = time.monotonic() - began
        until.set()
        thread.join()
        assert took < 5.0  # ten seconds, had it waited as who looks at an agent does
