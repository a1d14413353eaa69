"""The trust graph: what leaks, by which path, what outcomes teach, and what is refused."""

from __future__ import annotations

import itertools
import math
import random
import threading
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coherence.fleet.trust import DAMPING, Edge, Effective, TrustGraph, TrustState

Weighted = dict[tuple[str, str], float]


def graph(*edges: tuple[str, str, float], agents: Iterable[str] = ()) -> TrustGraph:
    made = TrustGraph()
    for name in [*agents, *(name for source, target, _ in edges for name in (source, target))]:
        made.add_agent(name)
    for source, target, weight in edges:
        made.add_edge(source, target, weight)
    return made


def values(made: TrustGraph, own: dict[str, float]) -> dict[str, float]:
    return {name: effective.value for name, effective in made.propagate(own).items()}


def counted(edges: Weighted) -> Weighted:
    """Return the weights that count, with cycles of full trust found by walking each edge's way back."""

    def reaches(start: str, end: str) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            node = waiting.pop()
            following = {target for (source, target), weight in edges.items() if source == node and weight == 1.0}
            waiting += following - seen
            seen |= following
        return end in seen

    return {
        (source, target): DAMPING if weight == 1.0 and reaches(target, source) else weight
        for (source, target), weight in edges.items()
    }


def slowly(names: list[str], edges: Weighted, own: dict[str, float]) -> dict[str, float]:
    """Relax every edge again and again, twice as often as there are agents."""
    found, weights = {name: own.get(name, 0.0) for name in names}, counted(edges)
    for (source, target), weight in [*weights.items()] * (2 * len(names)):
        found[target] = max(found[target], weight * found[source])
    return found


def product(path: tuple[str, ...], edges: Weighted, own: dict[str, float]) -> float:
    weights, strength = counted(edges), own.get(path[0], 0.0)
    for ends in itertools.pairwise(path):
        strength *= weights[ends]
    return strength


NAMES = [f"a{at}" for at in range(7)]
STRENGTHS = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0)  # many ties, and any number
ENDS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda ends: ends[0] != ends[1])
EDGES = st.dictionaries(ENDS, STRENGTHS, max_size=20)
OWN = st.dictionaries(st.sampled_from(NAMES), STRENGTHS)


def of(edges: Weighted) -> TrustGraph:
    return graph(*((source, target, weight) for (source, target), weight in edges.items()), agents=NAMES)


def test_trust_scales_what_leaks_to_the_planner_and_on_to_the_orchestrator() -> None:
    made = graph(("sub", "planner", 0.4), ("planner", "orchestrator", 0.9), ("scribe", "orchestrator", 1.0))
    found = made.propagate({"sub": 0.71, "scribe": 0.05})
    assert found["planner"] == Effective(0.0, 0.71 * 0.4, ("sub", "planner"))
    assert found["planner"].value == pytest.approx(0.284)
    assert found["orchestrator"].value == pytest.approx(0.2556)  # 0.284 x 0.9; the calm scribe does not thin it
    assert found["orchestrator"].path == ("sub", "planner", "orchestrator")
    assert found["sub"] == Effective(0.71, 0.71, ("sub",))
    assert found["scribe"] == Effective(0.05, 0.05, ("scribe",))
    assert list(found) == ["orchestrator", "planner", "scribe", "sub"]


def test_effective_nothing_leaks_against_an_edge_or_below_ones_own_pressure() -> None:
    made = graph(("a", "b", 0.5))
    assert values(made, {"b": 0.8}) == {"a": 0.0, "b": 0.8}
    assert made.propagate({"a": 0.8, "b": 0.4})["b"] == Effective(0.4, 0.4, ("b",))  # 0.8 x 0.5 is no more
    assert made.propagate({"a": 0.8, "b": 0.39})["b"] == Effective(0.39, 0.4, ("a", "b"))


@pytest.mark.parametrize("names", ["abcdef", "fedcba"])
def test_trust_graph_a_chain_of_six_decays_all_the_way_in_either_order(names: str) -> None:
    made = graph(*((one, other, 0.6) for one, other in itertools.pairwise("abcdef")), agents=names)
    found = values(made, {"a": 1.0})
    assert list(found.values()) == pytest.approx([1.0, 0.6, 0.36, 0.216, 0.1296, 0.07776])  # 0.6 ** k


