"""Gate that decides, before a call runs, if it may."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Decision, DecisionKind, Finding
from coherence.core.events import Ticked, ToolCall
from coherence.detect.detector import Observed
from coherence.detect.fingerprints import trace_call
from coherence.policy.budgets import is_budget, refuses_call
from coherence.policy.danger.classify import classify
from coherence.policy.danger.danger import Danger
from coherence.policy.danger.table import DEFAULT
from coherence.policy.danger.unasked import DangerDetector
from coherence.policy.hijack_findings import Limits, allowed, asked_call
from coherence.policy.one_call import OF_ONE_CALL
from coherence.policy.regulator import RegulatorState, make_decision, regulate
from coherence.policy.rules.claims import broken_constraint
from coherence.policy.rules.finding_builders import found
from coherence.state.reducer import AgentState


def answer(
    seq: int,
    event: Ticked,
    findings: Sequence[Finding],
    standing: RegulatorState,
    steps: int,
    config: MonitorConfig,
    table: Sequence[Danger] = DEFAULT,
    own: Sequence[Finding] = (),
) -> Decision:
    """Return whether a call may run.

    While something blocks, destructive calls are refused, with ``config.block = "all"`` every call; a budget that is
    used up refuses every call, a limit of one tool that tool's. What is not refused is warned of. What is found of the
    call itself refuses that call.

    Parameters
    ----------
    seq : int
        Number of the question's event.
    event : Ticked
        The question.
    findings : sequence of Finding
        What the rules say now, regulated.
    standing : RegulatorState
        What is remembered; not changed.
    steps : int
        The step now.
    config : MonitorConfig
        What blocks refuse.
    table : sequence of Danger
        What is destructive.
    own : sequence of Finding
        What is found of this call alone, regulated.
    """
    blocking = [finding for finding in findings if finding.acts == "block"]
    spent = any(refuses_call(finding.rule, event.tool_name or "") for finding in blocking)
    danger = classify(event.tool_name or "", bytes(event.arguments) if event.arguments else b"null", table)
    itself = {finding.rule for finding in own}
    asked = [finding for finding in findings if finding.rule not in itself]
    refused = spent or (config.block == "all" and bool(blocking))
    if danger is not None:
        raw = Finding(
            rule="destructive_call",
            severity="block",
            active=bool(blocking),
            score=1.0,
            threshold=1.0,
            why=danger.what,
            action="ask somebody first",
        )
        # With a state of its own, so that no refusal holds on to the next call.
        made = regulate([raw], RegulatorState(), steps, config.rules)
        refuses = bool(blocking) and any(finding.acts == "block" for finding in made)
        if not refuses:
            lifted = any(finding.lifted and finding.active for finding in findings)
            made = [_let_through(finding, lifted=lifted) for finding in made]
        asked += made
        refused = refused or refuses
    if not refused:
        asked = [_softened(finding) if finding.acts == "block" else finding for finding in asked]
    extra = _ends(blocking, standing, config) if refused else ""
    if not refused and any(finding.acts == "block" for finding in own):
        extra = " Only this call is refused; m.unblock() lets it through."
    return make_decision(seq, [*asked, *own], extra)


def of_itself(
    seq: int,
    event: Ticked,
    state: AgentState,
    standing: RegulatorState,
    config: MonitorConfig,
    limits: Limits,
    dangers: DangerDetector | None = None,
) -> list[Finding]:
    """Return what is found of a call itself, regulated; one that somebody has let through is warned of at most.

    That is: it follows foreign text, does what nobody wants unless asked for, is on the deny list, or breaks what
    somebody has forbidden in words. It refuses this call and no other: no finding of a call before it holds on, and
    this one will not.
    """
    tool, arguments = event.tool_name or "", bytes(event.arguments or b"null")
    hijacked = asked_call(seq, tool, arguments, state, limits)
    seen = [] if hijacked is None else [hijacked]
    if dangers is not None:
        seen += dangers.asked_call(seq, tool, arguments)
    if state.forbidden.data.standing:
        broken = state.forbidden.broken_by(Observed.of(ToolCall(tool, Raw(arguments), ""), seq))
        seen += [] if broken is None else [broken_constraint(broken, "block")]
    if not seen:
        return []
    lifted = list(OF_ONE_CALL) if standing.allowed and key_of(event) in standing.allowed else []
    made = regulate(seen, RegulatorState(lifted=lifted), state.facts.steps, config.rules)
    return [allowed(finding) if finding.lifted else finding for finding in made]


def key_of(event: Ticked) -> bytes:
    """Return what makes two questions ask about the same call: tool and arguments, whatever the order of keys."""
    return trace_call(event.tool_name or "", bytes(event.arguments or b"null")).exact


def unjudged(tool: str, arguments: bytes) -> Decision:
    """Return what to answer if, by a fault of this package, the question could not be judged: destructive = refused."""
    danger = classify(tool, arguments)
    kind: DecisionKind = "block" if danger is not None else "warn"
    why = "the question could not be judged; the log of `coherence` says why"
    if danger is not None:
        why = f"{danger.what}, and {why}"
    return make_decision(0, [found("check_failed", 1.0, kind, why, "", threshold=1.0)])


def _let_through(finding: Finding, *, lifted: bool) -> Finding:
    """Return what is said of a destructive call that is not refused: it is warned of where a block was ended before."""
    if not lifted:
        return msgspec.structs.replace(finding, active=False)
    why = f"{finding.why}; it is let through because the block was ended"
    return msgspec.structs.replace(finding, active=True, severity="warn", why=why)


def _softened(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, severity="warn")


def _ends(blocking: Sequence[Finding], standing: RegulatorState, config: MonitorConfig) -> str:
    if any(is_budget(finding.rule) for finding in blocking):
        return " It stays refused until the budget is raised or somebody unblocks the agent."
    left = config.refusals - standing.refusals - 1
    rules = ", ".join(sorted(finding.rule for finding in blocking))
    if left <= 0:
        return f" This was refusal {config.refusals}, the last: there are only warnings until {rules} calms down."
    return f" It stays refused until {rules} calms down, somebody unblocks the agent, or {left} more are refused."
