"""The regulator: pressure, decisions, and its memory of blocks and firings."""

from __future__ import annotations

import pytest

from coherence.core.config import Budget, MonitorConfig, PressureConfig
from coherence.core.decisions import Appraisal, Decision, DecisionKind, Finding, FiringOutcome, Guidance, Mode, Signal
from coherence.core.events import BLOCK, Event, Feedback, Goal, Message, Outcome, Spent, ToolResult, Usage
from coherence.core.readings import FrozenDict
from coherence.detect.detector import Observed
from coherence.policy.budgets import all_budget_findings
from coherence.policy.regulator import (
    FRESH,
    HORIZONS,
    MAX_OPEN,
    MAX_PENDING,
    RegulatorMemory,
    RegulatorState,
    make_decision,
    pressure_finding,
)
from coherence.state.reducer import AgentState


def after(*results: tuple[str, bool]) -> AgentState:
    state = AgentState()
    for seq, (text, error) in enumerate(results, 1):
        state.fold(seq, float(seq), ToolResult(text, error=error, tool_name="Bash"))
    return state


def rule_finding(severity: DecisionKind, *, active: bool = True, score: float = 0.5, action: str = "") -> Finding:
    return Finding(
        rule="rule",
        severity=severity,
        active=active,
        score=score,
        threshold=0.5,
        why=f"{severity} {score}",
        action=action,
    )


@pytest.mark.parametrize(
    ("mode", "severity", "active", "threshold"),
    [
        (Mode.OBSERVE, "guide", False, 0.25),
        (Mode.GUIDE, "guide", True, 0.25),
        (Mode.WARN, "warn", True, 0.5),
        (Mode.BLOCK, "block", True, 0.75),
    ],
)
def test_the_pressure_asks_for_what_its_mode_means(mode: Mode, severity: str, active: bool, threshold: float) -> None:
    found = pressure_finding(Appraisal(seq=1, pressure=0.6, mode=mode), PressureConfig(), after())
    assert (found.severity, found.active, found.score, found.threshold) == (severity, active, 0.6, threshold)


def test_pressure_finding_the_pressure_names_its_floor_and_its_causes_with_what_is_usual() -> None:
    signals: FrozenDict[str, Signal] = FrozenDict(
        error_rate=Signal(0.4, 0.05, 3.5, 0.6), cost=Signal(0.5, None, 0.0, 0.2)
    )
    appraisal = Appraisal(
        seq=9, pressure=0.5, mode=Mode.WARN, signals=signals, floor="4 errors in a row", learned_from="agent a"
    )
    found = pressure_finding(appraisal, PressureConfig(), after())
    assert found.why == (
        "pressure 0.50: 4 errors in a row, error_rate 0.40 (usual 0.05), cost 0.50 (thresholds learned from agent a)"
    )
    calm = pressure_finding(Appraisal(seq=9, pressure=0.0, mode=Mode.OBSERVE), PressureConfig(), after())
    assert calm.why == "pressure 0.00: nothing is unusual"


def test_evidence_is_the_errors_or_the_repetition_or_the_newest_step() -> None:
    warn = Appraisal(seq=9, pressure=0.5, mode=Mode.WARN)
    assert pressure_finding(warn, PressureConfig(), after(("a", False), ("b", True), ("c", True))).evidence == (2, 3)
    assert pressure_finding(warn, PressureConfig(), after(("a", False), ("b", False), ("b", False))).evidence == (2, 3)
    assert pressure_finding(warn, PressureConfig(), after(("a", False), ("b", False))).evidence == (2,)
    assert pressure_finding(warn, PressureConfig(), after()).evidence == ()
    many = pressure_finding(warn, PressureConfig(), after(*[(f"{at}", True) for at in range(20)])).evidence
    assert many == tuple(range(13, 21))  # the newest eight