def test_effective_a_chain_longer_than_the_hops_followed_at_once_is_followed_to_its_end() -> None:
    names = tuple(f"a{at:04}" for at in range(3_000))
    last = graph(*((one, other, 0.999) for one, other in itertools.pairwise(names))).propagate({names[0]: 1.0})["a2999"]
    assert last == Effective(0.0, pytest.approx(0.999**2_999), names)  # type: ignore[arg-type]  # nearly


def test_propagate_cycles_of_full_trust_are_damped_each_alone_and_edges_out_of_them_are_not() -> None:
    made = graph(*((one, other, 1.0) for one, other in ("ia", "ab", "bc", "ca", "cd", "de", "ed")))
    found = values(made, {"i": 1.0})  # a -> b -> c -> a is one ring, d <-> e another
    assert found == pytest.approx({"i": 1.0, "a": 1.0, "b": 0.9, "c": 0.81, "d": 0.81, "e": 0.729})
    made.set_trust("c", "a", 0.99)  # no cycle of full trust any more
    assert values(made, {"i": 1.0}) == {"i": 1.0, "a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 0.9}


def test_propagate_of_equally_strong_paths_the_shortest_counts_then_the_first_by_name() -> None:
    rhombus = [("s", "x", 0.5), ("s", "b", 0.5), ("x", "t", 0.5), ("b", "t", 0.5)]
    assert graph(*rhombus).propagate({"s": 1.0})["t"].path == ("s", "b", "t")
    assert graph(*rhombus, ("s", "t", 0.25)).propagate({"s": 1.0})["t"].path == ("s", "t")
    assert graph(*rhombus, ("s", "t", 0.125)).propagate({"s": 1.0})["t"].path == ("s", "b", "t")
    # the whole path is compared, not its last step: a, z, t comes before b, c, t
    joined = graph(("a", "z", 0.5), ("z", "t", 0.5), ("b", "c", 0.5), ("c", "t", 0.5))
    assert joined.propagate({"a": 1.0, "b": 1.0})["t"].path == ("a", "z", "t")


@pytest.mark.parametrize("few", [0, 100])  # all hops at once; one agent after the other
@given(EDGES, OWN)
def test_propagate_it_equals_relaxing_every_edge_and_the_path_accounts_for_it(
    few: int, edges: Weighted, own: dict[str, float]
) -> None:
    slow = slowly(NAMES, edges, own)
    with patch("coherence.fleet.trust.FEW", few):
        found = of(edges).propagate(own)
    for name, effective in found.items():
        assert effective.value == slow[name]
        assert effective.path[-1] == name
        assert len(set(effective.path)) == len(effective.path)
        assert product(effective.path, edges, own) == effective.value
        assert effective.own == own.get(name, 0.0) <= effective.value <= max(own.values(), default=0.0)
        assert (effective.value == effective.own) == (effective.path == (name,))


@given(
    st.dictionaries(ENDS, st.sampled_from([0.0, 0.25, 0.5]), max_size=10),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 0.5, 1.0])),
)
def test_propagate_the_path_is_the_first_of_all_paths_that_are_as_strong(
    edges: Weighted, own: dict[str, float]
) -> None:
    best: dict[str, tuple[float, int, tuple[str, ...]]] = {}  # powers of two: every product is exact
    waiting: list[tuple[str, ...]] = [(name,) for name in NAMES]
    while waiting:
        path = waiting.pop()
        rank = (-product(path, edges, own), len(path), path)
        best[path[-1]] = min(best.get(path[-1], rank), rank)
        waiting += [(*path, target) for source, target in edges if source == path[-1] and target not in path]
    found = of(edges).propagate(own)
    assert {name: effective.path for name, effective in found.items()} == {name: best[name][2] for name in NAMES}


