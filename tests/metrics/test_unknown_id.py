"""Calls that refer to something by an id that nothing has given."""

from __future__ import annotations

from msgspec import Raw

from coherence import Monitor
from coherence.core.events import Goal, ToolCall, ToolResult
from coherence.metrics import UnknownId
from coherence.state.reducer import AgentState


def test_unknown_id_is_unknown_before_the_first_result_and_names_the_id_after() -> None:
    state = AgentState()
    state.fold(1, 0.0, Goal("Cancel order K7-1207."))
    metric = UnknownId(state)
    state.fold(2, 1.0, ToolCall("get_order", Raw(b'{"order_id": "K7-1207"}'), "a"))
    assert metric.compute() is None
    state.fold(3, 2.0, ToolResult("K7-1207: shipped", tool_name="get_order"))
    assert metric.compute() == 0.0
    assert metric.explain() is None
    state.fold(4, 3.0, ToolCall("get_order", Raw(b'{"order_id": "B4-5511"}'), "b"))
    assert metric.compute() == 1.0
    assert str(metric.explain()) == "a call refers to “B4-5511”, which nothing has given"


def test_unknown_id_warns_of_work_on_somebody_elses_order() -> None:
    m = Monitor(goal="Cancel order K7-1207.", embedder=None)
    m.tool_call("get_order", {"order_id": "K7-1207"})
    m.tool_result('{"order": "K7-1207", "status": "open"}')
    assert m.decide() == "continue"
    m.tool_call("get_order", {"order_id": "B4-5511"})
    assert m.decide() == "warn"
    assert m.latest is not None
    assert m.latest.cause == "unknown_id"
