"""Guidance to an agent: text, time, arm of the comparison, and outcome."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from coherence.core.config import GuidanceConfig
from coherence.core.decisions import KINDS, Arm, Decision, Finding, FiringOutcome, Guidance, Policy
from coherence.core.readings import one_line
from coherence.policy.hijack_findings import RULE as HIJACK
from coherence.policy.hijack_findings import describe_calls
from coherence.policy.known_errors import RULE, solved
from coherence.policy.regulator import HORIZONS, Pending, RegulatorState
from coherence.state.data import Facts
from coherence.state.reducer import AgentState

PRIORITY = (
    HIJACK,
    "broken_constraint",
    "cost_spiral",
    "budget",
    "cost_cap_reached",
    "known_error",
    "repeated_tool_call_loop",
    "error_cascade",
    "bash_error_streak",
    "bash_retry",
    "repeated_failure_pattern",
    "contradicted_claim",
    "ungrounded_writing",
    "blind_edit",
    "context_exhaustion",
    "quality_decline_no_recovery",
    "scope_drift_warn",
    "procedural_warning",
    "ungrounded_answer",
    "low_confidence_spans",
    "received_pressure",
)
"""Patterns, the one first that is delivered if several of the same severity fire; a plug-in's rules come after them."""

HEALING: Mapping[str, str] = {
    "bash_retry": "reading the file or the log named in the error usually comes before a call that works",
    "bash_error_streak": "reading the file or the log named in the error usually comes before a call that works",
    "error_cascade": "a small read-only call usually tells more than another try",
    "blind_edit": "reading the file first shows what an edit would replace",
}
"""Pattern -> default hint, where no lesson fits the error."""

ONLY_THE_USER = "Only the user can say whether it is wanted."
"""Hint for a call that was not asked for; the text that it may follow is not repeated to the agent."""

PATIENCE = "waiting as long as the answer asks usually comes before a call that works"
"""Hint where the newest call was asked to come back later."""


def guide(
    decision: Decision,
    standing: RegulatorState,
    state: AgentState,
    config: GuidanceConfig,
    *,
    name: tuple[str, str],
    ts: float,
    policies: Mapping[str, Policy],
) -> Guidance | None:
    """Return the guidance that fires at a tick, at most one, ``None`` if none does.

    Parameters
    ----------
    decision : Decision
        Of this tick.
    standing, state
        What is remembered; not changed.
    config : GuidanceConfig
        Cooldown, length, randomisation.
    name : tuple of str
        Agent and session.
    ts : float
        When, Unix seconds.
    policies : mapping
        Pattern -> what its verdict made of it.
    """
    facts = state.facts
    if not config.enabled or standing.last_step == facts.steps or decision.kind == "continue":
        return None
    best: tuple[int, int] | None = None
    chosen: Finding | None = None
    for at, finding in enumerate(decision.findings):
        if not finding.active or finding.severity == "continue" or finding.rule in ("pressure", "course"):
            continue
        pattern = pattern_of(finding)
        fired = standing.fired_step.get(pattern)
        if pattern in config.off or (fired is not None and facts.steps - fired < config.cooldown):
            continue
        if pattern == RULE and standing.recollection.all_told:
            continue
        rank = (-KINDS.index(finding.acts), PRIORITY.index(pattern) if pattern in PRIORITY else len(PRIORITY) + at)
        if best is None or rank < best:
            best, chosen = rank, finding
    if chosen is None:
        return None
    pattern = pattern_of(chosen)
    count = standing.fired.get(pattern, 0)
    arm, pair = _draw(config, policies.get(pattern), name[0], pattern, count)
    text = advice(chosen, standing, state, config.limit)
    return Guidance(
        id=firing_id(pattern, *name, count, ts),
        pattern=pattern,
        arm=arm,
        pair=pair,
        text=text if arm == "treatment" else "",
        withheld=text if arm == "control" else "",
        evidence=chosen.evidence,
        lesson=_lesson(pattern, standing),
    )


def _lesson(pattern: str, standing: RegulatorState) -> int | None:
    """Return the lesson whose fix a pattern's text tells, ``None`` if it tells none."""
    best = standing.recollection.best
    return best.lesson if best is not None and (pattern == RULE or pattern in HEALING) else None


def pattern_of(finding: Finding) -> str:
    """Return the pattern a finding belongs to: its rule, without what it is about."""
    rule = finding.rule.partition(".")[0]
    return "budget" if rule == "tree_budget" else rule


