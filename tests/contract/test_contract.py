"""Every plug-in this package ships keeps the contract, and the checks find those that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from coherence.core.config import MonitorConfig
from coherence.core.readings import Counters, Evidence, MetricInput
from coherence.core.registry import available, create_metric, create_rule, lookup
from coherence.policy.rules import builtin_rules
from coherence.providers import CallableState, HashingEmbedder, StaticState, Step, Transcript, TranscriptState
from coherence.testing import Check, TableEmbedder, checks_for

COUNTERS = Counters(calls=4, errors=1, tokens_in=100, tokens_out=10, cost_usd=0.1)


async def _goals() -> Sequence[str]:
    return ["goal"]


def _in_the_middle_of_a_run() -> TranscriptState:
    steps = (Step(role="user", content="task"), Step(role="assistant", content="a"), Step(role="tool", content="b"))
    state = TranscriptState(Transcript(id="r", steps=steps, memories=((0, "memory"),)))
    state.advance()
    state.advance()
    return state


def built_in(group: Any) -> list[str]:
    return [plugin.name for plugin in available(group) if plugin.origin == "coherence-sensor"]


STATES: dict[str, list[object]] = {
    "static": [StaticState(), StaticState(["goal"], ["context"], ["memory"], ["memory", "another"])],
    "callable": [CallableState(), CallableState(goals=_goals, context=lambda: ["context"])],
    "transcript": [TranscriptState([]), _in_the_middle_of_a_run()],
}
PLUGINS = [
    *(create_metric(name, StaticState(counters=COUNTERS)) for name in built_in("metrics")),
    *(create_metric(name, StaticState()) for name in ("error_rate", "cost", "token_usage")),
    *(lookup("embedders", name)() for name in ("minilm", "hashing")),
    *(state for states in STATES.values() for state in states),
    *(create_rule(name) for name in built_in("rules")),
]


@pytest.mark.parametrize("check", [check for plugin in PLUGINS for check in checks_for(plugin)], ids=str)
def test_a_built_in_keeps_the_contract(check: Check) -> None:
    check()


def test_contract_every_built_in_metric_and_provider_is_checked() -> None:
    checked = {getattr(plugin, "name", "") for plugin in PLUGINS}
    assert set(built_in("metrics")) | set(built_in("rules")) <= checked
    assert set(built_in("rules")) == {rule.name for rule in builtin_rules(MonitorConfig())}
    assert set(built_in("providers")) == STATES.keys()
    for name, states in STATES.items():
        assert all(isinstance(state, lookup("providers", name)) for state in states)


# The checks find what is wrong


class Good:
    """Half, whatever comes."""

    name = "sample"
    inverted = True

    def compute(self, data: MetricInput) -> Any:
        return 0.5


class GoodScalar:
    """Half."""

    name = "sample"
    inverted = True

    def compute(self) -> Any:
        return 0.5


def metric(compute: Callable[[MetricInput], Any], **members: Any) -> Any:
    doc = {"__doc__": "A metric for one test."}
    return type("Sample", (Good,), {**doc, "compute": lambda self, data: compute(data), **members})()


def run(plugin: Any, name: str) -> None:
    [check] = [check for check in checks_for(plugin) if str(check).endswith(f": {name}")]
    check()


def assert_fails_only(plugin: Any, name: str, message: str) -> None:
    """Assert that the named check reports the fault, and that no other check does."""
    failed = {}
    for check in checks_for(plugin):
        try:
            check()
        except AssertionError as error:
            failed[str(check).split(": ")[1]] = str(error)
    assert failed.keys() == {name}
    assert message in failed[name]


@pytest.mark.parametrize("thing", [42, "text", None, object()])
def test_checks_for_what_is_no_plugin_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match="is no metric, embedder, state provider or rule"):
        checks_for(thing)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"name": ""}, "name must be a non-empty str"),
        ({"inverted": "yes"}, "inverted must be True"),
        ({"needs": {"goals"}}, "needs may be"),
    ],
)
def test_checks_for_a_malformed_metric_is_found(members: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        run(metric(lambda data: 0.5, **members), "is well formed")


def test_checks_for_a_metric_without_docstring_is_found() -> None:
    class Bare:
        name = "sample"
        inverted = True

        def compute(self, data: MetricInput) -> float:
            return 0.5

    assert_fails_only(Bare(), "is well formed", "has no docstring")


@pytest.mark.parametrize("value", [1.01, -0.01, float("nan"), float("inf"), "much", [0.5]])
def test_checks_for_a_value_out_of_range_is_found(value: object) -> None:
    broken = metric(lambda data: value if len(data.goals) else None)
    with pytest.raises(AssertionError, match="is neither None nor in"):
        run(broken, "stays in range")


def test_checks_for_a_value_beside_the_range_by_rounding_only_is_let_pass() -> None:
    run(metric(lambda data: 1.0 + 1e-9), "stays in range")
    run(metric(lambda data: np.float32(1.0)), "stays in range")


def test_checks_for_a_metric_that_does_not_repeat_itself_is_found() -> None:
    values = iter(range(10_000))
    assert_fails_only(metric(lambda data: next(values) / 10_000), "repeats itself", "for the same input")


@pytest.mark.parametrize("kind", ["goals", "context", "memories"])
def test_checks_for_a_metric_that_changes_its_input_is_found(kind: str) -> None:
    def compute(data: MetricInput) -> float:
        matrix = getattr(data, kind)
        if matrix.flags.writeable:
            matrix[:] = 0
        return 0.5

    assert_fails_only(metric(compute), "leaves its input alone", f"changes {kind}")


def test_checks_for_reading_all_memories_undeclared_after_other_sources_or_in_explain_is_found() -> None:
    late = metric(lambda data: 0.5 if len(data.context) > 5 and len(data.all_memories) else None)
    assert_fails_only(late, "reads only what it declares", "reads all memories without declaring needs")

    explaining = metric(lambda data: 0.5, explain=lambda self, data: data.all_memories[:0].any() or None)
    assert_fails_only(explaining, "reads only what it declares", "reads all memories without declaring needs")


def test_checks_for_reading_all_memories_declared_passes() -> None:
    for check in checks_for(metric(lambda data: len(data.all_memories) / 1000, needs={"all_memories"})):
        check()


def test_checks_for_a_metric_that_hides_failed_sources_behind_a_wrong_value_is_found() -> None:
    def compute(data: MetricInput) -> float:
        try:
            return 0.5 if len(data.goals) else 0.0
        except Exception:
            return -1.0

    assert_fails_only(metric(compute), "is unknown without its sources", "-1.0 when every source failed")


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (Evidence("why", "context", (1000,)), "of 20"),
        (Evidence("why", "context", (-1,)), "of 20"),
        ("the third message", "not Evidence"),
    ],
)
def test_checks_for_evidence_that_points_at_nothing_is_found(evidence: object, message: str) -> None:
    broken = metric(lambda data: 0.5, explain=lambda self, data: evidence if len(data.context) == 20 else None)
    assert_fails_only(broken, "points at what exists", message)


def test_checks_for_a_scalar_out_of_range_is_found_plain_or_async() -> None:
    class Async(GoodScalar):
        """Awaited."""

        async def compute(self) -> float:
            return 2.0

    class Plain(GoodScalar):
        """Called."""

        def compute(self) -> float:
            return 2.0

    for scalar in (Async(), Plain()):
        assert_fails_only(scalar, "returns a share or none", "2.0 is neither None nor in [0, 1]")


@pytest.mark.parametrize("evidence", ["the third call", Evidence("why", "nowhere")])  # type: ignore[arg-type]
def test_checks_for_a_scalar_that_explains_itself_with_anything_else_is_found(evidence: object) -> None:
    class Talking(GoodScalar):
        """Half, and why."""

        def explain(self) -> object:
            return evidence

    assert_fails_only(Talking(), "explains with evidence", "not Evidence")


# Embedders


class Broken(HashingEmbedder):
    """Works, but for what a test changes."""

    def __init__(self) -> None:
        super().__init__(16)


Vector = npt.NDArray[np.float32]


@pytest.mark.parametrize(
    ("dimensions", "message"), [(16.0, "not an int"), (0, "dimensions is 0"), (None, "not an int")]
)
def test_checks_for_bad_dimensions_are_found(dimensions: Any, message: str) -> None:
    embedder = Broken()
    embedder.dimensions = dimensions
    with pytest.raises(AssertionError, match=message):
        run(embedder, "declares its dimension")


def test_checks_for_a_fingerprint_that_is_no_str_is_found() -> None:
    embedder = Broken()
    embedder.fingerprint = 7  # type: ignore[assignment]
    assert_fails_only(embedder, "declares its dimension", "fingerprint is 7, not a str")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda vector: vector[:-1], "shape (15,)"),
        (lambda vector: vector[None, :], "shape (1, 16)"),
        (lambda vector: vector * 0, "a zero vector"),
        (lambda vector: vector * np.nan, "NaN or infinity"),
        (lambda vector: None, "shape ()"),
    ],
)
def test_checks_for_an_unusable_vector_is_found(change: Callable[[Vector], Any], message: str) -> None:
    class Changed(Broken):
        def embed(self, text: str) -> Any:
            vector = super().embed(text)
            return change(vector) if text == "x" else vector  # "x" is one of the hostile texts only

    assert_fails_only(Changed(), "embeds hostile texts", message)


def test_checks_for_an_embedder_that_raises_on_a_hostile_text_is_found() -> None:
    with pytest.raises(KeyError):
        run(TableEmbedder({"plain words": [1.0, 0.0]}), "embeds hostile texts")


def test_checks_for_an_embedder_that_does_not_repeat_itself_is_found() -> None:
    class Noisy(Broken):
        calls = 0

        def embed(self, text: str) -> Vector:
            self.calls += 1
            return super().embed(text) + np.float32(self.calls * 1e-6)

    assert_fails_only(Noisy(), "embeds the same text alike", "two vectors for one text")


def test_checks_for_a_batch_in_another_order_is_found() -> None:
    class Reversed(Broken):
        def embed_batch(self, texts: Sequence[str]) -> Vector:
            return super().embed_batch(texts)[::-1]

    assert_fails_only(Reversed(), "embeds batches in order", "embed_batch and embed differ")


def test_checks_for_a_batch_of_the_wrong_size_is_found() -> None:
    class Short(Broken):
        def embed_batch(self, texts: Sequence[str]) -> Vector:
            return super().embed_batch(texts)[1:]

    assert_fails_only(Short(), "embeds batches in order", "shape (2, 16) for 3 texts")


def test_checks_for_an_async_embedder_is_waited_for() -> None:
    class Async(Broken):
        async def embed(self, text: str) -> Vector:  # type: ignore[override]
            return HashingEmbedder(16).embed(text)

        async def embed_batch(self, texts: Sequence[str]) -> Vector:  # type: ignore[override]
            return HashingEmbedder(16).embed_batch(texts)

    for check in checks_for(Async()):
        check()


# Providers


@pytest.mark.parametrize("source", ["goals", "context", "memories", "all_memories"])
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("one text", "returns str, not a list of str"),
        (b"bytes", "returns bytes, not a list of str"),
        (None, "returns NoneType, not a list of str"),
        (7, "returns int, not a list of str"),
        (["text", None], "returns a NoneType in its list"),
        ([["nested"]], "returns a list in its list"),
    ],
)
def test_checks_for_a_provider_that_returns_no_list_of_texts_is_found(
    source: str, returned: object, message: str
) -> None:
    broken = CallableState(**{source: lambda: returned})  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=message):
        run(broken, "returns lists of texts")
