"""Rules about the quality of work: declining feedback, unsure tokens, unsupported answers, blind edits, cost caps."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

from coherence.core.config import Budget, MonitorConfig
from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.events import Logprobs
from coherence.core.lazy import lazy_regex
from coherence.core.readings import Reading
from coherence.core.validation import check_count, shown_amount
from coherence.detect.grounding import Grounds, sentence, weight_of
from coherence.detect.sources import Given
from coherence.detect.written_prose import LEAST_DIGITS
from coherence.policy.rules.finding_builders import (
    FAINT,
    JUST_BELOW,
    THRESHOLD,
    found,
    quiet,
    score_of,
    shown_path,
    shown_tool,
)
from coherence.state.data import Rated
from coherence.state.reducer import AgentState

FEW = 3
"""Judgements that tell a decline, and whether a cap was reached by bad work."""

MORE = 5
"""Judgements that tell that quality is bad all the time."""

GOOD = 0.5
"""A judgement as good as this ends a bad time; a mean below it is bad."""

FALL = 0.15
"""Least fall from the first to the last of three judgements that is a decline."""

BAD = 0.4
"""Mean of five judgements below which quality is bad all the time."""

LOST = 0.2
"""Mean of five judgements at which a run is lost: somebody says time after time that nothing of it is right."""


class QualityDecline:
    """The work is judged worse and worse, or bad all the time, and does not recover.

    Judgements are in [0, 1], 1 = good. Active if the third last lies at least 0.15 above the newest and the mean of the
    three is below 0.5; or if the last five have a mean below 0.4 and none of them reaches 0.5, so that one judgement of
    0.5 ends it. It asks to warn, and to block where five such have a mean of 0.2 or less. The score grows with both
    fall and badness, and is 0.5 where they are just enough. ``None`` before the third judgement.

    Examples
    --------
    >>> from coherence.core.events import Feedback
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> for seq, score in enumerate((0.2, -0.1, -0.3), 1):  # in [-1, 1]
    ...     state.fold(seq, 0.0, Feedback(score))
    >>> print(QualityDecline()(state, None, calm))
    quality_decline_no_recovery: the last 3 judgements fell from 0.60 to 0.35 and average 0.47
    """

    name = "quality_decline_no_recovery"
    steady = True

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the last judgements."""
        rated = state.facts.qualities
        if len(rated) < FEW:
            return None
        if rated[-1].quality >= GOOD and rated[-2].quality >= GOOD:
            return quiet(self.name)
        falls, stays = _fall_score(rated[-FEW:]), _stay_score(rated[-MORE:])
        if max(falls, stays) <= 0.0:
            return quiet(self.name)
        severity: DecisionKind = "warn"
        if stays >= falls:
            about = rated[-MORE:]
            mean = _mean(about)
            why = f"the last {len(about)} judgements average {mean:.2f} and the best is {_best(about):.2f}"
            if stays >= THRESHOLD and mean <= LOST:
                severity = "block"
        else:
            about = rated[-FEW:]
            change = "fell" if about[0].quality > about[-1].quality else "went"
            why = f"the last {FEW} judgements {change} from {about[0].quality:.2f} to {about[-1].quality:.2f}"
            why += f" and average {_mean(about):.2f}"
        return found(
            self.name,
            max(falls, stays),
            severity,
            why,
            "compare the last judged answers with the goal, or begin anew from the last good one",
            [one.seq for one in about],
        )


def _mean(rated: Sequence[Rated]) -> float:
    # Judgements arrive as (score + 1) / 2: without rounding, a mean of 0.5 might come out as 0.49999999999999994.
    return round(sum(one.quality for one in rated) / len(rated), 9)


def _best(rated: Sequence[Rated]) -> float:
    return max(one.quality for one in rated)


def _fall_score(rated: Sequence[Rated]) -> float:
    """Return the score of a decline: the smaller one of how far it fell and how bad it is."""
    fall, mean = round(rated[0].quality - rated[-1].quality, 9), _mean(rated)
    score = min(score_of(max(fall, 0.0), FALL), 1.0 - mean)
    return score if fall >= FALL and mean < GOOD else min(score, JUST_BELOW)


