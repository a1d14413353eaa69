"""A patch that looks worse before unpatched calls have told whether the baseline still holds is held."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coherence.guard.baseline import Baseline, CallOutcome, Recent, summary
from coherence.guard.classic import Metrics
from coherence.guard.degradation import DecayWatch
from coherence.guard.patch_events import Policy
from coherence.guard.patch_state import OnTrial, Standing
from coherence.guard.patches import Patching
from coherence.guard.trigger import Override
from coherence.guard.verdict import Trial
from guard.helpers import Boom, Both, Memory, failing, kinds, patched


def on_trial(successes: int, calls: int, *, both: bool = True, policy: Policy = "sequential") -> OnTrial:
    trial = Trial.begin(Baseline(calls, successes))
    return OnTrial(1, {}, {}, policy, 0.2, 10, both, "", trial, Metrics())


def play(trial: OnTrial, pattern: str, *, patched: bool) -> str:
    for mark in pattern:
        trial.observe(CallOutcome(mark == "+"), patched)
    return trial.verdict().kind


@pytest.mark.parametrize(
    ("successes", "unpatched", "ends"),
    [
        (450, "+++++", "roll_back"),  # 0.55 of 10 calls at 0.9, rounded
        (450, "-+----++++", "roll_back"),
        (450, "--", "keep_looking"),  # (51 / 501)**2 = 0.01
        (450, "++++------", "keep_looking"),
        (300, "+++", "roll_back"),
        (300, "---+----++", "roll_back"),
        (300, "-----", "keep_looking"),  # (201 / 501)**5 = 0.010
        (0, "+", "roll_back"),
        (0, "---------+", "roll_back"),
    ],
)
def test_calls_that_are_as_before_let_the_verdict_stand(successes: int, unpatched: str, ends: str) -> None:
    trial = on_trial(successes, 500 if successes else 5)
    assert play(trial, "-" * 10, patched=True) == "keep_looking"
    assert trial.held
    assert not trial.serves("serving", "any call")
    assert play(trial, unpatched[:-1], patched=False) == "keep_looking"
    assert trial.held
    assert play(trial, unpatched[-1], patched=False) == ends or ends == "keep_looking"
    if ends == "keep_looking":
        assert (trial.held, trial.verdict().kind, trial.vouchers) == (False, "keep_looking", None)


def test_what_the_baseline_alone_has_found_is_void_when_it_does_not_hold() -> None:
    trial = on_trial(450, 500)
    play(trial, "--+-", patched=True)
    play(trial, "------", patched=False)
    assert (trial.trial.success.harm, trial.trial.run, trial.trial.later_run) == (1.0, 0, None)
    assert play(trial, "-" * 9, patched=True) == "keep_looking"  # nothing to compare with
    play(trial, "+" * 9, patched=False)
    play(trial, "-" * 9, patched=True)
    assert play(trial, "+" * 9, patched=False) == "roll_back"


def test_the_classic_rules_hold_nothing() -> None:
    assert play(on_trial(450, 500, policy="classic"), "-" * 10, patched=True) == "roll_back"


def test_hold_a_cure_is_promoted_while_the_others_still_fail() -> None:
    trial = on_trial(450, 500)
    play(trial, "+++++", patched=True)
    calls = 0
    while trial.verdict().kind == "keep_looking":
        play(trial, "----", patched=False)
        play(trial, "+", patched=True)
        calls += 1
    verdict = trial.verdict()
    assert (verdict.kind, verdict.metric) == ("promote", "success")
    assert calls <= 10
    same = on_trial(450, 500)
    for _ in range(10):
        play(same, "+-+-", patched=False)
        play(same, "+-"[_ % 2], patched=True)
    assert same.verdict().kind == "keep_looking"


def test_hold_a_cure_that_takes_longer_is_not_promoted_for_it() -> None:
    calls = [CallOutcome(number % 10 != 9, 1.0 + number / 500) for number in range(500)]
    trial = OnTrial(1, {}, {}, "sequential", 0.2, 10, True, "", Trial.begin(summary(calls)), Metrics())
    for number in range(40):
        for _ in range(4):
            trial.observe(CallOutcome(False, 1.0 + number / 40), False)
        trial.observe(CallOutcome(True, 3.0), True)
        assert trial.verdict().kind != "promote"
    assert trial.trial.success.gain > 20
    assert trial.verdict().metric == "latency"


def test_hold_metrics_that_get_worse_at_once_are_told_one_after_the_other() -> None:
    baseline = summary([CallOutcome(True, 1.0, 1.0)] * 400)
    standing = Standing(DecayWatch.begin(baseline), number=1, patch={}, backup={})
    while len(standing.alerts) < 2:
        standing.observe(CallOutcome(True, 9.0, 9.0))
    assert [alert.metric for alert in standing.alerts] == ["latency", "cost"]
    for _ in range(3):  # nobody tells it: it is not kept twice
        for _ in range(200):
            standing.observe(CallOutcome(True, 1.0, 1.0))
        for _ in range(50):
            standing.observe(CallOutcome(True, 9.0, 9.0))
    assert [alert.metric for alert in standing.alerts] == ["latency", "cost"]
    patching, recent = Patching(standing=standing), Recent()
    told = []
    while (step := patching.due("me", 0.0, returns=False)) is not None:
        assert step.kind == "decayed"
        told.append(step.metric)
        patching.observe(step, 0.0, recent, len(told))
    assert told == ["latency", "cost"]


@pytest.mark.parametrize("both", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_hold_an_outage_that_goes_on_when_a_patch_is_accepted_is_not_the_patch(tmp_path: Path, both: bool) -> None:
    memory: Any = Both() if both else Memory()
    up = [True]
    agent = failing(lambda level: 0.98 if up[0] else 0.0, memory)
    with patched(tmp_path / "guard.db", memory, thresholds={"a": Override(failures=20)}) as guard:
        for number in range(1_800):
            up[0] = not 200 <= number < 300
            with suppress(Boom):
                guard.run(agent, agent="a")
        assert guard.status("a").patch == {"level": 2}
        assert "confirmed" in kinds(guard.history("a", 1000))