@given(EDGES, st.lists(st.tuples(ENDS, STRENGTHS | st.none()), max_size=12), OWN)
def test_propagate_after_each_change_it_equals_a_graph_that_was_made_so(
    edges: Weighted, changes: list[tuple[tuple[str, str], float | None]], own: dict[str, float]
) -> None:
    changed = of(edges)
    for (source, target), weight in changes:
        if weight is not None:
            changed.add_edge(source, target, weight)
        elif (source, target) in edges:
            changed.remove_edge(source, target)
        else:
            changed.learn(target, success=False, pressures=own)
        edges = {(edge.source, edge.target): edge.weight for edge in changed.edges()}
        made = of(edges)
        assert changed.propagate(own) == made.propagate(own)
        assert [changed.upstream(name) for name in NAMES] == [made.upstream(name) for name in NAMES]


@pytest.mark.parametrize("agents", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_propagate_thousands_of_agents_each_way_alike(agents: int) -> None:
    rng = random.Random(3)
    names = tuple(f"a{at:05}" for at in range(agents))
    ends = {(rng.choice(names), rng.choice(names)) for _ in range(3 * agents)}
    edges = tuple(Edge(*pair, rng.choice((0.5, 0.9, 1.0))) for pair in sorted(ends) if pair[0] != pair[1])
    made, own = TrustGraph(TrustState(names, edges)), {name: rng.choice((0.0, 0.25, rng.random())) for name in names}
    with patch("coherence.fleet.trust.FEW", 0), patch("coherence.fleet.trust.HOPS", 10_000):
        at_once = made.propagate(own)
    with patch("coherence.fleet.trust.HOPS", 0):
        assert made.propagate(own) == at_once
    assert made.propagate(own) == at_once


@given(EDGES, OWN, st.randoms())
def test_to_json_the_order_of_registration_changes_nothing(edges: Weighted, own: dict[str, float], rng: Any) -> None:
    shuffled, names, pressures = list(edges.items()), list(NAMES), list(own.items())
    for order in (shuffled, names, pressures):
        rng.shuffle(order)
    other = graph(*((source, target, weight) for (source, target), weight in shuffled), agents=names)
    assert other.propagate(dict(pressures)) == of(edges).propagate(own)
    assert other.state().to_json() == of(edges).state().to_json()


def weight_of(made: TrustGraph) -> float:
    return made.edges()[0].weight


def test_a_weight_tends_to_the_share_of_failures_within_its_bounds() -> None:
    for outcomes, end in (((False,), 0.95), ((True,), 0.05), ((False, True), 0.5)):
        made = graph(("sub", "planner", 0.4))
        for success in outcomes * 500:
            made.learn("planner", success=success, pressures={"sub": 1.0})
        assert weight_of(made) == pytest.approx(end, abs=0.05)


@example(0.0, [(True, 1.0)])
@example(1.0, [(False, 1.0)])
@given(st.floats(0.0, 1.0), st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0)), max_size=30))
def test_learn_learning_stays_in_bounds_and_never_goes_the_wrong_way(
    start: float, outcomes: list[tuple[bool, float]]
) -> None:
    made = graph(("sub", "planner", start))
    for success, pressure in outcomes:
        before, changed = weight_of(made), made.learn("planner", success=success, pressures={"sub": pressure})
        after = weight_of(made)
        assert after <= before if success else after >= before
        assert bool(changed) == (after != before)
        assert min(start, 0.05) <= after <= max(start, 0.95)


@given(EDGES, st.sets(ENDS), st.sets(st.text(min_size=1)))
def test_trust_state_a_graph_comes_back_from_its_json_bit_for_bit(
    edges: Weighted, fixed: set[tuple[str, str]], more: Any
) -> None:
    made = of(edges)
    for source, target in fixed & set(edges):
        made.set_trust(source, target, edges[source, target])
    for name in filter(str.strip, more):
        made.add_agent(name)
    state = made.state()
    assert TrustState.from_json(state.to_json()) == state
    assert TrustGraph(TrustState.from_json(state.to_json().encode())).state() == state