def _stay_score(rated: Sequence[Rated]) -> float:
    """Return the score of lasting badness; fewer than five judgements, or one good one, are not enough."""
    mean = _mean(rated)
    score = min(1.0, max(0.0, 0.5 + 0.5 * (BAD - mean) / BAD))
    enough = len(rated) == MORE and mean < BAD and _best(rated) < GOOD
    return score if enough else min(score, JUST_BELOW) * len(rated) / MORE


class CostCapReached:
    """A cap on tokens or money is reached while the last three judgements of the work average below 0.5.

    That is no budget: with good work, or work that nobody judges, it stays quiet. It asks to block, because what is
    paid from here on pays for more of what was judged bad. The score is 0.5 where cap and badness are just reached.
    ``None`` without a cap, and before the third judgement.

    Parameters
    ----------
    cap_tokens_out : int, optional
        Cap on output tokens, beside the limits of tokens and money in the agent's budget.

    Examples
    --------
    >>> from coherence.core.events import Feedback, Usage
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> state.fold(1, 0.0, Usage(output_tokens=12_000))
    >>> for seq in (2, 3, 4):
    ...     state.fold(seq, 0.0, Feedback(-0.2))
    >>> print(CostCapReached(cap_tokens_out=10_000)(state, None, calm))
    cost_cap_reached: 12,000 of 10,000 output tokens are spent, and the last 3 judgements average 0.40
    """

    name = "cost_cap_reached"

    def __init__(self, *, cap_tokens_out: int | None = None) -> None:
        self.cap_tokens_out = None if cap_tokens_out is None else check_count("cap_tokens_out", cap_tokens_out)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge what is spent by what came of it."""
        facts = state.facts
        if len(facts.qualities) < FEW:
            return None
        budget = state.budget or Budget()
        caps = {"tokens": budget.tokens, "US dollars": budget.cost_usd, "output tokens": self.cap_tokens_out}
        spent = {
            "tokens": float((facts.tokens_in or 0) + (facts.tokens_out or 0)),
            "output tokens": float(facts.tokens_out or 0),
            "US dollars": facts.cost_usd or 0.0,
        }
        reached = ((spent[unit] / cap if cap else 1.0, unit, cap) for unit, cap in caps.items() if cap is not None)
        share, unit, cap = max(reached, default=(0.0, "", 0.0))
        if not unit:
            return None
        rated = facts.qualities[-FEW:]
        mean = _mean(rated)
        if share < THRESHOLD:
            return quiet(self.name)
        score = min(score_of(share, 1.0), 1.0 - mean)
        if share < 1.0 or mean >= GOOD:
            score = min(score, JUST_BELOW)
        return found(
            self.name,
            score,
            "block",
            f"{shown_amount(spent[unit])} of {shown_amount(cap)} {unit} are spent, "
            f"and the last {FEW} judgements average {mean:.2f}",
            "stop, and have somebody look at what the judgements have in common",
            [one.seq for one in rated] + [call.seq for call in facts.spending[-1:]],
        )


BY_CHANCE = 0.1
"""Share of tokens below 10 % probability that free text has by nature: at temperature 1 as many are drawn on average
where every token is that uncertain, and most are not."""

RARE = 0.01
"""Expected number of runs of such tokens in a message below which a run is no chance."""

SHOWN_SPANS = 3


class LowConfidenceSpans:
    """The newest message has long runs of tokens below 10 % probability, or many of them altogether.

    A message of 200 tokens has single ones by nature. A run of ``k`` among ``n`` tokens, each of them unlikely with
    probability ``p``, comes about ``n (1 - p) p^k`` times by chance (to first order); with ``p = 0.1`` a run as long as
    makes that at most 0.01 counts: 4 tokens of 100, 5 of 1,000. Or else a quarter of such tokens in messages of 20
    tokens or more. The score is 0.5 where either is reached; it asks to guide, to warn at 1.
    ``None`` where the newest message came without token probabilities.

    Examples
    --------
    >>> from coherence.core.events import Message, summarise_logprobs
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> told = summarise_logprobs([-0.1] * 40 + [-4.0] * 5 + [-0.1] * 55)
    >>> state.fold(1, 0.0, Message("assistant", "The file is config/legacy.yml.", logprobs=told))
    >>> print(LowConfidenceSpans()(state, None, calm))
    low_confidence_spans: 5 of 100 tokens of the newest message were unlikely: tokens 41 to 45 (2% on average)

    References
    ----------
    P. Erdős, A. Rényi: On a new law of large numbers, Journal d'Analyse Mathématique 23 (1970), 103-111.
    """

    name = "low_confidence_spans"
    steady = True
    share, least = 0.25, 20
    """Share of unlikely tokens from which it is active, and tokens of a message from which a share means something."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest message."""
        told = state.facts.unsure
        if told is None:
            return None
        if told.low < 2 or told.count < 1:
            return quiet(self.name)
        longest = max((span.count for span in told.spans), default=0)
        low = told.low / told.count
        score = max(score_of(longest, _unusual_run(told.count)), min(JUST_BELOW, score_of(low, self.share)))
        if told.count >= self.least:
            score = max(score, score_of(low, self.share))
        if score < FAINT:
            return quiet(self.name, score)
        return found(
            self.name,
            score,
            "warn" if score >= 1.0 else "guide",
            _why(told),
            "check what these tokens say: names, numbers, paths",
            [state.facts.unsure_seq],
        )


