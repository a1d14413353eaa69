from __future__ import annotations

import msgspec
import pytest

import coherence.core.events as events
from coherence.core.decisions import Appraisal, Decision, Finding, Mode
from coherence.core.readings import Band, FrozenDict, Reading
from coherence.export.agent_totals import (
    MAX_LABEL,
    MAX_NAMES,
    MAX_SESSIONS,
    OTHER,
    AgentTotals,
    Histogram,
    Totals,
    label,
)
from coherence.monitor.sinks import AgentRecord
from coherence.monitor.tick_result import TickResult


def told(event: events.Event, agent: str = "a", session: str = "1", result: TickResult | None = None) -> AgentRecord:
    return AgentRecord(1, 5.0, event, result, agent=agent, session=session)


def tick(*active: str, session: str = "1", measured: bool = True, kind: str = "continue") -> AgentRecord:
    findings = tuple(Finding(rule=rule, severity="warn", active=True, score=1.0, threshold=0.5) for rule in active)
    reading = Reading(tick_seq=1, ts=5.0, metrics=FrozenDict(), coherence_index=0.9, band=Band.GREEN, coverage=1.0)
    decision = Decision(seq=1, kind=kind, findings=findings)  # type: ignore[arg-type]
    appraisal = Appraisal(seq=1, pressure=0.0, mode=Mode.OBSERVE)
    result = TickResult(appraisal, decision, reading if measured else None)
    return told(events.Ticked(tool_name=None if measured else "Bash"), session=session, result=result)


def of(*records: AgentRecord) -> AgentTotals:
    found = AgentTotals()
    for record in records:
        found.add(record)
    return found


def test_agent_totals_count_each_kind_of_event() -> None:
    call = events.ToolCall("Bash", msgspec.Raw(b"{}"), "c1")
    found = of(
        told(events.Goal("fix it")),
        told(events.Message("user", "please")),
        told(events.Message("assistant", "I run it")),
        told(call),
        told(events.ToolResult("no", error=True, call_id="c1", duration_s=0.2)),
        told(events.ToolResult("yes")),
        told(events.Usage(100, 20, 0.5, cached_tokens=40)),
        told(events.Usage(50, None)),
        told(events.Outcome(success=True)),
        told(events.Outcome(score=0.2)),
        told(events.Outcome()),
        told(events.Fault("store", "OSError", "full")),
    )
    assert (found.steps, found.calls, found.failures, found.faults) == (3, 2, 1, 1)
    # 100 + 50 read, 20 written; the second one has no price
    assert (found.tokens, found.cached, found.cost_usd, found.unpriced) == ({"input": 150, "output": 20}, 40, 0.5, 1)
    assert found.outcomes == {"success": 1, "failure": 1, "unknown": 1}
    assert found.durations.buckets()[2:4] == [("0.1", 0), ("0.5", 1)] and found.durations.sum == 0.2
    assert [count for _, count in found.call_tokens["input"].buckets()][:3] == [1, 2, 2]  # up to 64, 256, 1,024


def test_agent_totals_a_finding_counts_when_its_rule_becomes_active() -> None:
    found = of(tick("loop"), tick("loop"), tick(), tick("loop", "drift"))
    assert found.findings == {"loop": 2, "drift": 1} and found.decisions == {"continue": 4}


def test_agent_totals_sessions_do_not_end_the_findings_of_one_another() -> None:
    found = of(tick("loop"), tick(session="2"), tick("loop"), tick("loop", session="2"))
    assert found.findings == {"loop": 2}  # once in each session
    many = [tick("loop", session=str(at)) for at in range(MAX_SESSIONS + 1)]
    assert of(*many, many[0]).findings == {"loop": MAX_SESSIONS + 2}  # the first one was forgotten


def test_agent_totals_a_question_is_no_measurement() -> None:
    found = of(tick("loop"), tick("harmful", measured=False, kind="block"), tick("loop"))
    assert (found.refused, found.decisions) == (1, {"continue": 2, "block": 1})
    assert found.findings == {"loop": 1, "harmful": 1}
    assert found.result is not None and found.result.reading is not None


def test_agent_totals_names_beyond_the_bound_count_together() -> None:
    found = of(tick(*(f"rule{at:04}" for at in range(MAX_NAMES + 7))))
    assert len(found.findings) == MAX_NAMES + 1 and found.findings[OTHER] == 7


def test_totals_know_the_agents_heard_from_last() -> None:
    totals = Totals(2)
    for agent in ("a", "b", "a", "c"):
        totals.add(told(events.Goal("x"), agent))
    assert [name for name, _ in totals.agents()] == ["a", "c"] and totals.forgotten == 1
    with pytest.raises(ValueError, match="max_agents"):
        Totals(0)


def test_label_is_one_bounded_line_that_utf_8_can_hold() -> None:
    assert label("a\nb\ud800" + "x" * 500) == "a b " + "x" * (MAX_LABEL - 4)


def test_histogram_has_no_values_at_first() -> None:
    assert not Histogram((1.0,)) and Histogram((1.0,)).buckets() == [("1.0", 0), ("+Inf", 0)]