def test_trust_state_a_foreign_state_is_refused() -> None:
    for data in ("", "[]", b"\xff", '{"edges": [{"source": "a", "target": "b", "weight": "x"}]}'):
        with pytest.raises(ValueError, match="not a trust state"):
            TrustState.from_json(data)
    with pytest.raises(ValueError, match="version 2"):
        TrustState.from_json('{"version": 2}')


def test_edge_a_state_that_breaks_the_rules_is_refused() -> None:
    for edge in (Edge("a", "b", 0.5), Edge("a", "c", 1.5), Edge("a", "a", 1)):
        with pytest.raises(ValueError, match=r"'b' is not an agent|in \[0, 1\]|two agents"):
            TrustGraph(TrustState(("a", "c"), (edge,)))


@pytest.mark.parametrize("weight", [-0.01, 1.01, math.nan, math.inf, -math.inf, 10**400])
def test_edge_weights_and_pressures_outside_0_and_1_are_refused(weight: float) -> None:
    made = graph(("a", "b", 0.5))
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: made.add_edge("a", "b", weight), "trust_weight"),
        (lambda: made.set_trust("a", "b", weight), "trust_weight"),
        (lambda: made.propagate({"a": weight}), "pressure of 'a'"),
        (lambda: made.learn("b", success=True, pressures={"a": weight}), "pressure of 'a'"),
    ]
    for call, field in calls:
        with pytest.raises(ValueError, match=rf"{field} must be in \[0, 1\]"):
            call()
    assert made.edges() == (Edge("a", "b", 0.5),)


def test_propagate_what_is_no_number_no_name_and_no_flag_is_refused() -> None:
    made: Any = graph(("a", "b", 0.5))
    for wrong in (True, "0.5", None):
        with pytest.raises(TypeError, match="trust_weight must be a number"):
            made.add_edge("a", "b", wrong)
        with pytest.raises(TypeError, match="pressure of 'a' must be a number"):
            made.propagate({"a": wrong})
    calls: list[Callable[[], Any]] = [
        lambda: made.add_agent(3),
        lambda: made.add_edge("a", None),
        lambda: made.propagate({3: 0.5}),
        lambda: made.propagate([0.5, 0.5]),
        lambda: made.add_edge("a", "b", 0.5, fixed=1),
        lambda: made.learn("b", success=None, pressures={}),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="must be"):
            call()
    with pytest.raises(ValueError, match="name must not be empty"):
        made.add_agent(" ")
    assert made.state() == graph(("a", "b", 0.5)).state()


