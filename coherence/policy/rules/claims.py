"""Rules about what the agent claims and does against its own results, and against what it was told."""

from __future__ import annotations

import re

from msgspec.structs import replace

from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Reading
from coherence.core.validation import check_number
from coherence.detect.contradiction import ClaimFacts, Written
from coherence.detect.glossed_over import Passed
from coherence.detect.grounding import MAX_TOLD, Grounds, describe_flaw
from coherence.detect.held_results import Contradiction
from coherence.detect.prohibitions import BrokenProhibition
from coherence.policy.rules.finding_builders import THRESHOLD, found, plain_quote, quiet, shown_tool
from coherence.state.data import Answer
from coherence.state.reducer import AgentState

SAYS = {
    "done": "it did not work",
    "tests": "they fail",
    "state": "a result says otherwise",
    "amount": "a result has another number",
    "unread": "nobody could read it",
}
"""Words for a wrong claim, by its kind."""


class ContradictedClaim:
    """The newest message, or what the newest call writes, claims what the agent's own results contradict.

    That something was done though the call failed, that tests pass though the newest run of them fails, the opposite of
    a state or another number than a result has, what is in a file that nobody could read. The score is 1 until the
    agent speaks again, else 0; it asks to warn. An answer, not a remark on the way, that merely passes over a failed
    call, tells of a failure where there was none, or of an act for which there was no call, scores 0.5 and asks to
    guide. ``None`` before the first message.

    Examples
    --------
    >>> from msgspec import Raw
    >>> from coherence.core.events import Message, ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> state.fold(1, 0.0, ToolCall("run", Raw(b'{"command": "pytest -q"}'), "1"))
    >>> state.fold(2, 0.0, ToolResult("2 failed, 31 passed in 4.2s", call_id="1"))
    >>> state.fold(3, 0.0, Message("assistant", "All tests pass now."))
    >>> print(ContradictedClaim()(state, None, calm))  # doctest: +NORMALIZE_WHITESPACE
    contradicted_claim: "All tests pass now." - they fail: "2 failed, 31 passed in 4.2s" (event 2)
    """

    name = "contradicted_claim"
    steady = True

    def __init__(self) -> None:
        self._quiet = quiet(self.name)
        self._known: tuple[Answer, int, Passed | None] | None = None

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest message."""
        data = state.claims.data
        if data.written is not None:
            finding = self._told(data.written.newest or _amount(data.written, state.grounding.data.written))
            finding = finding or self._passed(data.written_over(), data.written.seq)
            if finding is not None:
                return replace(finding, why=f"{shown_tool(data.written.tool)} writes {finding.why}")
        if not data.said:
            return None
        return self._told(data.newest or _amount(data, state.grounding.data.answer)) or self._answered(state)

    def _told(self, claim: Contradiction | None) -> Finding | None:
        """Return the finding of a claim."""
        if claim is None:
            return None
        where = f" (event {claim.other})" if claim.other > 0 else ", in an earlier session"
        return found(
            self.name,
            1.0,
            "warn",
            f'"{plain_quote(claim.claim)}" - {SAYS[claim.kind]}: "{plain_quote(claim.result)}"{where}',
            "check it, and say what the result says",
            [claim.other, claim.seq],
        )

    def _answered(self, state: AgentState) -> Finding:
        """Return what the answer passes over, as guidance."""
        data, answer = state.claims.data, state.facts.answer
        if answer is None or answer.seq != data.said:
            return self._quiet
        if not answer.final and state.grounding.data.asked_seq != answer.seq:
            return self._quiet
        newest = data.outcomes[-1].seq if data.outcomes else 0
        # Ticks come again with nothing new; where results came, those before the answer may be forgotten.
        if self._known is None or self._known[0] is not answer or self._known[1] != newest:
            self._known = answer, newest, data.passes_over(answer.text)
        return self._passed(self._known[2], data.said) or self._quiet

    def _passed(self, passed: Passed | None, seq: int) -> Finding | None:
        """Return the finding of what passes over how a call came out."""
        if passed is None:
            return None
        where = f" (event {passed.seq})" if passed.seq > 0 else ", in an earlier session"
        return found(
            self.name,
            GLOSSED,
            "guide",
            f'"{plain_quote(passed.statement[:140])}" - {PASSES[passed.why]}: "{plain_quote(passed.line)}"{where}',
            "say how the calls came out",
            [passed.seq, seq],
        )


GLOSSED = 0.5
"""Score of an answer that passes over how a call came out."""

PASSES = {
    "failed": "the call failed, and the answer does not say so",
    "open": "that is not through yet, and the answer does not say so",
    "tried out": "that was only tried out",
    "worked with warnings": "there were some",
    "not done": "no call did it",
}
"""Words for an answer that passes over how a call came out."""


class BrokenConstraint:
    """The newest call does what the user, a correction or the system text has forbidden.

    Told by the act and what it is done to; what has a condition is passed over, and a later request for the act lifts
    it. The score is 1 until the agent's next message or call, else 0; it asks to warn. ``None`` before the first call.

    Examples
    --------
    >>> from msgspec import Raw
    >>> from coherence.core.events import Goal, ToolCall
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> state.fold(1, 0.0, Goal("Free some space, but keep all databases."))
    >>> state.fold(2, 0.0, ToolCall("drop_database", Raw(b'{"name": "crm"}'), "1"))
    >>> print(BrokenConstraint()(state, None, calm))
    broken_constraint: drop_database({'name':'crm'}) - event 1 forbids it: "Free some space, but keep all databases."
    """

    name = "broken_constraint"
    steady = True

    def __init__(self) -> None:
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest call."""
        data = state.forbidden.data
        if not data.called and data.newest is None:
            return None
        return self._quiet if data.newest is None else broken_constraint(data.newest, "warn")


