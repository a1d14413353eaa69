"""Limits of single tools: guide near them, refuse the next call at them, block past them, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coherence import Budget, Fleet, Monitor, Store
from coherence.monitor.replay import Replay
from coherence.monitor.snapshots import from_text, merge, to_text
from coherence.state.reducer import MAX_TOOLS

LIMIT = {"tool_calls": {"search_web": 5}}


def monitor(path: Path | None = None, **options: Any) -> Monitor:
    return Monitor(**{"store": path, "embedder": False, "budget": LIMIT, "resume": True, **options})


def use(m: Monitor, tool: str = "search_web") -> str:
    """Call a tool, which succeeds, and return the decision."""
    number = m.spent.calls
    m.tool_call(tool, {"query": f"topic {number}"})
    m.tool_result(f"page {number * 7} about {'abcdefg'[number % 7] * 5}")
    return m.decide().kind


def test_tool_calls_at_the_soft_share_it_guides_and_at_the_limit_that_tool_is_refused() -> None:
    m = monitor()
    kinds = []
    for _ in range(5):
        assert m.check("search_web", {"query": "x"}).kind != "block"  # asking counts nothing
        kinds.append(use(m))
    assert kinds == ["continue"] * 3 + ["guide"] * 2  # 4 of 5 is the soft share
    guidance = m.decide().guidance
    assert guidance is None or "of 5 calls of search_web" in guidance.text
    refused = m.check("search_web", {"query": "x"})
    assert refused.kind == "block" and refused.message.startswith("5 of 5 calls of search_web are used (100%).")
    assert m.check("Read", {"path": "a"}).kind == "continue"
    assert m.decide().kind == "guide"  # a refused question colours nothing
    assert m.spent.tool_calls == {"search_web": 5} and m.spent.calls == 5


def test_tool_calls_an_agent_that_goes_on_without_the_tool_is_green_again() -> None:
    m = monitor()
    for _ in range(5):
        use(m)
    assert m.decide().kind == "guide"
    assert [use(m, "Read") for _ in range(3)] == ["continue"] * 3
    assert m.latest is not None and m.latest.band == "green"
    assert m.check("search_web").kind == "block"


def test_tool_calls_past_the_limit_is_red_by_policy_and_refuses_what_destroys() -> None:
    m = monitor()
    for _ in range(6):
        kind = use(m)
    assert (kind, m.latest.band, m.latest.cause) == ("block", "red", "policy")  # type: ignore[union-attr]  # it measured
    assert use(m, "Read") == "block"
    assert m.check("Read", {"path": "a"}).kind == "warn"  # other tools are refused what a block refuses, not more
    assert m.check("Bash", {"command": "rm -rf /srv"}).kind == "block"
    assert [m.check("search_web").kind for _ in range(12)] == ["block"] * 12  # no number of refusals wears it down


@pytest.mark.parametrize("calls", [5, 6])
def test_unblock_a_limit_is_lifted_for_as_long_as_it_would_refuse(tmp_path: Path, calls: int) -> None:
    with monitor(tmp_path / "s.db") as m:
        for _ in range(calls):
            use(m)
        assert m.check("search_web").kind == "block"
        m.unblock("go on")
        assert m.check("search_web").kind == "warn"
        use(m, "Read")
        assert m.check("search_web").kind == "warn"
        assert use(m) == "warn"
    with monitor(tmp_path / "s.db") as m:
        assert m.check("search_web").kind == "warn"


def test_tool_calls_a_result_without_a_call_counts_too_and_names_are_exact() -> None:
    m = monitor()
    for _ in range(5):
        m.tool_result("ok", tool="search_web")
    for _ in range(5):
        m.tool_call("search_web_2")
    assert m.spent.tool_calls == {"search_web": 5}
    assert [bool(m.check(tool)) for tool in ("search_web", "Search_web", "search_web_2")] == [False, True, True]


def test_tool_calls_are_counted_however_many_other_tools_there_are() -> None:
    m = monitor(config={"tick": "manual"})
    use(m)
    for number in range(3 * MAX_TOOLS):
        m.tool_call(f"tool {number}")
    m.decide()
    assert m.spent.tool_calls == {"search_web": 1}
    assert len(m.state.facts.called) == MAX_TOOLS + 1


def test_tool_calls_a_limit_goes_on_after_a_restart_and_when_it_is_raised(tmp_path: Path) -> None:
    for used in range(1, 6):
        with monitor(tmp_path / "s.db") as m:
            use(m)
            assert m.spent.tool_calls == {"search_web": used}
    with monitor(tmp_path / "s.db") as m:
        assert not m.check("search_web")
    with monitor(tmp_path / "s.db", budget={"tool_calls": {"search_web": 7}}) as m:
        assert [bool(m.check("search_web")), use(m), use(m), bool(m.check("search_web"))] == [
            True,
            "guide",
            "guide",
            False,
        ]
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []
        for row in store.sessions():
            report = Replay(store, row).report()
            assert (report.equal, report.kept, report.differences) == (report.ticks, 0, [])


def test_tool_calls_without_a_limit_nothing_is_said_and_a_new_one_counts_what_was_called(tmp_path: Path) -> None:
    with monitor(tmp_path / "s.db", budget=None) as m:
        for _ in range(3):
            use(m)
        assert m.spent.tool_calls == {}
        assert not any("tool_calls" in found.rule for found in m.decide().findings)
    with monitor(tmp_path / "s.db", budget={"tool_calls": {"search_web": 3}}) as m:
        assert not m.check("search_web")


def test_tool_calls_a_fleets_limit_counts_the_calls_of_all(tmp_path: Path) -> None:
    with Fleet(budget={"tool_calls": {"deploy": 2}}, embedder=False, store=tmp_path / "s.db") as fleet:
        one, other = fleet.agent("one"), fleet.agent("other", budget={"tool_calls": {"deploy": 1}})
        assert use(one, "deploy") == "continue"
        assert other.check("deploy")
        assert use(other, "deploy") == "guide"
        refused = one.check("deploy")
        assert not refused and "2 of 2 calls of deploy" in refused.message
        assert one.check("Read")
        assert {found.rule for found in other.check("deploy").findings if found.acts == "block"} == {
            "budget.tool_calls.deploy",
            "tree_budget.tool_calls.deploy",
        }
    with Store(tmp_path / "s.db") as store:
        for row in store.sessions():
            report = Replay(store, row).report()
            assert report.equal == report.ticks > 0


def test_merge_adds_up_the_calls_of_each_tool_and_keeps_the_newest_last() -> None:
    snapshots = []
    for tools in (["a", "b"], ["b", "c", "a", "b"]):
        m = monitor(budget=None)
        for tool in tools:
            m.tool_call(tool)
        m.decide()
        with m._worker.settled() as pipeline:
            snapshots.append(from_text(to_text(pipeline.snapshot())))
    merged = merge(*snapshots).parts["facts"].called
    assert list(merged.items()) == [("c", 1), ("a", 2), ("b", 3)]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"search_web": 0}, r"tool_calls\['search_web'\] must be 1 or more, not 0"),
        ({"search_web": -3}, r"tool_calls\['search_web'\] must be 1 or more, not -3"),
        ({"search_web": True}, r"tool_calls\['search_web'\] must be an int, not True"),
        ({"search_web": 2.5}, r"tool_calls\['search_web'\] must be an int, not 2.5"),
        ({"search_web": "5"}, r"tool_calls\['search_web'\] must be an int, not '5'"),
        ({" ": 5}, "tool's name must not be empty"),
        (5, "tool_calls"),
        (["search_web"], "tool_calls"),
    ],
)
def test_a_budget_refuses_limits_that_are_none(limits: Any, reason: str) -> None:
    for make in (
        lambda: Budget(tool_calls=limits),
        lambda: Monitor(budget={"tool_calls": limits}),
        lambda: Monitor(config={"budget": {"tool_calls": limits}}),
        lambda: Fleet(budget={"tool_calls": limits}),
    ):
        with pytest.raises((TypeError, ValueError), match=reason):
            make()
