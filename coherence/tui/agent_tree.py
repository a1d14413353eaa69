"""Order of agents as a tree: subagents below the agent that started them, the worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from coherence.views.shapes import SessionLine


Key: TypeAlias = tuple[str, str]
"""Agent and session."""


class Node(NamedTuple):
    """One session and its place in the tree."""

    line: SessionLine
    depth: int
    children: int
    """Those below it, at any depth."""
    folded: bool
    """``True`` if those below it are not shown."""
    worst: str
    """Worst light of those that are folded away; empty if none are."""


RANKS = {"red": 0, "orange": 1, "yellow": 2, "unknown": 4, "green": 3}
"""Lights from the worst to the best; what was not measured comes last."""


def key_of(line: SessionLine) -> Key:
    """Return agent and session."""
    return line.agent, line.session


def tree_of(lines: Sequence[SessionLine], folded: Collection[Key] = (), muted: Collection[Key] = ()) -> list[Node]:
    """Return the lines as a tree, from top to bottom.

    A line stands below one of its parent's: that of the same session, else the one that was used last. A tree stands
    where the first of its lines stood; trees whose top is muted come last.

    Parameters
    ----------
    lines : sequence of SessionLine
        In the order that was asked for.
    folded, muted : collection of Key
        Agents without those below them, and agents that nobody wants to hear of.
    """
    by_key = {key_of(line): line for line in lines}
    newest: dict[str, Key] = {}
    for key, line in by_key.items():
        known = newest.get(line.agent)
        if known is None or by_key[known].last_ts < line.last_ts:
            newest[line.agent] = key
    parents = {key: _parent(line, by_key, newest) for key, line in by_key.items()}
    below: defaultdict[Key | None, list[Key]] = defaultdict(list)
    for key in by_key:
        below[None if _in_circle(key, parents) else parents[key]].append(key)
    found: list[Node] = []
    place = {key: at for at, key in enumerate(by_key)}
    first = {key: _first(key, below, place) for key in by_key}

    def add(key: Key, depth: int) -> None:
        inner = _inner(key, below)
        hidden = key in folded and bool(inner)
        worst = min((by_key[each].band for each in inner), key=RANKS.__getitem__) if hidden else ""
        found.append(Node(by_key[key], depth, len(inner), hidden, worst))
        for child in [] if hidden else sorted(below[key], key=first.__getitem__):
            add(child, depth + 1)

    for key in sorted(below[None], key=lambda each: (each in muted, first[each])):
        add(key, 0)
    return found


def _parent(line: SessionLine, by_key: dict[Key, SessionLine], newest: dict[str, Key]) -> Key | None:
    if line.parent is None or line.parent == line.agent:
        return None
    beside = (line.parent, line.session)
    return beside if beside in by_key else newest.get(line.parent)


def _in_circle(key: Key, parents: dict[Key, Key | None]) -> bool:
    """Tell whether one is above itself, as a store that was put together may have it, or too deep to be drawn."""
    at, depth = parents[key], 0
    while at is not None and at != key and depth < MAX_DEPTH:
        at, depth = parents[at], depth + 1
    return at is not None


MAX_DEPTH = 12
"""Agents above one another at most; one that is deeper begins a tree."""


def _inner(key: Key, below: dict[Key | None, list[Key]]) -> list[Key]:
    found = list(below.get(key, ()))
    for each in found:
        found += below.get(each, ())
    return found


def _first(key: Key, below: dict[Key | None, list[Key]], place: dict[Key, int]) -> int:
    return min([place[key], *(place[each] for each in _inner(key, below))])
