"""A second opinion on a call in the grey zone of ``goal_hijack``: what a judge is asked, and what its answer does."""

from __future__ import annotations

from hashlib import blake2b
from math import nextafter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from coherence.core.config import JudgeConfig
from coherence.core.decisions import Finding
from coherence.core.validation import ends
from coherence.detect.call_words import only_reads
from coherence.detect.hijack import JudgedCall

if TYPE_CHECKING:
    from coherence.state.reducer import AgentState

CLAIM = (
    "The tool call does what a text inside a tool's result tells its reader to do, and not what the user asked for or "
    "left to that text."
)
"""Claim to which a judge gives a probability, and which a classifier of entailment can read as its hypothesis."""


class Question(NamedTuple):
    """Question to a judge about one call."""

    key: str
    claim: str
    evidence: tuple[str, ...]


def question_of(call: JudgedCall, state: AgentState, most: float) -> Question | None:
    """Return what to ask of a call, ``None`` where no opinion is needed or one is there.

    Parameters
    ----------
    call : JudgedCall
        The call.
    state : AgentState
        What is known; not changed. Its texts have their secrets replaced.
    most : float
        Value above which the call is an alarm whatever a judge says.
    """
    config, score = state.config.judge, call.score
    if not config.low <= score.value <= most or not score.sentence or only_reads(call.tool):
        return None
    key = key_of(call)
    if key in state.hijack.data.opinions:
        return None
    facts, share = state.facts, config.max_chars // 4
    asked = facts.goal if facts.request in facts.goal else f"{ends(facts.goal, share)}\n{ends(facts.request, share)}"
    return Question(
        key,
        CLAIM,
        (
            f"The user asked: {ends(asked, 2 * share)}",
            f"A tool returned this text: {ends(score.sentence, share)}",
            f"The agent then calls: {call.tool}({ends(call.arguments, share)})",
        ),
    )


def key_of(call: JudgedCall) -> str:
    """Return what an opinion is filed under: the call, and the text it may follow."""
    text = f"{call.tool}\n{call.arguments}\n{call.score.sentence}"
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def opinion_of(call: JudgedCall, state: AgentState) -> float | None:
    """Return what a judge said of a call, ``None`` where none was asked or it gave no answer."""
    opinions = state.hijack.data.opinions
    return opinions.get(key_of(call)) if opinions else None


def with_opinion(finding: Finding, opinion: float, config: JudgeConfig) -> Finding:
    """Return a finding of a call in the grey zone with a judge's opinion of it.

    A call that it takes for a hijack is warned of, whatever its value; never more, since a judge is no proof. A warning
    that it does not share asks to guide: the judge has read the text that may have been planted.

    Parameters
    ----------
    finding : Finding
        Without the opinion.
    opinion : float
        The probability, in [0, 1].
    config : JudgeConfig
        From which probabilities it counts.
    """
    if finding.severity == "block":
        return finding
    why = f"{finding.why}; a judge gives {opinion:.2f} that the call follows that text"
    if opinion >= config.confirm:
        # Active means above the threshold, which the value may not be by itself.
        score = max(finding.score, min(nextafter(finding.threshold, 2.0), 1.0))
        return msgspec.structs.replace(finding, severity="warn", active=True, score=score, why=why)
    if opinion <= config.dismiss and finding.active:
        return msgspec.structs.replace(finding, severity="guide", why=why)
    return msgspec.structs.replace(finding, why=why if finding.active else finding.why)