def broken_constraint(broken: BrokenProhibition, severity: DecisionKind) -> Finding:
    """Return the finding of a call that breaks a prohibition; of one that has not run, ``severity`` is ``block``."""
    where = f"event {broken.other}" if broken.other > 0 else "an earlier session"
    quoted = plain_quote(broken.arguments)
    call = f"{shown_tool(broken.tool)}{quoted}" if broken.tool else f'"{quoted}"'
    return found(
        BrokenConstraint.name,
        1.0,
        severity,
        f'{call} - {where} forbids it: "{plain_quote(broken.sentence)}"',
        "ask whether it is wanted" if severity == "block" else "take it back, or ask whether it is wanted",
        [seq for seq in (broken.other, broken.seq) if seq > 0],
    )


WEIGHTS = dict.fromkeys(("record", "term", "number", "amount", "date", "time"), 1.0)
"""Kind -> how much a value counts in what is written; 3 for all others."""

MADE_UP = lazy_regex(
    r"\b(?:make (?:it |them |something |one )?up|invent\w*|imagin\w+|fiction\w*|fictitious|dummy|placeholder|made[- ]up"
    r"|test (?:data|values?|users?|accounts?|entries)|samples?|examples?|mock|fake|brainstorm"
    r"|come up with|stor(?:y|ies)|poem|template|novel|essay|slogan|estimate\w*"
    r"|erfinde\w*|ausgedacht\w*|beispiel\w*|geschichte|invente\w*|histoire|exemple|cuento|ejemplo)\b",
    re.IGNORECASE,
)
"""Words by which a user asks for what is not known."""


class UngroundedWriting:
    """A call writes down, sends or submits numbers, ids, addresses or quotations that the agent was not given.

    Looked at is what is written for people: files of prose, notes, mails, messages, final results; not code. As in
    :class:`~coherence.policy.rules.quality.UngroundedAnswer` the score is ``1 - 2**-w``; a number, a date
    or a time weighs 1, the rest 3. It is active from 0.5 and asks to warn from ``warn`` on, until the agent's next
    message or call; it is silent where the user asks for something made up. ``None`` where the newest call writes
    nothing of the kind.

    Parameters
    ----------
    warn : float
        Score from which it asks to warn, in [0, 1].

    Examples
    --------
    >>> from msgspec import Raw
    >>> from coherence.core.events import Goal, ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> state.fold(1, 0.0, Goal("Write a summary of the survey."))
    >>> state.fold(2, 0.0, ToolResult("east: 120, west: 240", tool_name="read_survey"))
    >>> text = Raw(b'{"path": "summary.md", "content": "412 people were asked, 91 % agreed, see R-88213."}')
    >>> state.fold(3, 0.0, ToolCall("write_file", text, "1"))
    >>> print(UngroundedWriting()(state, None, calm))  # doctest: +ELLIPSIS
    ungrounded_writing: write_file writes what nothing has shown: “R-88213” - occurs in nothing that ...
    """

    name = "ungrounded_writing"
    steady = True

    def __init__(self, *, warn: float = 0.75) -> None:
        self.warn = check_number("warn", warn, least=0.0, most=1.0)
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest call."""
        grounds = state.grounding.data.written
        if grounds is None:
            return None
        flaws = grounds.grave
        score = 1.0 - 2.0 ** -sum(WEIGHTS.get(flaw.kind, 3.0) for flaw in flaws)
        if score < THRESHOLD or any(MADE_UP.search(text[:REQUEST_CHARS]) for text in state.get_goals()):
            return self._quiet
        tool = next(reversed(state.facts.called), "")
        told = "; ".join(f"“{plain_quote(flaw.text)}” - {describe_flaw(flaw)}" for flaw in flaws[:MAX_TOLD])
        return found(
            self.name,
            score,
            "warn" if score >= self.warn else "guide",
            f"{shown_tool(tool)} writes what nothing has shown: {told}",
            "look these up, or leave them out",
            [*(flaw.seq for flaw in flaws), grounds.seq],
        )


REQUEST_CHARS = 4_000
"""Characters of a request in which is looked for what is to be made up."""


def _amount(said: ClaimFacts | Written, grounds: Grounds | None) -> Contradiction | None:
    """Return a number of a statement that nothing leads to, where a result has another for the same thing."""
    seq = said.seq if isinstance(said, Written) else said.said
    if grounds is None or grounds.seq != seq:
        return None
    texts = [flaw.text for flaw in grounds.grave if flaw.kind in ("number", "amount")]
    return next((each for each in said.amounts if any(each.value in text for text in texts)), None)