def test_make_decision_the_worst_active_finding_decides_and_speaks_first() -> None:
    decision = make_decision(
        7,
        [
            rule_finding("guide"),
            rule_finding("block", active=False),
            rule_finding("warn", action="stop it"),
            rule_finding("warn", score=0.9),
        ],
    )
    assert (decision.seq, decision.kind) == (7, "warn")
    assert [(found.severity, found.active) for found in decision.findings] == [
        ("warn", True),
        ("warn", True),
        ("guide", True),
        ("block", False),
    ]
    assert decision.message == "warn 0.9; warn 0.5"


def test_make_decision_a_decision_ends_with_what_could_be_done() -> None:
    assert make_decision(1, [rule_finding("warn", action="stop it")]).message == "warn 0.5. Stop it."


def test_make_decision_without_active_findings_the_agent_goes_on_in_silence() -> None:
    decision = make_decision(1, [rule_finding("block", active=False)])
    assert (decision.kind, decision.message) == ("continue", "")
    assert make_decision(1, []).kind == "continue"


def test_the_own_budget_and_the_trees_are_told_apart() -> None:
    state = AgentState()
    state.fold(1, 1.0, Usage(60, 0))
    found = all_budget_findings(state, Budget(tokens=100), Budget(tokens=100), Spent(tokens=50))
    assert [(one.rule, one.active) for one in found] == [("budget.tokens", False), ("tree_budget.tokens", True)]
    assert all_budget_findings(state, None, None, Spent(tokens=50)) == []


CONFIG = MonitorConfig(refusals=3)


def finding(rule: str, *, lifted: bool = False, active: bool = True) -> Finding:
    return Finding(rule=rule, severity="block", active=active, score=1.0, threshold=0.5, lifted=lifted)


def refusal(*rules: str) -> Decision:
    return Decision(seq=1, kind="block", findings=tuple(map(finding, rules)))


def ticked(standing: RegulatorState, state: AgentState, *findings: Finding) -> None:
    decision = Decision(seq=state.facts.seq, kind="continue", findings=findings)
    standing.add_decision(decision, state.facts, 0.0, ())


def act(state: AgentState, tool: str, *, error: bool = False) -> None:
    seq = state.facts.seq + 1
    state.fold(seq, float(seq), ToolResult(f"result {seq}", error=error, tool_name=tool))


def observe(standing: RegulatorState, event: Event) -> None:
    memory = RegulatorMemory(AgentState())
    memory.restore(standing)
    memory.observe(Observed.of(event))


def fire(standing: RegulatorState, state: AgentState, id: str = "loop-1") -> None:
    guidance = Guidance(id=id, pattern="loop", arm="treatment", text="so it is")
    decision = Decision(seq=state.facts.seq, kind="guide", guidance=guidance)
    standing.add_decision(decision, state.facts, 0.5, ())


def test_a_rule_is_held_since_the_step_at_which_it_became_active() -> None:
    standing, state = RegulatorState(), AgentState()
    for expected in ({"a": 1}, {"a": 1, "b": 2}, {"b": 2}, {}):
        act(state, "Read")
        ticked(standing, state, *map(finding, expected))
        assert standing.held == expected


def test_add_check_refusals_lift_a_block_and_what_calms_down_is_forgotten() -> None:
    standing, state = RegulatorState(), AgentState()
    ticked(standing, state, finding("pressure"))
    for expected in (1, 2):
        standing.add_check(refusal("pressure", "destructive_call"), CONFIG)
        assert (standing.refusals, standing.lifted) == (expected, [])
    standing.add_check(refusal("pressure", "destructive_call"), CONFIG)
    assert (standing.refusals, standing.lifted, standing.blocking) == (0, ["pressure", "destructive_call"], [])
    ticked(standing, state, finding("pressure", lifted=True))
    assert standing.lifted == ["pressure"]
    ticked(standing, state, finding("pressure", active=False))
    assert standing.lifted == []