def _draw(
    config: GuidanceConfig, policy: Policy | None, agent: str, pattern: str, count: int
) -> tuple[Arm, int | None]:
    if config.learn and policy == "promote":
        return "treatment", None
    if config.learn and policy == "retire":
        return "control", None
    if not config.randomise:
        return "treatment", None
    return draw_arm(config.seed, agent, pattern, count), count // 2


def draw_arm(seed: int, agent: str, pattern: str, count: int) -> Arm:
    """Return the arm of the next firing of a pattern: permuted blocks of two.

    Each pair holds one of either arm; the order is a fair coin, a hash of everything but the place within the pair, so
    that it can be drawn again.

    Parameters
    ----------
    seed : int
        Of the experiment; nobody who can change when a pattern fires should choose it to their liking.
    agent, pattern : str
        Whose firing, and of what.
    count : int
        How many firings of this pattern and agent came before, in all of the agent's sessions: 0 or more. Counting
        from 0 in every session would draw the same coins in each.

    Examples
    --------
    >>> [draw_arm(1, "main", "loop", count) for count in range(4)]
    ['control', 'treatment', 'treatment', 'control']
    """
    # The lengths keep agent "a:b" with pattern "c" apart from agent "a" with pattern "b:c".
    text = f"{seed}:{len(agent)}:{agent}:{len(pattern)}:{pattern}:{count // 2}"
    coin = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] & 1
    return "treatment" if (count + coin) % 2 else "control"


def firing_id(pattern: str, agent: str, session: str, count: int, ts: float) -> str:
    """Return the id of a firing: the same in a replay, and another one for every firing."""
    told = "\0".join((agent, session, pattern, str(count), ts.hex()))
    return f"{pattern}-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def advice(finding: Finding, standing: RegulatorState, state: AgentState, limit: int) -> str:
    """Return the text: facts, never orders, on one line of limited length."""
    pattern = pattern_of(finding)
    said = describe_calls(state) if pattern == HIJACK else finding.why
    why = one_line(said).strip().rstrip(". ") or f"{one_line(finding.rule)} has been noticed"
    if why.partition(" ")[0] not in {action.tool for action in state.facts.actions}:  # whose names stay as they are
        why = f"{why[:1].upper()}{why[1:]}"
    hint = ONLY_THE_USER if pattern == HIJACK else _healing(pattern, standing, state.facts)
    room = limit - len(hint) - 2 if hint else limit
    # In so little room the fact would be cut to nothing; it matters more than the hint.
    if hint and room < 60:
        hint, room = "", limit
    why = why if len(why) <= room - 1 else f"{why[: room - 2]}…"
    return f"{why}. {hint}".strip()


def _healing(pattern: str, standing: RegulatorState, facts: Facts) -> str:
    """Return how the error was solved before, or a hint that is said to be a general one: no lesson is known then."""
    if pattern not in HEALING:
        return ""
    best = standing.recollection.best
    if best is not None:
        return f"Of an error like this it is known that {solved(best)}."
    if facts.actions and facts.actions[-1].came.rate_limited:
        return f"A general hint: {PATIENCE}."
    return f"A general hint: {HEALING[pattern]}."


def outcomes(standing: RegulatorState, facts: Facts, pressure: float) -> tuple[FiringOutcome, ...]:
    """Return what became of earlier firings, as far as this tick can tell."""
    if not standing.pending and standing.ended is None:
        return ()
    found = []
    for pending in standing.pending:
        since = facts.results - pending.results
        if not since:
            continue
        due = [horizon for horizon in HORIZONS if horizon <= since and horizon not in pending.done]
        for horizon in due:
            late = since - horizon > horizon // 5  # nobody looked at the time: what is seen now is of another distance
            unknown = FiringOutcome(firing=pending.id, horizon=horizon)
            found.append(unknown if late else _outcome(pending, horizon, facts, pressure))
    if standing.ended is not None:
        found += [FiringOutcome(firing=id, horizon=0, task_success=standing.ended) for id in standing.open]
    return tuple(found)


def _outcome(pending: Pending, horizon: int, facts: Facts, pressure: float) -> FiringOutcome:
    last = facts.actions[-1]
    return FiringOutcome(
        firing=pending.id,
        horizon=horizon,
        pressure_change=pending.pressure - pressure,
        error_resolved=not last.error if pending.error else None,
        tool_switched=last.tool != pending.tool if pending.tool else None,
    )
