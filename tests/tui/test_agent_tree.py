from __future__ import annotations

from coherence.tui.agent_tree import MAX_DEPTH, tree_of
from coherence.views.shapes import SessionLine


def line(
    agent: str, parent: str | None = None, session: str = "1", band: str = "green", last: float = 0.0
) -> SessionLine:
    return SessionLine(
        agent=agent, session=session, parent=parent, source="api", started=0.0, last_ts=last, steps=1, events=1,
        band=band, worst=band, index=0.5, pressure=0.1, cause="", decision="continue", strip="g", spark=(0.5,),
        goal="", tokens=0, cost_usd=None, context=None, label=None, rules=(), refused=0, outcome="", live=False,
    )  # fmt: skip


def shown(*args: object, **options: object) -> list[tuple[str, str, int]]:
    return [(node.line.agent, node.line.session, node.depth) for node in tree_of(*args, **options)]  # type: ignore[arg-type]


def test_tree_of_a_tree_stands_where_its_worst_line_stood() -> None:
    lines = [line("b/x", "b", band="red"), line("a", band="orange"), line("b"), line("b/y", "b")]
    assert shown(lines) == [("b", "1", 0), ("b/x", "1", 1), ("b/y", "1", 1), ("a", "1", 0)]


def test_tree_of_a_line_stands_below_the_same_session_else_the_newest() -> None:
    lines = [
        line("a", session="1", last=5.0),
        line("a", session="2", last=9.0),
        line("c", "a", "1"),
        line("d", "a", "7"),
    ]
    assert shown(lines) == [("a", "1", 0), ("c", "1", 1), ("a", "2", 0), ("d", "7", 1)]


def test_tree_of_without_its_parent_a_line_is_a_top() -> None:
    assert shown([line("c", "filtered away")]) == [("c", "1", 0)]


def test_tree_of_circles_and_depths_end() -> None:
    circle = [line("a", "b"), line("b", "a"), line("s", "s")]
    assert sorted(agent for agent, _, _ in shown(circle)) == ["a", "b", "s"]
    chain = [line("0"), *(line(f"{at}", f"{at - 1}") for at in range(1, 40))]
    nodes = tree_of(chain)
    assert len(nodes) == 40 and max(node.depth for node in nodes) <= MAX_DEPTH


def test_tree_of_folded_lines_tell_how_many_and_the_worst() -> None:
    lines = [line("a"), line("b", "a", band="yellow"), line("c", "b", band="red"), line("d")]
    (top, other) = tree_of(lines, folded={("a", "1")})
    assert (top.line.agent, top.children, top.folded, top.worst) == ("a", 2, True, "red")
    assert other.line.agent == "d"


def test_tree_of_muted_ones_come_last() -> None:
    assert [agent for agent, _, _ in shown([line("a"), line("b")], muted={("a", "1")})] == ["b", "a"]
