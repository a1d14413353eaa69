"""Trials of patches: how soon each kind of harm is seen, and how seldom a harmless patch is rolled back."""

import math
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.baseline import Baseline, CallOutcome, Recent
from coherence.guard.verdict import Trial, Verdict
from guard.helpers import capital

GOOD = CallOutcome(True, 1.0, 1.0, 0.9)
BAD = CallOutcome(False, 1.0, 1.0, 0.9)


def baseline(successes: int = 450, calls: int = 500) -> Baseline:
    """Calls with latencies and costs of 1 to 2 and indexes of 0.8 to 0.9, evenly spread."""
    recent = Recent()
    for place in range(calls):
        part = place / calls
        recent.observe(CallOutcome(place < successes, 1 + part, 1 + part, 0.9 - part / 10))
    return recent.freeze()


def play(trial: Trial, pattern: str, good: CallOutcome = GOOD) -> Verdict:
    for mark in pattern:
        trial.observe(good if mark == "+" else BAD)
    return trial.verdict


@pytest.mark.parametrize(
    ("successes", "needed"),
    # 5 failures in a row have the probability (f + 1) ... (f + 5) / (n + 1) ... (n + 5); 0.02 is the share of a run.
    # 0.6: (201 * ... * 205) / (501 * ... * 505) = 0.0108. At 0.8 and above the bet on success is there before.
    [(300, 5), (350, 5), (400, 5), (450, 4), (475, 3)],
)
def test_trial_a_total_failure_is_seen_within_five_calls(successes: int, needed: int) -> None:
    trial = Trial.begin(baseline(successes))
    assert play(trial, "-" * (needed - 1)).kind == "keep_looking"
    verdict = play(trial, "-")
    assert (verdict.kind, trial.calls) == ("roll_back", needed)
    assert verdict.metric in ("failure_run", "success")
    assert verdict.evidence is not None
    assert verdict.limit is not None
    assert verdict.evidence >= verdict.limit


def test_a_run_is_scaled_to_the_baseline() -> None:
    runs = [(Trial.begin(baseline(round(500 * rate))).later_run) for rate in (0.6, 0.7, 0.8, 0.9, 0.95)]
    # after a success, 300 starts share 0.0025: the longest k with 0.4**k > 8.3e-6 is 12 (0.4**13 = 6.7e-6), and so on;
    # that the rate is an estimate adds one to most
    assert runs == [14, 10, 8, 6, 5]
    assert Trial.begin(baseline(250)).first_run == 6  # 0.5**5 = 0.031 is above the share of 0.02, 0.5**6 is not
    assert Trial.begin(baseline(20)).first_run is None  # 0.96**40 = 0.2


def test_trial_all_shares_together_are_alpha() -> None:
    for successes, alpha in product((30, 250, 300, 450, 500), (0.01, 0.05)):
        trial = Trial.begin(baseline(successes), alpha=alpha)
        failures = 500 - successes

        def chance(length: int | None, failures: int = failures) -> float:
            places = range(length or 0)
            return math.prod((failures + 1 + k) / (501 + k) for k in places) if length else 0.0

        used = chance(trial.first_run) + 300 * chance(trial.later_run)
        tests = [test for test in (trial.success, trial.latency, trial.cost, trial.index) if test is not None]
        assert sum(1 / test.limit for test in tests) + used == pytest.approx(alpha)
        assert trial.success.limit == pytest.approx(tests[1].limit / 2)


def ever_rolled_back(known: Baseline, rate: float) -> float:
    """The exact probability that calls failing at a rate are ever rolled back, of all walks of 60 calls."""
    trial = Trial.begin(known, most_calls=60)
    first, later = trial.first_run or 99, trial.later_run or 99
    at, total = {(0, 0, True): 1.0}, 0.0
    for calls in range(1, 61):
        after: dict[tuple[int, int, bool], float] = {}
        for (failures, run, begun), chance in at.items():
            for failed, part in ((True, rate), (False, 1 - rate)):
                state = (failures + failed, (run + 1) * failed, begun and failed)
                after[state] = after.get(state, 0.0) + chance * part
        at = {}
        for (failures, run, begun), chance in after.items():
            seen = known.calls - known.successes, known.successes, failures, calls - failures
            if capital(*seen) >= trial.success.limit or run >= (first if begun else later):
                total += chance
            else:
                at[failures, run, begun] = chance
    return total


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_no_test_and_no_run_rolls_back_too_often_although_limits_follow_from_the_baseline(rate: float) -> None:
    # Nothing is simulated: all baselines of 15 calls, then all walks of 60 patched calls at the same rate.
    total = 0.0
    for failures in range(15):  # with no success there is nothing to lose
        chance = math.comb(15, failures) * rate**failures * (1 - rate) ** (15 - failures)
        total += chance * ever_rolled_back(Baseline(15, 15 - failures), rate)
    assert 0 < total <= 0.05


def test_trial_it_promotes_once_every_metric_is_shown_harmless() -> None:
    trial = Trial.begin(baseline())
    verdict = play(trial, ("+" * 9 + "-") * 30)
    assert verdict.kind == "promote"
    assert verdict.why == f"shown harmless by {trial.calls} patched calls"
    assert trial.calls < 120
    assert verdict.evidence is not None
    assert verdict.evidence >= 20
    without = Trial.begin(baseline())
    for call in range(300):
        without.observe(CallOutcome(call % 10 != 9, None, 1.0, 0.9))  # latency says nothing any more
    assert (without.calls, without.verdict.why) == (300, "no evidence of harm in 300 patched calls")


