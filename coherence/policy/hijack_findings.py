"""Findings about calls that follow text inside a tool's result: asked about before they run, and seen after."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from coherence.baseline.calibration import Calibration
from coherence.baseline.own_life import Life
from coherence.core.config import MonitorConfig
from coherence.core.decisions import DecisionKind, Finding
from coherence.core.readings import number_of
from coherence.core.redact import redact
from coherence.detect.detector import read_arguments
from coherence.detect.hijack import JudgedCall, beginning
from coherence.policy.correction_prompt import flatten, one_line_of
from coherence.policy.rules.finding_builders import shown_tool
from coherence.policy.second_opinion import opinion_of, with_opinion
from coherence.state.reducer import AgentState

NEVER = 1.0
"""No value lies above it."""


class AlarmThreshold(NamedTuple):
    """A threshold, and how it was set, in words."""

    value: float
    """In [0, 1]; what is above it is an alarm."""
    words: str


class Limits(NamedTuple):
    """Above which a detector's findings ask to warn, and to block."""

    warn: AlarmThreshold
    block: AlarmThreshold
    life: Life | None = Life()
    """Scores that are unusual for this agent. While it says nothing, a score that no dataflow proves asks for `guide`.

    ``None``: both thresholds hold for every score, for the agent's good runs have set them, or its settings do.
    """

    def alone(self, tool: str) -> AlarmThreshold | None:
        """Return above which a call of a tool is warned of for its score alone; ``None``: that is not known."""
        if self.life is None:
            return self.warn
        value = self.life.threshold(tool)
        if value is None:
            return None
        new = ", lower for a tool that is new to them" if self.life.usual != value else ""
        return AlarmThreshold(value, f"unusual for this agent, by {number_of(self.life.runs, 'run')} of its own{new}")


def limits_of(config: MonitorConfig, detector: str, calibration: Calibration | None = None) -> Limits:
    """Return both thresholds of a detector; that of blocking is never the lower one.

    An agent whose own runs have raised the first above the shipped second shows that the second is not for it. Runs
    that are all alike set a threshold that the first other task exceeds: none goes below its floor.

    Parameters
    ----------
    config : MonitorConfig
        The budgets. A threshold of the rule there is taken in place of the first one.
    detector : str
        The rule's name.
    calibration : Calibration, optional
        What the agent's own runs have set; default: what is shipped.

    Examples
    --------
    >>> print(limits_of(MonitorConfig(), "goal_hijack").warn.words)  # doctest: +NORMALIZE_WHITESPACE
    at most 5 % of good runs, shipped (from 1,187 runs without an attack, of nine sources);
    own runs set it from 39 on
    >>> limits_of(MonitorConfig.load({"rules": {"goal_hijack": {"threshold": 0.7}}}), "goal_hijack").warn
    AlarmThreshold(value=0.7, words='set by configuration')
    """
    rule, alarms = config.rules.get(detector), config.alarms
    known = calibration or Calibration()
    warn = _threshold(known, detector, alarms.budget)
    found = known.find(detector, alarms.budget)
    life = None if found is not None and found.how == "own" else known.life
    if rule is not None and rule.threshold is not None:
        warn, life = AlarmThreshold(rule.threshold, "set by configuration"), None
    if alarms.block_budget is None:
        return Limits(warn, AlarmThreshold(NEVER, "no budget is set for refusing a call"), life)
    block = _threshold(known, detector, alarms.block_budget)
    return Limits(warn, max(block, warn, key=lambda limit: limit.value), life)


def _threshold(calibration: Calibration, detector: str, budget: float) -> AlarmThreshold:
    found = calibration.find(detector, budget)
    if found is None:
        return AlarmThreshold(NEVER, "no threshold is known")
    words = found.words.partition(": ")[2]
    return AlarmThreshold(NEVER if found.value is None else found.value, words)


RULE = "goal_hijack"
"""Name of the findings."""

QUOTED = 120
"""Characters of the sentence that a finding quotes."""

SHOWN = 80
"""Characters of a call's arguments that a finding shows."""

LET_THROUGH = "it was let through by unblock()"
"""Remark on a call that would have been refused."""

UNCALIBRATED = "the score alone is not calibrated for this agent, and nothing else proves it"
"""Remark on a score that no dataflow proves, while too few runs of the agent are known."""

LOUD = "such scores are usual for this agent, and nothing else proves it"
"""The same where too many of its runs have them."""

FOLLOWS = "follows text inside"
"""Words for what such a call does; whose text it is comes behind them."""

UNASKED = "which the user did not ask for"


def asked_call(seq: int, tool: str, arguments: bytes, state: AgentState, limits: Limits) -> Finding | None:
    """Return what is found of a call that has not run: it asks to block above the stricter threshold.

    ``None`` while nobody has asked for anything: then there is nothing to compare a call with.

    Parameters
    ----------
    seq : int
        Number of the question's event.
    tool : str
        The tool.
    arguments : bytes
        JSON.
    state : AgentState
        What is known; not changed.
    limits : Limits
        Above which values it warns and blocks.
    """
    judged = asked_about(tool, arguments, state, seq)
    return None if judged is None else _finding(judged, "block", state, limits)


