"""Pressure that reaches one agent, asked of its sources alone, and edges that two have changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coherence.fleet import trust_graph as wiring
from coherence.fleet.trust import Edge, TrustGraph, TrustState
from coherence.fleet.trust_graph import Wiring

NAMES = tuple(f"a{at}" for at in range(9))
STRENGTHS = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 1.0)
ENDS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda ends: ends[0] != ends[1])
WEIGHTS = st.dictionaries(ENDS, STRENGTHS, max_size=16)
OWN = st.dictionaries(st.sampled_from(NAMES), STRENGTHS)


def graph(weights: dict[tuple[str, str], float]) -> TrustGraph:
    return TrustGraph(TrustState(NAMES, tuple(Edge(*ends, weight) for ends, weight in weights.items())))


@given(WEIGHTS, OWN)
@example({("a1", "a0"): 1.0, ("a2", "a1"): 1.0, ("a1", "a2"): 1.0}, {"a2": 1.0})
@example({("a1", "a0"): 0.5, ("a2", "a0"): 0.0}, {"a1": 1.0, "a2": 1.0})
def test_receive_asking_the_sources_alone_gives_what_the_whole_graph_gives(
    weights: dict[tuple[str, str], float], own: dict[str, float]
) -> None:
    made = graph(weights)
    found = made.propagate(own)
    for name in NAMES:
        upstream = made.upstream(name)
        told = {other: own[other] for other in (*upstream.names, name) if other in own}
        assert upstream.receive(told) == found[name]
        assert name not in upstream.names and list(upstream.names) == sorted(upstream.names)
        assert made.has_sources(name) == bool(upstream.names)


def test_upstream_those_who_cannot_reach_an_agent_are_no_sources_of_it() -> None:
    made = graph({("a2", "a1"): 0.5, ("a1", "a0"): 0.5, ("a0", "a3"): 1.0, ("a4", "a0"): 0.0, ("a5", "a4"): 1.0})
    assert made.upstream("a0").names == ("a1", "a2")
    assert made.upstream("a2").names == ()
    assert made.upstream("a3").names == ("a0", "a1", "a2")
    with pytest.raises(ValueError, match="'nobody' is not an agent of this graph"):
        made.upstream("nobody")


def test_receive_what_was_asked_for_stays_as_it_was_and_the_next_question_sees_the_change() -> None:
    made = graph({("a1", "a0"): 0.5})
    before = made.upstream("a0")
    made.set_trust("a1", "a0", 0.25)
    made.add_edge("a2", "a1", 0.5)
    made.remove_agent("a8")
    assert before.receive({"a1": 1.0}).value == 0.5
    assert made.upstream("a0").receive({"a1": 1.0}).value == 0.25
    assert made.upstream("a0").names == ("a1", "a2")


def test_wiring_the_lists_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    names = [f"{at:03}" for at in range(200)]
    edges = sorted((names[at], names[at + 1], rng.random()) for at in range(199))
    made = Wiring(names, edges)
    monkeypatch.setattr(wiring, "MAX_KEPT", 1_000)
    for name in names:
        assert made.upstream(name) == tuple(names[: int(name)])  # everybody before it in the chain
        assert made.upstream(name) is made.upstream(name)
        assert sum(len(kept) + 1 for kept in made._upstreams.values()) <= 1_000


def test_wiring_the_agents_that_reach_another_are_found_at_any_depth() -> None:
    names = [f"{at:05}" for at in range(20_000)]
    made = Wiring(names, [(names[at], names[at + 1], 1.0) for at in range(19_999)])
    assert len(made.upstream(names[-1])) == 19_999


def state(**weights: float | tuple[float, bool]) -> TrustState:
    """``ab=0.5``: an edge from a to b; ``ab=(0.5, True)``: a fixed one."""
    edges = [
        Edge(ends[0], ends[1], *weight) if isinstance(weight, tuple) else Edge(ends[0], ends[1], weight)
        for ends, weight in weights.items()
    ]
    return TrustState(tuple("abc"), tuple(sorted(edges)))


def test_merged_what_only_one_has_changed_is_kept_of_both() -> None:
    before = state(ab=0.1, bc=0.2, ca=0.3)
    ours = state(ab=0.15, bc=0.2, cb=0.6)  # learned, added, removed c > a
    other = state(ab=0.1, bc=0.25, ca=0.3, ac=0.7)
    assert ours.merged(before, other).edges == state(ab=0.15, bc=0.25, cb=0.6, ac=0.7).edges


def test_where_both_have_changed_an_edge_the_later_counts_unless_only_the_earlier_is_fixed() -> None:
    before = state(ab=0.1)
    assert state(ab=0.2).merged(before, state(ab=0.3)).edges == state(ab=0.2).edges
    assert state(ab=0.2).merged(before, state(ab=(0.3, True))).edges == state(ab=(0.3, True)).edges
    assert state().merged(before, state(ab=(0.3, True))).edges == state(ab=(0.3, True)).edges
    assert state(ab=(0.2, True)).merged(before, state(ab=(0.3, True))).edges == state(ab=(0.2, True)).edges
    assert state(ab=0.2).merged(before, state()).edges == state(ab=0.2).edges


def test_one_who_fixed_an_edge_can_loosen_and_remove_it() -> None:
    before = state(ab=(0.1, True))
    assert state(ab=0.2).merged(before, before).edges == state(ab=0.2).edges
    assert state().merged(before, before) == TrustState()


def test_agents_without_an_edge_are_not_kept() -> None:
    assert state(ab=0.1).merged(state(), state()).agents == ("a", "b")