def _unusual_run(count: int) -> float:
    return max(2.0, log(RARE / (max(count, 1) * (1.0 - BY_CHANCE))) / log(BY_CHANCE))


def _why(told: Logprobs) -> str:
    worst = sorted(told.spans, key=lambda span: (span.mean * span.count, span.first))[:SHOWN_SPANS]
    places = [
        f"token{'s' * (span.count > 1)} {span.first + 1}{f' to {span.first + span.count}' * (span.count > 1)}"
        f" ({exp(min(span.mean, 0.0)):.0%} on average)"
        for span in sorted(worst, key=lambda span: span.first)
    ]
    more = " and elsewhere" * (len(told.spans) > SHOWN_SPANS)
    return f"{told.low} of {told.count:,} tokens of the newest message were unlikely: {', '.join(places)}{more}"


OUTCOME_RULE = "ungrounded_outcome"
"""Name of the finding that a run counts as failed."""


class UngroundedAnswer:
    """The newest answer states ids, numbers, addresses, paths or quotations that it was not given.

    The score is ``1 - 2**-w`` for the weight ``w`` of what is not grounded, see
    :class:`~coherence.metrics.grounding.Grounding`: 0.5 for one number, 0.75 for a date, 0.875 for an id, an address
    or a quotation; three addresses that were cited and never opened reach 0.79. It is active from 0.5 and warns from
    0.8; files and names in code do not lead to that, nor quotations of an agent that has opened files, and of an
    agent that works on code only ids, e-mail addresses and dates do; nor does an answer before any result, since some
    hosts record none. Remarks on the way are no answers: one counts once the user speaks or the task ends after it, or
    the host asks for a decision before anything else happens. ``None`` where no answer, or nothing in it, can be
    judged.

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
    steady = True
    warn = 0.8
    """Score from which it asks to warn."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest answer."""
        grounds = judged_answer(state)
        if grounds is None:
            return None
        score = 1.0 - 2.0**-grounds.lost
        if score < THRESHOLD:
            return quiet(self.name, score)
        firm = min(score, _firm(grounds, state.grounding.data.given))
        return found(
            self.name,
            score,
            "warn" if grounds.looked_up and firm >= self.warn else "guide",
            sentence(grounds),
            "look these up, or say that they are not known",
            [*(flaw.seq for flaw in grounds.flaws), grounds.seq],
        )


