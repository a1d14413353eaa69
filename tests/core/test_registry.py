from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coherence.core import registry
from coherence.core.errors import PluginError
from coherence.core.readings import Counters, MetricInput
from coherence.core.registry import (
    FunctionMetric,
    Plugin,
    available,
    create_metric,
    create_reader,
    is_scalar,
    lookup,
    metric,
    register,
    shipped,
    strangers,
    unregister,
)
from coherence.metrics import Cost, GoalDrift
from coherence.providers import StaticState
from coherence.testing import metric_input


@pytest.fixture(autouse=True)
def _registry_left_as_found() -> Iterator[None]:
    before = {group: dict(plugins) for group, plugins in registry._registered.items()}
    yield
    for group, plugins in before.items():
        registry._registered[group].clear()
        registry._registered[group].update(plugins)


class Steady:
    """Always one half."""

    name = "steady"
    inverted = True

    def compute(self, data: MetricInput) -> float | None:
        return 0.5


class Budget:
    """Reads the provider's counters."""

    name = "budget"
    inverted = True

    def __init__(self, provider: StaticState) -> None:
        self.provider = provider

    def compute(self) -> float | None:
        return self.provider.get_counters().cost_usd


def names(group: registry.Group = "metrics") -> list[str]:
    return [plugin.name for plugin in available(group)]


def only(name: str) -> Plugin:
    [found] = [plugin for plugin in available() if plugin.name == name]
    return found


def install(folder: Path, distribution: str, entry_points: str) -> None:
    """Put the metadata of an installed distribution into a folder, as pip would."""
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


# Registering


def test_plugin_a_registered_class_is_known_by_its_name_and_made_on_demand() -> None:
    assert register(Steady) is Steady
    assert lookup("metrics", "steady") is Steady
    assert isinstance(create_metric("steady"), Steady)
    assert only("steady") == Plugin("steady", f"registered in {__name__}", Steady)


def test_registry_an_unknown_group_is_refused() -> None:
    known = "metrics, embedders, providers, rules, detectors, extractors, readers"
    with pytest.raises(ValueError, match=f"group must be one of {known}, not 'metric'"):
        register(Steady, name="x", group="metric")  # type: ignore[call-overload]


def test_a_function_becomes_a_metric_and_stays_callable() -> None:
    @metric("messages", inverted=False)
    def messages(data: MetricInput) -> float:
        """Share of ten messages."""
        return len(data.context) / 10

    data = metric_input(context=[[1, 0], [0, 1]])
    assert messages(data) == 0.2  # 2 messages of 10
    made = create_metric("messages")
    assert made is messages
    assert isinstance(made, FunctionMetric)
    assert made.compute(data) == 0.2
    assert (made.name, made.inverted, made.__doc__) == ("messages", False, "Share of ten messages.")
    assert only("messages").origin == f"registered in {__name__}"


def test_a_function_without_arguments_becomes_a_scalar_metric() -> None:
    @metric("load", inverted=True)
    def load() -> float:
        return 0.25

    assert is_scalar(load)
    assert create_metric("load").compute() == 0.25  # type: ignore[call-arg]  # it is a scalar


# Taken names


def define(value: float, *, replace: bool = False) -> Any:
    """Stand for a notebook cell: every call defines the same function anew."""

    @metric("cell", inverted=True, replace=replace)
    def cell(data: MetricInput) -> float:
        return value

    return cell


def test_a_notebook_cell_that_is_run_again_replaces_its_own_metric() -> None:
    define(0.1)
    second = define(0.2)
    assert lookup("metrics", "cell") is second


def test_registry_another_plugin_of_the_same_name_is_refused() -> None:
    register(Steady)
    with pytest.raises(PluginError, match=f"metric 'steady' is taken .registered in {re.escape(__name__)}."):
        register(Budget, name="steady")
    assert lookup("metrics", "steady") is Steady


def test_plugin_a_built_in_is_hidden_only_on_purpose_and_comes_back() -> None:
    with pytest.raises(PluginError, match=r"metric 'goal_drift' is taken \(coherence-sensor\); pass replace=True"):
        register(Steady, name="goal_drift")
    register(Steady, name="goal_drift", replace=True)
    assert only("goal_drift").target is Steady
    unregister("goal_drift")
    assert lookup("metrics", "goal_drift") is GoalDrift


# Broken registrations


def broken(**members: Any) -> Any:
    """Return an instance of a metric class with other members; ``None`` removes one."""
    own = {"name": "b", "inverted": True, "compute": lambda self, data: 0.5, **members}
    return type("Broken", (), {key: value for key, value in own.items() if value is not None})()