def test_remove_edge_unknown_agents_unknown_edges_and_loops_are_refused_by_name() -> None:
    made = graph(("a", "b", 0.5))
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: made.add_edge("x", "b"), "source 'x' is not an agent of this fleet: make it"),
        (lambda: made.add_edge("a", "x"), "target 'x' is not"),
        (lambda: made.propagate({"x": 0.0}), "agent 'x' is not"),
        (lambda: made.learn("x", success=True, pressures={}), "target 'x' is not"),
        (lambda: made.remove_agent("x"), "name 'x' is not"),
        (lambda: made.add_edge("a", "a"), "'a' twice"),
        (lambda: made.set_trust("b", "a", 0.5), "no edge from 'b' to 'a'"),
        (lambda: made.remove_edge("b", "a"), "no edge from 'b' to 'a'"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_effective_removing_leaves_nothing_behind() -> None:
    made = graph(("a", "b", 0.5), ("b", "c", 0.5), ("c", "b", 0.5), ("a", "c", 0.1))
    before = made.propagate({"a": 1.0})
    made.remove_agent("b")
    assert made.state() == TrustState(("a", "c"), (Edge("a", "c", 0.1),))
    assert values(made, {"a": 1.0}) == {"a": 1.0, "c": 0.1}
    made.add_agent("b")
    assert values(made, {"a": 1.0})["b"] == 0.0  # of the same name, and without the old edges
    made.remove_edge("a", "c")
    assert values(made, {"a": 1.0})["c"] == 0.0
    assert before["c"] == Effective(0.0, 0.25, ("a", "b", "c"))  # what was found stays as it was


def test_agents_hostile_names_are_kept_as_they_can_be_written() -> None:
    hostile = ["a\ud800b", "nul\x00", "\u202ertl", "x" * 1_000_000]
    made = graph(*(("s", name, 0.5) for name in hostile), *((name, "end", 0.5) for name in hostile))
    assert TrustGraph(TrustState.from_json(made.state().to_json())).state() == made.state()
    assert max(map(len, made.agents)) <= 600  # 500 characters, and how many were left out
    for name in hostile:
        assert values(made, {name: 1.0})["end"] == made.propagate({"s": 1.0})[name].value == 0.5
        assert made.upstream(name) == ("s",)
        made.remove_agent(name)
    assert made.agents == ("end", "s")


def test_effective_agents_come_and_go_in_other_threads_while_pressure_propagates() -> None:
    made = graph(("sub", "planner", 0.4), ("planner", "top", 0.9))
    failures: list[BaseException] = []

    def change(name: str) -> None:
        try:
            for _ in range(150):
                made.add_agent(name)
                made.add_edge("sub", name, 0.5)
                made.add_edge(name, "top", 0.5)  # 0.71 x 0.5 x 0.5 is less than comes by the planner
                made.learn(name, success=False, pressures={"sub": 0.1})
                made.remove_agent(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=change, args=(f"t{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = made.propagate({"sub": 0.71})
        assert found["top"] == Effective(0.0, 0.71 * 0.4 * 0.9, ("sub", "planner", "top"))
    assert failures == [] and list(made.propagate({})) == ["planner", "sub", "top"]
    assert made.state() == graph(("sub", "planner", 0.4), ("planner", "top", 0.9)).state()


@given(EDGES, OWN)
def test_upstream_the_sources_alone_give_an_agent_what_the_whole_graph_gives(
    edges: Weighted, own: dict[str, float]
) -> None:
    made = of(edges)
    found = made.propagate(own)
    for name in NAMES:
        names = made.upstream(name)
        assert made.propagate({other: own[other] for other in (*names, name) if other in own})[name] == found[name]
        assert name not in names and list(names) == sorted(names)


def test_upstream_those_who_cannot_reach_an_agent_are_no_sources_of_it() -> None:
    made = graph(("c", "b", 0.5), ("b", "a", 0.5), ("a", "d", 1.0), ("e", "a", 0.0), ("f", "e", 1.0))
    assert [made.upstream(name) for name in "abcd"] == [("b", "c"), ("c",), (), ("a", "b", "c")]
    made.remove_edge("c", "b")
    assert made.upstream("a") == ("b",)


def state(*fixed: str, **weights: float) -> TrustState:
    """``ab=0.5``: an edge from a to b; ``"ab"`` before it: a fixed one."""
    edges = sorted(Edge(ends[0], ends[1], weight, ends in fixed) for ends, weight in weights.items())
    return TrustState(tuple("abc"), tuple(edges))


def test_merged_where_both_have_changed_an_edge_the_one_that_is_fixed_counts() -> None:
    before, fixed = state(ab=0.1), state("ab", ab=0.3)
    assert state(ab=0.2).merged(before, fixed).edges == state().merged(before, fixed).edges == fixed.edges
    assert state("ab", ab=0.2).merged(before, fixed).edges == state("ab", ab=0.2).edges
    assert state(ab=0.2).merged(fixed, fixed).edges == state(ab=0.2).edges  # who knows that it is fixed can loosen it


def test_merged_what_either_has_changed_is_kept_and_where_both_have_the_later_counts() -> None:
    before = state(ab=0.1, bc=0.2, ca=0.3, ba=0.4)
    ours = state(ab=0.15, bc=0.2, cb=0.6, ba=0.5)  # learned, added, removed c > a
    other = state(ab=0.1, bc=0.25, ca=0.3, ac=0.7, ba=0.45)
    assert ours.merged(before, other).edges == state(ab=0.15, bc=0.25, cb=0.6, ac=0.7, ba=0.5).edges
    assert state(ab=0.1).merged(state(), state()).agents == ("a", "b")
    assert state().merged(state(ab=0.1), state(ab=0.1)) == TrustState()
