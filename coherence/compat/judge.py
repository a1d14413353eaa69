"""From the findings of a pipeline to the classic contract's one decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import msgspec

from coherence.compat.decisions import BREAKERS, ORDER, CircuitBreakReason, CorrectionPattern, Decision, Kind
from coherence.compat.saved import Saved
from coherence.core.config import GuidanceConfig, MonitorConfig, RuleConfig
from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import FrozenDict, Reading
from coherence.core.validation import clean
from coherence.detect.ngrams import bag, unshared_words
from coherence.monitor.pipeline import AgentPipeline
from coherence.policy.corrections import CorrectionPattern as Learned
from coherence.policy.rules.failed_calls import SPACED
from coherence.policy.rules.loops import Loop, RepeatedToolCallLoop, find_loop, steps_of
from coherence.policy.rules.quality import FALL, FEW
from coherence.state.data import Facts
from coherence.state.reducer import AgentState

# No hysteresis: the contract's decisions follow each event at once. The agent gets no guidance.
_AT_ONCE = RuleConfig(release=0.0, dwell=0)
CONFIG = MonitorConfig(
    tick="manual",
    guidance=GuidanceConfig(enabled=False),
    rules=FrozenDict(dict.fromkeys(ORDER, _AT_ONCE)),
)

TASK_WORDS = 10
SHOWN = 200
"""Characters of an error in a reason."""


class TurnLoop(RepeatedToolCallLoop):
    """The loop rule, on the calls of this turn only.

    The contract tells no results, so that calls of different turns look more alike than they are.

    Parameters
    ----------
    since : callable
        Returns the number of the event that began the turn.
    """

    def __init__(self, since: Callable[[], int]) -> None:
        super().__init__()
        self._since = since

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Return the loop that the newest call is part of, ``None`` if there is none."""
        part = self._part(state.facts)
        # Too few for any loop: the state below is made at every decision otherwise.
        if len(part.actions) + len(part.open_calls) < self.guide:
            return None
        return super().__call__(AgentState(state.config, part), reading, appraisal)

    def loop(self, facts: Facts) -> Loop | None:
        """Return the loop itself."""
        return find_loop(steps_of(self._part(facts)))

    def _part(self, facts: Facts) -> Facts:
        since = self._since()
        actions = [action for action in facts.actions if action.seq > since]
        calls = [call for call in facts.open_calls if call.seq > since]
        return msgspec.structs.replace(facts, actions=actions, open_calls=calls)


def judge(findings: Sequence[Finding], pipeline: AgentPipeline, saved: Saved, loops: TurnLoop) -> Decision:
    """Return the decision for the newest findings.

    Parameters
    ----------
    findings : sequence of Finding
        Of the newest tick.
    pipeline : AgentPipeline
        As it stands.
    saved : Saved
        What the regulator knows beside it.
    loops : TurnLoop
        The loop rule.
    """
    facts = pipeline.state.facts
    shown = tuple(finding for finding in findings if not _is_of_before(finding, facts, saved.turn.seq))
    active = {finding.rule: finding for finding in shown if finding.active and not _is_patient(finding, facts, loops)}
    first = next((active[rule] for rule in ORDER if rule in active), None)
    scope = next((finding for finding in shown if finding.rule == "scope_drift_warn"), None)
    drift = pipeline.semantics.drift() if "scope_drift_warn" in active else None
    patterns = _patterns(pipeline, saved.user_id) if "procedural_warning" in active else None
    kind: Kind = "continue"
    if first is not None:
        kind = "circuit_break" if first.rule in BREAKERS else first.rule  # type: ignore[assignment]  # one of the kinds
    return Decision(
        kind=kind,
        drift_score=None if scope is None else scope.score,
        drift_tokens=None if drift is None else drift.violations or drift.additions or drift.words,
        task_tokens=None if drift is None else unshared_words(bag(facts.request), bag(""), TASK_WORDS),
        reason=_reason(first, facts, saved, loops) if first is not None and kind == "circuit_break" else None,
        suggestion=_suggestion(first) if first is not None else None,
        patterns=patterns,
        findings=shown,
    )


def _is_patient(finding: Finding, facts: Facts, loops: TurnLoop) -> bool:
    """Tell whether what comes back is a known way of working, or an outage: no reason to break."""
    if finding.rule == "repeated_tool_call_loop":
        loop = loops.loop(facts)
        return loop is not None and loop.shape not in (None, SPACED)  # a model's own time lies between most calls
    last = facts.actions[-1] if facts.actions else None
    return finding.rule == "repeated_failure_pattern" and last is not None and last.came.rate_limited


def _is_answered(facts: Facts, since: int) -> bool:
    return facts.answer is not None and facts.answer.seq > since


def _is_of_before(finding: Finding, facts: Facts, since: int) -> bool:
    """Tell whether a finding is about the turn before: about its answer, or about an action since which nothing ran."""
    if finding.rule == "scope_drift_warn":
        return not _is_answered(facts, since)
    if finding.rule == "low_confidence_spans":
        return facts.unsure_seq <= since
    if finding.rule == "repeated_failure_pattern":
        return facts.actions[-1].seq <= since
    return False


def _suggestion(finding: Finding) -> str:
    action = finding.action
    return f"{finding.why}. {action[:1].upper()}{action[1:]}." if action else f"{finding.why}."


def _reason(finding: Finding, facts: Facts, saved: Saved, loops: TurnLoop) -> CircuitBreakReason:
    rule = finding.rule
    qualities = [rated.quality for rated in facts.qualities]
    if rule == "cost_cap_reached":
        return CircuitBreakReason(
            kind=rule,
            tokens_spent=facts.tokens_out or 0,
            tokens_cap=saved.cost_cap,
            mean_quality_last_n=reduce(add, qualities[-FEW:]) / FEW,  # as the contract adds up
        )
    if rule == "quality_decline_no_recovery":
        turns = len(finding.evidence)
        delta = qualities[-turns] - qualities[-1]
        if turns == FEW:
            delta = max(delta, FALL)  # 0.35 - 0.2 is a fall of 0.15, though 0.14999999999999997 as floats go
        return CircuitBreakReason(kind=rule, turns=turns, mean_delta=delta)
    if rule == "repeated_failure_pattern":
        failure = next(reversed(facts.failures.values()))
        cluster = clean(f"{failure.tool}: {failure.first_line}" if failure.first_line else failure.tool, SHOWN)
        return CircuitBreakReason(kind=rule, cluster=cluster, failure_count=failure.count)
    loop = loops.loop(facts)
    if loop is None:
        return CircuitBreakReason(kind=rule)
    return CircuitBreakReason(kind=rule, tool_name=loop.steps[-1].tool, consecutive_count=len(loop.steps))


def _patterns(pipeline: AgentPipeline, user_id: str) -> tuple[CorrectionPattern, ...]:
    found = pattern_for(pipeline, pipeline.state.facts.request)
    if found is None:
        return ()
    cluster = "+".join(found.words)
    return (
        CorrectionPattern(
            user_id=user_id,
            topic_cluster=cluster,
            pattern_name=f"corrections_on_{cluster}",
            learned_from_turns=found.count,
            confidence=found.confidence,
            example_corrections=tuple(note.text for note in found.examples),
        ),
    )


def pattern_for(pipeline: AgentPipeline, request: str) -> Learned | None:
    """Return what users have corrected on requests like one, ``None`` if nothing."""
    kept = pipeline.corrections
    if not kept.notes or not request:
        return None
    return kept.relevant(request, pipeline.semantics.embed(request), pipeline.semantics.step)
