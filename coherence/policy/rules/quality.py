"""Rules about judged work: quality that falls or stays bad, and money that goes on being spent on it."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.core.config import Budget
from coherence.core.decisions import Appraisal, DecisionKind, Finding
from coherence.core.readings import Reading
from coherence.core.validation import check_count, shown_amount
from coherence.policy.rules.finding_builders import JUST_BELOW, THRESHOLD, found, quiet, score_of
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

    def __init__(self) -> None:
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge the last judgements."""
        rated = state.facts.qualities
        if len(rated) < FEW:
            return None
        if rated[-1].quality >= GOOD and rated[-2].quality >= GOOD:
            return self._quiet
        falls, stays = _fall_score(rated[-FEW:]), _stay_score(rated[-MORE:])
        if max(falls, stays) <= 0.0:
            return self._quiet
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
    budget : Budget, optional
        Its limits of tokens and money are caps.
    cap_tokens : int, optional
        Further cap on input and output tokens together.
    cap_tokens_out : int, optional
        Further cap on output tokens.

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

    def __init__(
        self, budget: Budget | None = None, *, cap_tokens: int | None = None, cap_tokens_out: int | None = None
    ) -> None:
        for field, cap in (("cap_tokens", cap_tokens), ("cap_tokens_out", cap_tokens_out)):
            if cap is not None:
                check_count(field, cap)
        self.caps: list[tuple[str, float]] = []
        if budget is not None and budget.tokens is not None:
            self.caps.append(("tokens", budget.tokens))
        if budget is not None and budget.cost_usd is not None:
            self.caps.append(("US dollars", budget.cost_usd))
        if cap_tokens is not None:
            self.caps.append(("tokens", cap_tokens))
        if cap_tokens_out is not None:
            self.caps.append(("output tokens", cap_tokens_out))
        self._quiet = quiet(self.name)

    def __call__(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Finding | None:
        """Judge what is spent by what came of it."""
        facts = state.facts
        if not self.caps or len(facts.qualities) < FEW:
            return None
        spent = {
            "tokens": float((facts.tokens_in or 0) + (facts.tokens_out or 0)),
            "output tokens": float(facts.tokens_out or 0),
            "US dollars": facts.cost_usd or 0.0,
        }
        share, unit, cap = max((spent[unit] / cap if cap else 1.0, unit, cap) for unit, cap in self.caps)
        rated = facts.qualities[-FEW:]
        mean = _mean(rated)
        if share < THRESHOLD:
            return self._quiet
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
