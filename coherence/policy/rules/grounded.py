"""A rule about answers that state what nobody told the agent, and what it means for how a run ended."""

from __future__ import annotations

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Appraisal, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_number
from coherence.detect.grounding import Grounds
from coherence.detect.grounding_words import sentence
from coherence.policy.rules.finding_builders import THRESHOLD, found, quiet
from coherence.state.data import Facts
from coherence.state.reducer import AgentState

OUTCOME_RULE = "ungrounded_outcome"
"""Name of the finding that a run counts as failed."""


class UngroundedAnswer:
    """The newest answer states ids, numbers, addresses, paths or quotations that it was not given.

    The score is ``1 - 2**-w`` for the weight ``w`` of what is not grounded, see
    :class:`~coherence.metrics.grounding.Grounding`: 0.5 for one number, 0.75 for a date, 0.875 for an id, an address
    or a quotation; three addresses that were cited and never opened reach 0.79. It is active from 0.5 and warns from
    ``warn``. Remarks on the way are no answers: one counts once the user speaks or the task ends after it, or the
    host asks for a decision before anything else happens. ``None`` where no answer, or nothing in it, can be judged.

    Parameters
    ----------
    warn : float
        Score from which it asks to warn, in [0, 1].

    Examples
    --------
    >>> from coherence.core.events import Goal, Message, Outcome, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> state.fold(1, 0.0, Goal("What does it cost?"))
    >>> state.fold(2, 0.0, ToolResult("price: 1200 USD", tool_name="shop"))
    >>> state.fold(3, 0.0, Message("assistant", "It costs $1,300."))
    >>> state.fold(4, 0.0, Outcome(True))
    >>> print(UngroundedAnswer()(state, None, calm))
    ungrounded_answer: 1 of 1 value in the answer is not grounded: “$1,300” - the sources have 1200 USD (event 2)
    """

    name = "ungrounded_answer"

    def __init__(self, *, warn: float = 0.8) -> None:
        self.warn = check_number("warn", warn, least=0.0, most=1.0)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest answer."""
        grounds = judged_answer(state.facts)
        if grounds is None:
            return None
        score = 1.0 - 2.0**-grounds.lost
        if score < THRESHOLD:
            return quiet(self.name, score)
        return found(
            self.name,
            score,
            "warn" if score >= self.warn else "guide",
            sentence(grounds),
            "look these up, or say that they are not known",
            [*(flaw.seq for flaw in grounds.flaws), grounds.seq],
        )


def judged_answer(facts: Facts) -> Grounds | None:
    """Return how far the newest answer is grounded; ``None`` if there is none, or nothing in it to check."""
    answer, grounds = facts.answer, facts.grounds.answer
    if answer is None or grounds is None or grounds.value is None or answer.seq != grounds.seq:
        return None
    return grounds if answer.final or facts.grounds.asked_seq == answer.seq else None


def outcome_finding(facts: Facts, config: MonitorConfig) -> Finding | None:
    """Return whether a run counts as failed for its last answer, at its end; ``None`` if that is not asked.

    The recorded outcome stays as it was told; this is a judgement beside it.
    """
    gate, grounds = config.grounding.gate, judged_answer(facts)
    if gate is None or grounds is None or grounds.value is None:
        return None
    failed = grounds.value < gate
    return Finding(
        rule=OUTCOME_RULE,
        severity="warn",
        active=failed,
        score=round(1.0 - grounds.value, 9),
        threshold=round(1.0 - gate, 9),
        evidence=(grounds.seq,) if grounds.seq > 0 else (),
        why=f"the run counts as failed: grounding {grounds.value:.2f} is below {gate:g}; {sentence(grounds)}"
        if failed
        else "",
        action="do not take the answer as it is" if failed else "",
    )
