"""A rule about stretches of a message that the model itself held unlikely."""

from __future__ import annotations

from math import exp, log

from coherence.core.decisions import Appraisal, Finding
from coherence.core.events import Logprobs
from coherence.core.readings import Reading
from coherence.core.validation import check_count, check_number
from coherence.policy.rules.finding_builders import FAINT, JUST_BELOW, found, quiet, score_of
from coherence.state.reducer import AgentState

BY_CHANCE = 0.1
"""Share of tokens below 10 % probability that free text has by nature: at temperature 1 as many are drawn on average
where every token is that uncertain, and most are not."""

RARE = 0.01
"""How often a run of such tokens may come about by chance in a message."""

SHOWN_SPANS = 3


class LowConfidenceSpans:
    """The newest message has long runs of tokens below 10 % probability, or many of them altogether.

    A message of 200 tokens has single ones by nature. A run of ``k`` among ``n`` tokens, each of them unlikely with
    probability ``p``, comes about ``n (1 - p) p^k`` times by chance (to first order); with ``p = 0.1`` a run as long as
    makes that at most 0.01 counts: 4 tokens of 100, 5 of 1,000. Or else a share of such tokens of ``share`` in
    messages of ``least`` tokens or more. The score is 0.5 where either is reached; it asks to guide, to warn at 1.
    ``None`` where the newest message came without token probabilities.

    Parameters
    ----------
    share : float
        Share of unlikely tokens from which it is active, in (0, 1].
    least : int
        Tokens of a message from which a share means something.

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

    def __init__(self, *, share: float = 0.25, least: int = 20) -> None:
        self.share = check_number("share", share, least=0.001, most=1.0)
        self.least = check_count("least", least, least=1)

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
