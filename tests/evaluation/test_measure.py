"""Metrics as systems: the same as a live agent's, causal, and nothing embedded that nobody compares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache as kept
from pathlib import Path

import msgspec
import pytest

from coherence.core.config import MonitorConfig
from coherence.core.readings import FrozenDict, MetricInput
from coherence.core.registry import available, metric, register, unregister
from coherence.evaluation.errors import EvaluationError
from coherence.evaluation.measure import check_name, default_names, embeds, measure, risks
from coherence.evaluation.runs import LabelledRun, read_labelled
from coherence.evaluation.systems import NOTHING
from coherence.providers.hashing import HashingEmbedder
from coherence.providers.transcript import Step
from coherence.report.score import score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from evaluation.builders import run

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
RUNS = read_labelled(sorted(DATA.glob("*.gz")))


@kept
def words() -> list[str]:
    """Return every metric that is registered and needs no embedder, whichever there are by now, and a vital."""
    return [plugin.name for plugin in available("metrics") if not embeds([plugin.name])] + ["repetition"]


def cut(whole: LabelledRun, end: int) -> LabelledRun:
    short = msgspec.structs.replace(whole.transcript, steps=whole.transcript.steps[:end])
    return msgspec.structs.replace(whole, transcript=short)


def cache() -> EmbeddingCache:
    return EmbeddingCache(HashingEmbedder(32))


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(run, id=run.id, marks=pytest.mark.torture if at % 3 else pytest.mark.slow)
        for at, run in enumerate(RUNS)
    ],
)
def test_measure_a_step_is_scored_by_what_came_before_it(whole: LabelledRun) -> None:
    names = [*words(), "index", "pressure", "goal_drift", "drift"]
    full = {system.name: system.step_scores[whole.id] for system in measure(names, [whole], cache=cache())}
    for end in (1, whole.length // 3, whole.length // 2, whole.length - 1):
        for system in measure(names, [cut(whole, end)], cache=cache()):
            scores = full[system.name]
            assert scores is not None
            assert system.step_scores[whole.id] == scores[:end], system.name


def test_risks_a_risk_is_high_where_a_value_is_bad() -> None:
    scored = score_transcript(RUNS[0].transcript, embedder=HashingEmbedder(32))
    own = [step.role == "assistant" for step in RUNS[0].transcript.steps]
    assert own[-1]
    last = scored.readings[-1]
    drift, coherent = last.metrics["goal_drift"], last.metrics["goal_coherence"]
    assert drift is not None and coherent is not None
    assert risks(scored, "goal_drift")[-1] == drift
    assert risks(scored, "goal_coherence")[-1] == 1 - coherent
    assert risks(scored, "index")[-1] == last.risk
    assert risks(scored, "index")[0] is None  # nothing is known yet
    pressures = [appraisal.pressure for appraisal in scored.appraisals]
    assert risks(scored, "pressure") == [pressure if it else None for pressure, it in zip(pressures, own, strict=True)]
    assert risks(scored, "memory_retention") == [None] * len(scored.readings)  # there are no memories


def test_measure_a_metric_asked_for_does_not_change_the_index() -> None:
    (alone,) = measure(["index"], RUNS[:2], cache=cache())
    among = measure(["index", *words(), "goal_drift"], RUNS[:2], cache=cache())[0]
    assert among == alone


def test_measure_the_settings_count() -> None:
    weights: FrozenDict[str, float] = FrozenDict({"goal_drift": 1.0, "error_rate": 0.0})
    config = MonitorConfig(weights=weights, metrics=("error_rate",))
    index, drift = measure(["index", "goal_drift"], RUNS[:2], cache=cache(), config=config)
    for id, scores in drift.step_scores.items():
        assert scores is not None
        assert index.step_scores[id] == [None if score is None else pytest.approx(score) for score in scores]


@pytest.fixture
def foreign() -> Iterator[None]:
    class Careful:
        name = "careful"
        inverted = False
        fitted_on = ("t1", "t2")

        def __init__(self, provider: object) -> None:
            pass

        def compute(self) -> float:
            return 0.25

    @metric("counting", inverted=True)
    def counting(data: MetricInput) -> float:
        """Count."""
        return min(len(data.context_texts) / 100, 1.0)

    register(Careful)
    yield
    unregister("careful")
    unregister("counting")


@pytest.mark.usefixtures("foreign")
def test_a_plug_ins_metric_is_scored_and_says_what_it_was_fitted_on() -> None:
    careful, counting = measure(["careful", "counting"], RUNS[:1], cache=cache())
    assert set(careful.step_scores[RUNS[0].id] or ()) == {0.75, None}  # a metric where high is good; not an own step
    assert (careful.fitted_on, counting.fitted_on) == (("t1", "t2"), NOTHING)
    assert embeds(["counting"]) and not embeds(["careful"])


def test_check_name_names_are_checked() -> None:
    for name in (*default_names(), *words(), "index", "pressure", "drift"):
        check_name(name)
    with pytest.raises(EvaluationError, match=r"no metric is called 'nope'; known: .*besides: index, pressure, unc"):
        check_name("nope")


def test_huge_texts_and_a_run_of_one_step_are_scored() -> None:
    texts = ("a" * 1_000_000, "\ud800\x00" * 10_000, "pay " * 250_000, "")
    steps = tuple(Step(role="tool", content=text, tool_name="read") for text in texts)
    whole = run("huge")
    huge = msgspec.structs.replace(whole, transcript=msgspec.structs.replace(whole.transcript, steps=steps))
    (system,) = measure(["repetition"], [huge], cache=None)
    scores = system.step_scores["huge"]
    assert scores is not None and len(scores) == 4
    (one,) = measure(["repetition"], [cut(huge, 1)], cache=None)
    assert one.step_scores["huge"] == [None]