@pytest.mark.parametrize("known", [Baseline(), Baseline(3, 0), Baseline(3, 2), baseline(0), baseline()])
@pytest.mark.parametrize("pattern", ["+", "-", "+-", "++-", "+----"])
def test_trial_it_always_ends(known: Baseline, pattern: str) -> None:
    trial = Trial.begin(known, most_calls=50)
    play(trial, pattern * 50)
    assert trial.verdict.kind != "keep_looking"
    assert trial.calls <= 50
    calls, verdict = trial.calls, trial.verdict
    assert play(trial, "-" * 50) is verdict  # and stays so
    assert trial.calls == calls


def test_without_a_baseline_a_dead_patch_goes_and_a_working_one_stays() -> None:
    dead = Trial.begin(Baseline())
    assert play(dead, "-" * 9).kind == "keep_looking"
    verdict = play(dead, "-")
    assert (verdict.kind, verdict.evidence) == ("roll_back", None)
    assert verdict.why == "no success in 10 patched calls, and only 0 calls before"
    assert play(Trial.begin(Baseline()), "+" + "-+" * 150).kind == "promote"
    assert play(Trial.begin(baseline(0, 10)), "-" * 300).kind == "promote"  # as bad as before, and not worse


def test_trial_a_bad_hour_of_all_calls_is_not_the_patch() -> None:
    alone, beside = Trial.begin(baseline()), Trial.begin(baseline())
    for call in range(60):
        for _ in range(4):
            beside.compare(GOOD if call % 2 else BAD)
        beside.observe(GOOD if call % 2 else BAD)
        alone.observe(GOOD if call % 2 else BAD)
    assert alone.verdict.kind == "roll_back"
    assert beside.verdict.kind != "roll_back"


@pytest.mark.parametrize(
    ("worse", "metric"),
    [
        (CallOutcome(True, 2.5, 1.0, 0.9), "latency"),
        (CallOutcome(True, 1.0, 2.5, 0.9), "cost"),
        (CallOutcome(True, 1.0, 1.0, 0.5), "index"),
    ],
)
def test_each_metric_can_roll_back_unless_it_gets_worse_for_all_calls(worse: CallOutcome, metric: str) -> None:
    alone, beside = Trial.begin(baseline()), Trial.begin(baseline())
    for _ in range(100):
        beside.compare(worse)
        beside.observe(worse)
        alone.observe(worse)
    assert (alone.verdict.kind, alone.verdict.metric) == ("roll_back", metric)
    assert alone.calls == 9  # all calls beyond what a third of the calls was beyond before
    assert "beyond what 334 of 500 calls kept to before" in alone.verdict.why
    assert beside.verdict.kind == "keep_looking"


def test_trial_what_was_not_measured_before_is_not_judged_and_what_is_not_measured_any_more_is_not_shown() -> None:
    new = play(Trial.begin(Baseline(500, 450)), "+" * 300, CallOutcome(True, 9.0, 9.0, 0.1))
    assert new.why.startswith("shown harmless")
    half = Trial.begin(baseline())
    for call in range(300):
        half.observe(GOOD if call % 2 else CallOutcome(True, 1.0, 1.0))
    assert half.verdict.why.startswith("shown harmless")
    assert half.index is not None
    assert half.index.seen_within == half.calls // 2
    gone = play(Trial.begin(baseline()), "+" * 300, CallOutcome(True, 1.0, 1.0))
    assert gone.why == "no evidence of harm in 300 patched calls"


def test_compare_a_run_counts_once_an_unpatched_call_has_succeeded() -> None:
    sliced, drawn, alone = (Trial.begin(baseline()) for _ in range(3))
    for trial in (sliced, drawn, alone):
        play(trial, "+" * 10)
        for _ in range(3):
            trial.compare(GOOD)
    play(sliced, "-" * 6)
    assert sliced.verdict.kind == "keep_looking"
    verdict = sliced.compare(GOOD)
    assert (verdict.kind, verdict.metric) == ("roll_back", "failure_run")
    assert sliced.compare(BAD) is verdict  # and stays so
    for _ in range(6):
        drawn.compare(GOOD)
        assert drawn.verdict.kind == "keep_looking"
        play(drawn, "-")
    assert drawn.verdict.kind == "roll_back"
    play(alone, "-" * 3 + "+" + "-" * 8)  # nine patched calls since the last block
    assert alone.verdict.kind == "keep_looking"
    assert play(alone, "-").kind == "roll_back"


OUTCOMES = st.builds(
    CallOutcome,
    st.booleans(),
    *([st.none() | st.floats(0, 4) | st.just(math.nan)] * 3),
)


@given(st.lists(st.tuples(OUTCOMES, st.booleans()), max_size=60), st.integers(0, 60), st.sampled_from([0, 7, 450]))
def test_trial_it_goes_on_from_json_bit_for_bit(
    calls: list[tuple[CallOutcome, bool]], stop: int, successes: int
) -> None:
    whole = Trial.begin(baseline(successes, max(successes, 1)))
    parts = msgspec.convert(msgspec.to_builtins(whole), Trial)
    for place, (call, patched) in enumerate(calls):
        if place == stop:
            parts = msgspec.json.decode(msgspec.json.encode(parts), type=Trial)
        for trial in (whole, parts):
            if patched:
                trial.observe(call)
            else:
                trial.compare(call)
    assert msgspec.json.encode(parts) == msgspec.json.encode(whole)
    assert parts == whole
