"""Quality that falls or stays bad, caps reached by bad work, and what the model itself held unlikely."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coherence.core.config import Budget
from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.events import Feedback, Message, Usage, summarise_logprobs
from coherence.policy.rules.quality import CostCapReached, LowConfidenceSpans, QualityDecline
from coherence.state.reducer import AgentState

CALM = Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)


def judged(qualities: Sequence[float]) -> AgentState:
    """Return the state after judgements in [0, 1]; a host gives them in [-1, 1]."""
    state = AgentState()
    for seq, quality in enumerate(qualities, 1):
        state.fold(seq, float(seq), Feedback(2.0 * quality - 1.0))
    return state


def decline(qualities: Sequence[float]) -> Finding:
    finding = QualityDecline()(judged(qualities), None, CALM)
    assert finding is not None
    return finding


# Cases of the classic regulator: the third last at least 0.15 above the newest, and a mean below 0.5.
@pytest.mark.parametrize(
    ("qualities", "fires"),
    [
        ((0.5, 0.45, 0.35), True),
        ((0.5, 0.45, 0.36), False),
        ((0.64, 0.5, 0.35), True),
        ((0.8, 0.5, 0.19), True),
        ((0.4, 0.1, 0.25), True),
        ((0.4, 0.9, 0.1), True),
        ((0.65, 0.34, 0.5), True),
        ((0.9, 0.5, 0.1), False),  # mean 0.5
        ((0.9, 0.7, 0.5, 0.3), False),  # mean of the last three 0.5
        ((0.1, 0.1, 0.1), False),  # no fall, and too few to be bad all the time
        ((0.9, 0.1, 0.1, 0.1), False),
        ((0.6, 0.4, 0.35), True),
        ((1.0, 0.0, 0.4), True),
    ],
)
def test_quality_decline_a_decline_is_the_classic_one(qualities: Sequence[float], fires: bool) -> None:
    found = decline(qualities)
    assert (found.active, found.score >= 0.5) == (fires, fires)


@pytest.mark.parametrize(
    ("qualities", "severity", "score", "why", "evidence"),
    [
        # the smaller one of 0.5 * 0.25 / 0.15 and 1 - mean
        ((0.9, 0.6, 0.45, 0.35), "warn", 1 - 1.4 / 3, "fell from 0.60 to 0.35 and average 0.47", (2, 3, 4)),
        ((0.3,) * 5, "warn", 0.5 + 0.5 * 0.1 / 0.4, "average 0.30 and the best is 0.30", (1, 2, 3, 4, 5)),
        ((0.2,) * 5, "block", 0.75, "average 0.20 and the best is 0.20", (1, 2, 3, 4, 5)),
    ],
)
def test_quality_decline_says_how_the_judgements_went(
    qualities: Sequence[float], severity: str, score: float, why: str, evidence: tuple[int, ...]
) -> None:
    found = decline(qualities)
    assert (found.severity, found.evidence) == (severity, evidence)
    assert found.score == pytest.approx(score)
    assert found.why.endswith(why)


@pytest.mark.parametrize(
    ("qualities", "active"),
    [
        ((0.3,) * 4, False),
        ((0.0,) * 4, False),
        ((0.4,) * 5, False),  # 0.4 is not below 0.4
        ((0.9, *(0.3,) * 5), True),
        ((0.1, 0.1, 0.1, 0.1, 0.49), True),
        ((0.1, 0.1, 0.1, 0.1, 0.5), False),  # one good judgement ends a bad time
        ((0.5, 0.1, 0.1, 0.1, 0.1, 0.1), True),  # and is forgotten after five bad ones
        ((0.9, 0.8, 0.9, 0.8), False),
    ],
)
def test_quality_decline_lasting_badness_takes_five_judgements(qualities: Sequence[float], active: bool) -> None:
    assert decline(qualities).active is active


def test_quality_decline_ends_with_a_better_judgement_and_not_by_waiting() -> None:
    state = judged((0.6, 0.4, 0.3))
    for seq in range(4, 50):
        state.fold(seq, float(seq), Message("assistant", "next"))
    held = QualityDecline()(state, None, CALM)
    assert held is not None and held.active
    state.fold(50, 50.0, Feedback(0.8))
    after = QualityDecline()(state, None, CALM)
    assert after is not None and not after.active
    assert QualityDecline()(judged((0.1, 0.1)), None, CALM) is None


def capped(
    qualities: Sequence[float], usage: Usage, budget: Budget | None = None, cap: int | None = 1_000
) -> Finding | None:
    state = judged(qualities)
    state.budget = budget
    state.fold(100, 200.0, usage)
    return CostCapReached(cap_tokens_out=cap)(state, None, CALM)


# Cases of the classic regulator, with a cap of 1,000 output tokens.
@pytest.mark.parametrize(
    ("qualities", "tokens_out", "fires"),
    [
        ((0.4, 0.4, 0.4), 1_000, True),
        ((0.4, 0.4, 0.4), 999, False),
        ((0.5, 0.5, 0.5), 1_000, False),
        ((0.9, 0.9, 0.9), 1_000, False),
        ((0.9, 0.9, 0.1, 0.1, 0.1), 1_000, True),
        ((0.55, 0.55, 0.55), 10_000_000, False),
    ],
)
def test_cost_cap_reached_a_cap_is_reached_by_bad_work_only(
    qualities: Sequence[float], tokens_out: int, fires: bool
) -> None:
    found = capped(qualities, Usage(output_tokens=tokens_out))
    assert found is not None
    assert (found.active, found.score >= 0.5) == (fires, fires)


def test_cost_cap_reached_a_cap_blocks_and_says_why() -> None:
    found = capped((0.4, 0.4, 0.4), Usage(output_tokens=1_200))
    assert found is not None
    assert (found.severity, found.evidence) == ("block", (1, 2, 3, 100))
    assert found.why == "1,200 of 1,000 output tokens are spent, and the last 3 judgements average 0.40"


def test_cost_cap_reached_a_cap_may_be_the_budget() -> None:
    bad = (0.1, 0.1, 0.1)
    spent = Usage(input_tokens=700, output_tokens=400, cost_usd=2.0)
    for budget, cap in (
        (Budget(tokens=1_100), None),
        (Budget(cost_usd=2.0), None),
        (Budget(tokens=10_000), 400),
    ):
        found = capped(bad, spent, budget, cap)
        assert found is not None and found.active
    nearly = capped(bad, spent, Budget(tokens=1_101, cost_usd=2.01), 401)
    assert nearly is not None and not nearly.active and nearly.score == 0.49
    far = capped(bad, spent, Budget(tokens=11_000), None)
    assert far is not None and (far.score, far.why) == (0.0, "")


def test_cost_cap_reached_without_a_cap_or_judgements_no_cap_is_reached() -> None:
    spent = Usage(output_tokens=5_000)
    assert capped((0.1, 0.1), spent) is None and capped((), spent) is None
    for budget in (None, Budget(calls=1)):
        assert capped((0.1,) * 3, spent, budget, None) is None
    with pytest.raises(ValueError, match="cap_tokens_out"):
        CostCapReached(cap_tokens_out=-1)


def unsure(logprobs: Sequence[float]) -> Finding:
    state = AgentState()
    state.fold(1, 1.0, Message("assistant", "text", logprobs=summarise_logprobs(logprobs)))
    finding = LowConfidenceSpans()(state, None, CALM)
    assert finding is not None
    return finding


SURE, LOW = [-0.1], [-4.0]


def test_low_confidence_spans_a_long_unlikely_run_is_found_and_located() -> None:
    # Of 100 tokens, runs of 4 come about 100 * 0.9 * 0.1^4 = 0.009 times, of 3 0.09 times.
    found = unsure(SURE * 40 + LOW * 4 + SURE * 56)
    assert (found.active, found.severity, found.evidence) == (True, "guide", (1,))
    assert found.why == "4 of 100 tokens of the newest message were unlikely: tokens 41 to 44 (2% on average)"
    nearly = unsure(SURE * 40 + LOW * 3 + SURE * 57)
    assert not nearly.active and 0.3 < nearly.score < 0.5


@pytest.mark.parametrize(
    ("logprobs", "active"),
    [
        (SURE * 900 + LOW * 4 + SURE * 96, False),  # a longer message needs a longer run: 1,000 * 0.9 * 0.1^4 = 0.09
        (SURE * 900 + LOW * 5 + SURE * 95, True),
        ((SURE * 9 + LOW) * 20, False),  # single ones are natural: every tenth of 200
        (SURE * 199 + LOW, False),
        ((SURE + LOW) * 9, False),  # 18 tokens say little
        ([-1e9] * 30, True),
    ],
)
def test_low_confidence_spans_a_run_counts_that_is_no_chance(logprobs: list[float], active: bool) -> None:
    assert unsure(logprobs).active is active


def test_low_confidence_spans_many_unlikely_tokens_are_found_wherever_they_are() -> None:
    found = unsure((SURE * 3 + LOW) * 10)  # every fourth of 40
    assert (found.active, found.score) == (True, 0.5)
    assert found.why.endswith(
        "token 4 (2% on average), token 8 (2% on average), token 12 (2% on average) and elsewhere"
    )
    assert unsure((SURE + LOW) * 10).severity == "warn"  # half of 20


def test_low_confidence_spans_only_the_newest_message_counts() -> None:
    state = AgentState()
    assert LowConfidenceSpans()(state, None, CALM) is None
    state.fold(1, 1.0, Message("assistant", "text", logprobs=summarise_logprobs(LOW * 50)))
    found = LowConfidenceSpans()(state, None, CALM)
    assert found is not None and found.active
    state.fold(2, 2.0, Message("assistant", "text", logprobs=summarise_logprobs(SURE * 50)))
    after = LowConfidenceSpans()(state, None, CALM)
    assert after is not None and after.score == 0.0
    state.fold(3, 3.0, Message("assistant", "text"))
    assert LowConfidenceSpans()(state, None, CALM) is None