FIRM = {"id": 3.0, "email": 3.0, "date": 2.0}
"""Kind -> how much a value counts of an agent that works on code, where files, lines and names are new each day."""


_LINES = lazy_regex(r"L?\d{1,9}(?:-(?:L?\d{1,9}|[a-z]{1,20}))?")
"""Names of lines, or counts of them: L195, L190-194, a 1988-line file."""


def _firm(grounds: Grounds, given: Given) -> float:
    """Return the score of what is not grounded without files and names in code; of code, of what ids and days tell.

    Who has opened files explains what they hold in words of their own, so quotations are left out then.
    """
    if not given.code:
        loose = {"path", "function", "record", "term"}
        if any(form.startswith("path:") for form in given.opened):
            loose.add("quote")
        new = sum(weight_of(flaw.kind) for flaw in grounds.grave if flaw.kind in loose)
        return 1.0 - float(2.0 ** -max(grounds.lost - new, 0.0))
    told = [flaw for flaw in grounds.grave if flaw.kind != "id" or _names_one(flaw.text)]
    return 1.0 - float(2.0 ** -sum(FIRM.get(flaw.kind, 0.0) for flaw in told))


def _names_one(text: str) -> bool:
    """Tell whether an id of code names one thing, not lines of a file."""
    return sum(map(str.isdigit, text)) >= LEAST_DIGITS and _LINES.fullmatch(text) is None


def judged_answer(state: AgentState) -> Grounds | None:
    """Return how far the newest answer is grounded; ``None`` if there is none, or nothing in it to check."""
    answer, account = state.facts.answer, state.grounding.data
    grounds = account.answer
    if answer is None or grounds is None or grounds.value is None or answer.seq != grounds.seq:
        return None
    return grounds if answer.final or account.asked_seq == answer.seq else None


def outcome_finding(state: AgentState, config: MonitorConfig) -> Finding | None:
    """Return whether a run counts as failed for its last answer, at its end; ``None`` if that is not asked.

    The recorded outcome stays as it was reported; this is a judgement beside it.
    """
    gate, grounds = config.grounding.gate, judged_answer(state)
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


class BlindEdit:
    """The newest action changed a file that exists and was never read.

    Only what the events show counts (see :func:`~coherence.state.reducer.blind_target`); an edit that failed changed
    nothing. The score is 0.5 for the first such file among the last 30 actions; from three files on it is 1
    and the rule asks to warn. It is 0 again with the next action. ``None`` before the first action.

    Examples
    --------
    >>> import msgspec
    >>> from coherence.core.events import ToolCall, ToolResult
    >>> from coherence.core.decisions import Mode
    >>> state, calm = AgentState(), Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)
    >>> arguments = msgspec.Raw(b'{"file_path": "/src/app.py", "old_string": "a", "new_string": "b"}')
    >>> state.fold(1, 0.0, ToolCall("Edit", arguments, "1"))
    >>> state.fold(2, 0.0, ToolResult("ok", call_id="1"))
    >>> print(BlindEdit()(state, None, calm))
    blind_edit: Edit changed /src/app.py, which was not read before
    """

    name = "blind_edit"
    steady = True
    warn = 3
    """Different files among the last 30 actions from which it asks to warn."""

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the newest action."""
        actions = state.facts.actions
        if not actions:
            return None
        last = actions[-1]
        if not last.blind:
            return quiet(self.name)
        blind = [action for action in actions if action.blind]
        files = len({action.blind for action in blind})
        why = f"{shown_tool(last.tool)} changed {shown_path(last.blind)}, which was not read before"
        if files > 1:
            why += f"; {files} files were changed so within {len(actions)} actions"
        return found(
            self.name,
            min(1.0, 0.5 + 0.5 * (files - 1) / (self.warn - 1)),
            "warn" if files >= self.warn else "guide",
            why,
            "compare the file with what it was before the edit",
            [action.seq for action in blind],
        )
