"""Agents of a store, and who is affected by whom."""

from __future__ import annotations

from collections.abc import Mapping

from coherence.fleet.trust import TrustGraph, TrustState
from coherence.store.store import Store
from coherence.store.tally import BANDS, FROM_BEST
from coherence.views.shapes import FleetAgent, FleetView, SessionLine, TrustEdge

RANKS = {BANDS[letter]: rank for rank, letter in enumerate(FROM_BEST)}
"""Band -> its place from the best."""


def fleet_view(store: Store, newest: Mapping[str, SessionLine]) -> FleetView:
    """Return all agents with their newest sessions, the worst light first, and who is affected by whom."""
    kept = store.trust()
    graph = TrustGraph(None if kept is None else TrustState.from_json(kept))
    for agent in newest:
        graph.add_agent(agent)
    reached = graph.propagate({name: _own(newest.get(name)) for name in graph.agents})
    agents = []
    for name in graph.agents:
        line, effective = newest.get(name), reached[name]
        agents.append(
            FleetAgent(
                agent=name,
                parent=None if line is None else line.parent,
                session="" if line is None else line.session,
                band="unknown" if line is None else line.band,
                index=None if line is None else line.index,
                own=effective.own,
                pressure=effective.value,
                path=effective.path,
                live=line is not None and line.live,
            )
        )
    agents.sort(key=lambda each: (-RANKS[each.band], -each.pressure, each.agent))
    edges = tuple(
        TrustEdge(edge.source, edge.target, edge.weight, edge.weight * reached[edge.source].value, edge.fixed)
        for edge in graph.edges()
    )
    return FleetView(tuple(agents), edges)


def _own(line: SessionLine | None) -> float:
    return 0.0 if line is None or line.pressure is None else min(max(line.pressure, 0.0), 1.0)