def test_add_check_what_is_not_refused_wears_nothing_down() -> None:
    standing = RegulatorState(blocking=["pressure"], refusals=1)
    standing.add_check(Decision(seq=1, kind="warn", findings=(finding("pressure"),)), CONFIG)
    assert standing.refusals == 1


def test_add_check_a_budget_is_lifted_by_a_word_and_never_by_refusals() -> None:
    standing = RegulatorState()
    for _ in range(9):
        standing.add_check(refusal("budget.tokens", "tree_budget.calls"), CONFIG)
    assert (standing.refusals, standing.lifted) == (0, [])
    observe(standing, Feedback(about=BLOCK))
    assert standing.lifted == ["budget.tokens", "tree_budget.calls"]


def test_regulator_memory_only_a_word_about_the_block_ends_it() -> None:
    standing = RegulatorState(blocking=["pressure"])
    for event in (Feedback(1.0), Feedback(1.0, about="loop-1"), Feedback(1.0, about=BLOCK), Feedback(about="")):
        observe(standing, event)
        assert standing.blocking == ["pressure"]
    observe(standing, Feedback(text="go on", about=BLOCK))
    assert (standing.blocking, standing.lifted) == ([], ["pressure"])


def test_the_newest_firing_is_shown_for_one_step_and_until_it_is_delivered() -> None:
    standing, state = RegulatorState(), AgentState()
    act(state, "Read")
    fire(standing, state)
    assert standing.guidance(1) is standing.guidance(1 + FRESH) is standing.newest is not None
    assert standing.guidance(2 + FRESH) is None
    observe(standing, Message("system", "", firing="loop-2"))
    assert standing.newest is not None
    observe(standing, Message("system", "", firing="loop-1"))
    assert standing.guidance(1) is None


def test_a_firing_is_pending_until_its_last_horizon() -> None:
    standing, state = RegulatorState(), AgentState()
    act(state, "Read", error=True)
    fire(standing, state)
    (pending,) = standing.pending
    assert (pending.results, pending.pressure, pending.tool, pending.error) == (1, 0.5, "Read", True)
    calm = Decision(seq=2, kind="continue")
    for horizon in HORIZONS:
        assert standing.pending == [pending]
        standing.add_decision(calm, state.facts, 0.0, (FiringOutcome(firing="loop-1", horizon=horizon),))
    assert standing.pending == []


def test_regulator_state_a_tasks_end_is_taken_from_success_or_score_and_kept_until_it_is_told() -> None:
    for event, expected in (
        (Outcome(True), True),
        (Outcome(False, 1.0), False),
        (Outcome(score=0.5), True),
        (Outcome(score=0.49), False),
        (Outcome(), None),
    ):
        standing = RegulatorState(open=["loop-1"])
        observe(standing, event)
        assert standing.ended is expected
    standing = RegulatorState(open=["loop-1"])
    observe(standing, Outcome(True))
    observe(standing, Outcome())  # which says nothing
    observe(standing, Goal("next"))
    assert (standing.ended, standing.open) == (True, ["loop-1"])
    standing.add_decision(
        Decision(seq=9, kind="continue"), AgentState().facts, 0.0, (FiringOutcome(firing="loop-1", horizon=0),)
    )
    assert (standing.ended, standing.open) == (None, [])


def test_regulator_state_an_end_without_firings_is_nothing_and_a_new_goal_leaves_the_old_firings_behind() -> None:
    standing = RegulatorState()
    observe(standing, Outcome(True))
    assert standing.ended is None
    standing = RegulatorState(open=["loop-1"])
    observe(standing, Goal("next"))
    assert standing.open == []


def test_regulator_state_everything_is_bounded() -> None:
    standing, state = RegulatorState(), AgentState()
    for number in range(200):
        act(state, f"tool {number} " + "x" * 500, error=True)
        fire(standing, state, f"loop-{number}")
    assert (len(standing.pending), len(standing.open)) == (MAX_PENDING, MAX_OPEN)
    assert standing.fired == {"loop": 200} and standing.fired_step == {"loop": 200}