@pytest.mark.parametrize(
    ("plugin", "error", "message"),
    [
        (broken(name=None), TypeError, "name must be a non-empty str, not None"),
        (broken(name=""), TypeError, "name must be a non-empty str, not ''"),
        (broken(inverted=None), TypeError, "metric 'b': inverted must be True .* or False, not None"),
        (broken(inverted=1), TypeError, "metric 'b': inverted must be True .* or False, not 1"),
        (broken(compute=None), TypeError, "metric 'b' has no compute method"),
        (broken(needs="all_memories"), ValueError, "metric 'b': needs may be .* or absent, not 'all_memories'"),
        (broken(needs={"goals"}), ValueError, "metric 'b': needs may be .* or absent, not {'goals'}"),
        (broken(needs=3), ValueError, "metric 'b': needs may be .* or absent, not 3"),
        (type(broken(name=None)), TypeError, "has no name: give name="),
        (type(broken(compute=None)), TypeError, "has no compute method"),
        (lambda: Steady(), TypeError, "has no name: give name="),
    ],
)
def test_available_a_broken_registration_says_what_is_missing(
    plugin: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        register(plugin)
    assert "b" not in names()


def test_create_metric_a_metric_that_cannot_be_made_by_name_says_why() -> None:
    class NeedsMore(Steady):
        def __init__(self, threshold: float) -> None:
            self.threshold = threshold

    register(NeedsMore, name="needs_more")
    with pytest.raises(PluginError, match=r"metric 'needs_more' cannot be made by name: .*'threshold'"):
        create_metric("needs_more")


def test_create_metric_a_factory_that_makes_no_metric_is_reported() -> None:
    register(lambda: 42, name="answer")
    with pytest.raises(PluginError, match="metric 'answer' cannot be made by name: TypeError: metric 42: name must be"):
        create_metric("answer")


# Scalars


class TakesOptional:
    def compute(self, data: MetricInput | None = None) -> float:
        return 0.5


class StaticInput:
    @staticmethod
    def compute(data: MetricInput) -> float:
        return 0.5


class TakesAny:
    def compute(*args: object) -> float:  # also itself
        return 0.5


class Wraps:
    """Holds its compute as an instance attribute, as a wrapper would."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        self.compute = compute


@pytest.mark.parametrize(
    ("plugin", "scalar"),
    [
        (Steady, False),
        (Steady(), False),
        (Budget, True),
        (Budget(StaticState()), True),
        (TakesOptional, False),
        (StaticInput, False),
        (StaticInput(), False),
        (Wraps(lambda: 0.5), True),
        (Wraps(lambda data: 0.5), False),
        (Wraps(len), False),
        (TakesAny, False),
        (TakesAny(), False),
    ],
)
def test_is_scalar_a_metric_is_a_scalar_if_its_compute_takes_no_input(plugin: object, scalar: bool) -> None:
    assert is_scalar(plugin) is scalar


def test_create_metric_a_scalar_class_made_by_name_is_given_the_provider() -> None:
    register(Budget)
    made = create_metric("budget", StaticState(counters=Counters(cost_usd=0.3)))
    assert isinstance(made, Budget)
    assert made.compute() == 0.3


# Entry points


def test_create_metric_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PluginError, match=r"no metric is called 'gaol_drift'; known: .*cost.*goal_drift"):
        lookup("metrics", "gaol_drift")
    with pytest.raises(PluginError, match="no embedder is called 'x'; known: hashing, minilm, openai"):
        lookup("embedders", "x")
    with pytest.raises(PluginError, match="no metric is called 'gaol_drift'"):
        create_metric("gaol_drift")


def test_plugin_a_broken_entry_point_is_listed_and_says_what_is_wrong_when_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "some-plugin", "[coherence.metrics]\nbroken_one = no_such_module_anywhere:Thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    plugin = only("broken_one")
    assert plugin.origin == "some-plugin"
    message = (
        "plug-in 'broken_one' of some-plugin fails to load from 'no_such_module_anywhere:Thing': "
        "ModuleNotFoundError: No module named 'no_such_module_anywhere'"
    )
    with pytest.raises(PluginError, match=re.escape(message)):
        plugin.load()
    with pytest.raises(PluginError, match=re.escape(message)):
        lookup("metrics", "broken_one")
    assert lookup("metrics", "goal_drift") is GoalDrift  # the others are not affected


def test_plugin_of_two_packages_with_one_name_the_listed_one_is_the_one_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for distribution, target in (("first", "coherence.metrics:Cost"), ("second", "coherence.metrics:ErrorRate")):
        install(tmp_path / distribution, distribution, f"[coherence.metrics]\nshared = {target}\n")
    monkeypatch.syspath_prepend(tmp_path / "second")
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert only("shared").origin == "first"
    assert only("shared").load() is lookup("metrics", "shared") is Cost


# Readers


class Reads:
    """No files at all."""

    def matches(self, documents: object) -> bool:
        return False

    def read(self, source: object) -> list[object]:
        return []


def test_create_reader_makes_a_class_and_takes_an_instance() -> None:
    for given in (Reads, Reads()):
        register(given, name="reads", group="readers")
        try:
            assert isinstance(create_reader("reads"), Reads)
            assert strangers("readers") == ["reads"]
        finally:
            unregister("reads", "readers")
    assert strangers("readers") == []


def test_register_what_is_no_reader_is_refused() -> None:
    with pytest.raises(TypeError, match="has no method matches"):
        register(object(), name="nothing", group="readers")
    with pytest.raises(PluginError, match="no reader is called 'nothing'; known: anthropic, claude-code"):
        create_reader("nothing")


def test_shipped_readers_are_asked_in_the_order_of_the_file_and_chats_of_all_kinds_last() -> None:
    assert shipped("readers")[0] == "export"
    assert shipped("readers")[-2:] == ["anthropic", "openai"]
