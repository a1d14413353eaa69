"""The sensor's constructor, history, and the shape of its readings."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable

import pytest

from coherence import CoherenceSensor, EmbeddingCache, Reading, Tick
from coherence.core.readings import Evidence
from coherence.metrics import GoalDrift, SemanticDiffusion
from coherence.providers import CallableState, HashingEmbedder, StaticState
from coherence.testing import CountingEmbedder


def sensor(**options: object) -> CoherenceSensor:
    state = StaticState(goals=["fix the login"], context=["reading login.py", "the test fails"], memories=["login"])
    return CoherenceSensor(state, **{"embedder": HashingEmbedder(), **options})  # type: ignore[arg-type]


class NoGetters:
    pass


class Scalar:
    """A scalar."""

    name = "scalar"
    inverted = False

    def compute(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": {"gaol_drift": 1}}, ValueError, "'gaol_drift' names no metric"),
        ({"weights": {"goal_drift": -1}}, ValueError, "0 or more"),
        ({"thresholds": (0.1, 0.2, 0.3)}, ValueError, "must fall from green to orange"),
        ({"missing": "ignore"}, ValueError, "missing must be"),
        ({"history_size": -1}, ValueError, "history_size"),
        ({"history_size": 1.5}, TypeError, "history_size"),
        ({"timeout_s": 0}, ValueError, "timeout_s"),
        ({"timeout_s": float("nan")}, ValueError, "timeout_s"),
        ({"timeout_s": "2"}, TypeError, "timeout_s"),
        ({"metrics": [GoalDrift]}, TypeError, r"pass an instance, GoalDrift\(\)"),
        ({"metrics": [GoalDrift(), GoalDrift()]}, ValueError, "two metrics are called 'goal_drift'"),
        ({"metrics": [Scalar()]}, TypeError, "pass it in scalar_metrics"),
        ({"scalar_metrics": [GoalDrift()]}, TypeError, "pass it in metrics"),
        ({"metrics": "goal_drift"}, TypeError, "must be a list"),
        ({"metrics": ["gaol_drift"]}, ValueError, "no metric is called 'gaol_drift'; known: "),
        ({"embedder": object()}, TypeError, "embed and embed_batch"),
        ({"embedder": 0}, TypeError, "embed and embed_batch"),
        ({"embedder": HashingEmbedder}, TypeError, r"pass an instance, HashingEmbedder\(...\)"),
        ({"metrics": GoalDrift()}, TypeError, "metrics must be a list"),
        ({"scalar_metrics": None}, TypeError, "scalar_metrics must be a list"),
        ({"weights": [("goal_drift", 1)]}, TypeError, "weights must be a mapping"),
        ({"weights": {"goal_drift": 10**400}}, ValueError, r"at most 1e\+09"),
        ({"thresholds": 5}, TypeError, "thresholds must be three numbers or a mapping"),
        ({"thresholds": {1: 2, "x": 3}}, ValueError, "unknown band 1"),
        ({"on_reading": 3}, TypeError, "on_reading must be callable"),
    ],
)
def test_coherence_sensor_a_bad_argument_is_refused_by_name(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sensor(**options)


def test_coherence_sensor_a_provider_without_a_getter_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="provider must have get_goals, NoGetters does not"):
        CoherenceSensor(NoGetters())  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"provider: pass an instance, StaticState\(...\)"):
        CoherenceSensor(StaticState)  # type: ignore[arg-type]  # wrong on purpose


def test_measure_sync_ticks_without_a_number_go_on_from_the_highest() -> None:
    probe = sensor()
    assert [probe.measure_sync(tick).tick_seq for tick in (None, Tick(7), None, Tick(3), None)] == [1, 7, 8, 3, 9]


def test_history_is_newest_first_by_tick_and_zero_or_less_is_nothing() -> None:
    probe = sensor(history_size=3)
    for seq in (1, 2, 5, 4, 3):
        probe.measure_sync(Tick(seq))
    assert [reading.tick_seq for reading in probe.history()] == [5, 4, 3]
    assert [reading.tick_seq for reading in probe.history(2)] == [5, 4]
    assert probe.history(0) == probe.history(-1) == []
    assert [reading.tick_seq for reading in probe.since(3)] == [4, 5]
    assert probe.since(0).missed == 2
    assert probe.latest is probe.history(1)[0]


def test_measure_sync_a_reading_cannot_be_changed() -> None:
    reading = sensor().measure_sync()
    with pytest.raises(AttributeError):
        reading.coherence_index = 0.0  # type: ignore[misc]  # wrong on purpose
    changes: list[Callable[[], object]] = [
        lambda: reading.metrics.__setitem__("goal_drift", 0.0),
        lambda: reading.metrics.update(goal_drift=0.0),
        lambda: reading.losses.clear(),
        lambda: reading.unknown.pop("x", None),
        lambda: reading.evidence.setdefault("x", Evidence("", "goals")),
        lambda: reading.metrics.__ior__({"goal_drift": 0.0}),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="immutable"):
            change()
    assert isinstance(hash(reading), int)


def test_measure_sync_a_reading_survives_pickling_copying_and_json() -> None:
    reading = sensor().measure_sync()
    assert pickle.loads(pickle.dumps(reading)) == reading == copy.deepcopy(reading)
    plain = json.loads(json.dumps(reading.to_dict()))
    assert plain["coherence_index"] == reading.coherence_index
    assert plain["band"] == reading.band
    assert plain["metrics"] == dict(reading.metrics)


def test_measure_sync_a_reading_explains_itself_in_words() -> None:
    reading = sensor(scalar_metrics=[Scalar()], weights={"goal_drift": 1, "semantic_diffusion": 1}).measure_sync()
    text = reading.explain()
    assert f"index {reading.coherence_index:.2f} ({reading.band}), 100% of the weight is known" in text
    assert "is farthest from every goal" in text
    assert "scalar 0.50 is reported only (no weight)" in text
    assert str(reading).startswith("tick 1  ")
    worst = reading.worst()
    assert worst is not None and reading.losses[worst] == max(reading.losses.values())


def test_coherence_sensor_all_memories_are_read_only_for_a_metric_that_needs_them() -> None:
    asked: list[str] = []

    class Needy:
        """Reads everything."""

        name = "needy"
        inverted = False
        needs = frozenset({"all_memories"})

        def compute(self, data: object) -> float:
            return len(data.all_memories) / 10  # type: ignore[attr-defined]

    class Careless(Needy):
        """Forgets to say so."""

        name = "careless"
        needs: frozenset[str] = frozenset()

    def all_memories() -> list[str]:
        asked.append("all")
        return ["m1", "m2"]

    state = CallableState(goals=lambda: ["g"], all_memories=all_memories)
    CoherenceSensor(state, embedder=HashingEmbedder()).measure_sync()
    assert asked == []
    reading = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[Needy()]).measure_sync()
    assert (asked, reading.metrics["needy"]) == (["all"], 0.2)
    reading = CoherenceSensor(state, embedder=HashingEmbedder(), metrics=[Careless()]).measure_sync()
    assert reading.metrics["careless"] is None
    assert 'declares needs = {"all_memories"}' in reading.errors[0].message


def test_metrics_may_be_given_by_name_and_scalars_read_the_provider() -> None:
    state = StaticState(goals=["g"], context=["c"])
    reading = CoherenceSensor(
        state, embedder=HashingEmbedder(), metrics=["goal_drift"], scalar_metrics=["error_rate"]
    ).measure_sync()
    assert list(reading.metrics) == ["goal_drift", "error_rate"]
    assert reading.unknown["error_rate"] == "the metric gave no value"


def test_coherence_sensor_without_metrics_the_provider_is_not_asked() -> None:
    state = CallableState(goals=lambda: pytest.fail("asked"))
    reading = CoherenceSensor(state, metrics=[], scalar_metrics=[Scalar()], index="classic").measure_sync()
    assert (reading.coherence_index, reading.coverage) == (0.5, 1.0)


def test_the_texts_and_the_tick_reach_the_metric() -> None:
    seen: list[tuple[object, ...]] = []

    class Spy:
        """Looks."""

        name = "spy"
        inverted = False

        def compute(self, data: object) -> float:
            seen.append((data.goals_texts, data.context_texts, data.goals.shape, data.tick))  # type: ignore[attr-defined]
            with pytest.raises(ValueError, match="read-only"):
                data.context[0, 0] = 1  # type: ignore[attr-defined]
            return 1.0

    state = StaticState(goals=["g"], context=["c", "  ", "c"])
    reading = CoherenceSensor(state, embedder=HashingEmbedder(16), metrics=[Spy()]).measure_sync(Tick(4, 9.0, "step"))
    assert seen == [(("g",), ("c", "c"), (1, 16), Tick(4, 9.0, "step"))]  # the blank message is passed over
    assert reading.errors == ()


def test_coherence_sensor_disabled_by_the_environment_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    state = CallableState(goals=lambda: pytest.fail("asked"))
    reading = CoherenceSensor(state).measure_sync()
    assert (reading.coverage, reading.errors[0].kind) == (0.0, "disabled")


def test_measure_sync_a_shared_cache_embeds_a_text_once_for_all_sensors() -> None:
    counting = CountingEmbedder(HashingEmbedder())
    cache = EmbeddingCache(counting)
    for _ in range(3):
        sensor(embedder=cache).measure_sync()
    assert sorted(counting.texts) == sorted(set(counting.texts))
    assert len(counting.texts) == cache.embedded == 4


def test_measure_and_measure_sync_give_the_same() -> None:
    def plain(reading: Reading) -> dict[str, object]:
        return {**reading.to_dict(), "ts": 0}

    assert plain(sensor().measure_sync()) == plain(asyncio.run(sensor().measure()))


def test_coherence_sensor_the_same_texts_give_the_same_bits_after_a_restart() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    texts = [f"{a} {b}" for a in words for b in words]

    def run(start: int) -> Reading:
        state = StaticState(goals=["alpha beta", "kappa"], memories=["gamma"])
        probe = CoherenceSensor(
            state, embedder=HashingEmbedder(), metrics=[GoalDrift(), SemanticDiffusion()], index="classic"
        )
        for position in range(start, len(texts)):
            state.context = texts[max(0, position - 20) : position]
            probe.measure_sync(Tick(position, ts=0.0))
        assert probe.latest is not None
        return probe.latest

    # one sensor saw the window slide from the beginning, the other starts at the last tick
    assert run(0) == run(len(texts) - 1)