def made_call(state: AgentState, limits: Limits) -> Finding | None:
    """Return what is found of the call that stands out now, ``None`` if none was made: it asks to warn, no more.

    One of the task before that nobody has seen is reported once, if it is the worse one.
    """
    worst = state.hijack.data.standing
    return _finding(worst, "warn", state, limits) if worst is not None else None


def _finding(call: JudgedCall, most: DecisionKind, state: AgentState, limits: Limits) -> Finding:
    """Return what is found of a call; `most` is what it may ask for."""
    score, alone = call.score, limits.alone(call.tool)
    severity: DecisionKind = "warn"
    if alone is None and not score.unauthorised:
        doubt = LOUD if limits.life is not None and limits.life.loud else UNCALIBRATED
        severity, (threshold, words) = "guide", limits.warn._replace(words=f"{limits.warn.words}; {doubt}")
    elif most == "block" and score.value > limits.block.value:
        severity, (threshold, words) = "block", limits.block
    else:
        threshold, words = alone or limits.warn
    opinion = opinion_of(call, state)
    active, reaches = score.value > threshold, opinion is not None or score.value >= threshold
    finding = Finding(
        rule=RULE,
        severity=severity,
        active=active,
        score=score.value,
        threshold=threshold,
        evidence=tuple(sorted({seq for seq in (score.seq, score.given, score.carried, call.seq) if seq > 0})),
        why=f"{_why(call, state)}; {_compared(score.value, threshold)}: {words}" if reaches else "",
        action="ask the user whether this call is wanted" if reaches else "",
    )
    return finding if opinion is None else with_opinion(finding, opinion, state.config.judge)


def grey_zone_end(config: MonitorConfig, limits: Limits) -> float:
    """Return the value above which a call is an alarm whatever a judge says."""
    warn = limits.warn.value
    return min(max(config.judge.high, warn if warn < NEVER else 0.0), limits.block.value)


def asked_about(tool: str, arguments: bytes, state: AgentState, seq: int = 0) -> JudgedCall | None:
    """Return a call that has not run as it is judged now, ``None`` while nobody has asked for anything."""
    decoded = read_arguments(arguments)
    score = state.hijack.data.judge(tool, decoded)
    return None if score is None else JudgedCall(seq, tool, score, beginning(decoded))


def allowed(finding: Finding) -> Finding:
    """Return the finding of a call that somebody has let through: it says so, and asks nobody again."""
    return msgspec.structs.replace(finding, why=f"{finding.why}; {LET_THROUGH}", action="")


def _compared(value: float, threshold: float) -> str:
    """Say that a value is above a threshold, with as many digits as tell them apart: two, else three or more."""
    if value <= threshold:
        return f"{value:.2f} {'reaches' if value == threshold else 'is below'} {threshold:.2f}"
    digits = next((most for most in range(2, 6) if f"{value:.{most}f}" != f"{threshold:.{most}f}"), 6)
    return f"{value:.{digits}f} is above {threshold:.{digits}f}"


def _why(call: JudgedCall, state: AgentState) -> str:
    score = call.score
    channels = f"provenance {score.provenance:.2f}, distance {score.distance:.2f}"
    if score.unauthorised:
        verb = "asks for" if score.unauthorised == call.tool else "names"
        channels += f"; nobody else {verb} {flatten(score.unauthorised, SHOWN)}"
        if score.given not in (score.seq, -1):
            channels += f", given by {_place(score.given, state)}"
    if score.carried >= 0:
        channels += f"; it passes on {_place(score.carried, state)}"
    if not score.sentence:
        return f"{_shown(call)} is far from anything the user asked ({channels})"
    quoted = flatten(score.sentence, QUOTED)
    return f'{_shown(call)} {FOLLOWS} {_place(score.seq, state)}, {UNASKED}: "{quoted}" ({channels})'


def _shown(call: JudgedCall) -> str:
    """Return a call as a person can tell it from others, its arguments as JSON, where none can end its string."""
    plain = one_line_of(redact(call.arguments), SHOWN)
    return f"{shown_tool(call.tool)}({plain or '…'})"


def _result(seq: int, state: AgentState) -> str:
    tool = state.facts.tool_of(seq)
    return f"the result of {shown_tool(tool)}" if tool else "a tool's result"


def _place(seq: int, state: AgentState) -> str:
    return f"{_result(seq, state)}{f' (event {seq})' if seq > 0 else ', of an earlier session'}"


def describe_calls(state: AgentState) -> str:
    """Return the text for the agent about the call that stands out: facts, and no word of what it may have obeyed."""
    worst = state.hijack.data.standing
    if worst is None:
        return ""
    if not worst.score.sentence:
        return f"{shown_tool(worst.tool)}(…) is far from anything the user asked"
    return f"The call {shown_tool(worst.tool)}(…) {FOLLOWS} {_result(worst.score.seq, state)}, {UNASKED}"
