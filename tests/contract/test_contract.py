"""Every plug-in this package ships keeps the contract, and the checks find those that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from coherence.core.config import MonitorConfig
from coherence.core.errors import TranscriptError
from coherence.core.readings import Counters, Evidence, MetricInput
from coherence.core.registry import available, create_metric, create_reader, create_rule, lookup
from coherence.metrics import (
    ContextExhaustion,
    Drift,
    GoalCoherence,
    RecentErrorRate,
    Repetition,
    Uncertainty,
    WordedUncertainty,
)
from coherence.policy.rules import builtin_rules
from coherence.providers import CallableState, HashingEmbedder, StaticState, Step, Transcript, TranscriptState
from coherence.providers.readers.source import Document, Source
from coherence.state.reducer import AgentState
from coherence.testing import Check, TableEmbedder, checks_for, sample_states

COUNTERS = Counters(calls=4, errors=1, tokens_in=100, tokens_out=10, cost_usd=0.1)


async def _goals() -> Sequence[str]:
    return ["goal"]


def _in_the_middle_of_a_run() -> TranscriptState:
    steps = (Step(role="user", content="task"), Step(role="assistant", content="a"), Step(role="tool", content="b"))
    state = TranscriptState(Transcript(id="r", steps=steps, memories=((0, "memory"),)))
    state.advance()
    state.advance()
    return state


@cache
def built_in(group: Any) -> list[str]:
    return [plugin.name for plugin in available(group) if plugin.origin == "coherence-sensor"]


STATES: dict[str, list[object]] = {
    "static": [StaticState(), StaticState(["goal"], ["context"], ["memory"], ["memory", "another"])],
    "callable": [CallableState(), CallableState(goals=_goals, context=lambda: ["context"])],
    "transcript": [TranscriptState([]), _in_the_middle_of_a_run()],
}
FAILING = dict(sample_states())["failing"]
PLUGINS = [
    *(create_metric(name, StaticState(counters=COUNTERS)) for name in built_in("metrics")),
    *(create_metric(name, StaticState()) for name in ("error_rate", "cost", "token_usage")),
    *(create_metric(name, FAILING) for name in built_in("metrics")),
    *(vital(FAILING) for vital in (Drift, RecentErrorRate, Repetition, Uncertainty, WordedUncertainty)),
    ContextExhaustion(AgentState(MonitorConfig(context_tokens=100))),
    GoalCoherence(),
    *(lookup("embedders", name)() for name in ("minilm", "hashing")),
    *(state for states in STATES.values() for state in states),
    *(create_rule(name) for name in built_in("rules")),
    *(create_reader(name) for name in built_in("readers")),
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
    with pytest.raises(TypeError, match="is no metric, embedder, state provider, rule or reader"):
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


@pytest.mark.parametrize("value", [1.01, -0.01, float("nan"), float("inf"), "much", [0.5]])
def test_checks_for_a_value_out_of_range_is_found(value: object) -> None:
    broken = metric(lambda data: value if len(data.goals) else None)
    with pytest.raises(AssertionError, match="is neither None nor in"):
        run(broken, "stays in range")


def test_checks_for_what_is_allowed_passes() -> None:
    run(metric(lambda data: 1.0 + 1e-9), "stays in range")  # beside the range by rounding only
    run(metric(lambda data: np.float32(1.0)), "stays in range")
    for check in checks_for(metric(lambda data: len(data.all_memories) / 1000, needs={"all_memories"})):
        check()


def _bare() -> object:
    return type("Bare", (), {"name": "sample", "inverted": True, "compute": lambda self, data: 0.5})()


def _counting() -> Any:
    values = iter(range(10_000))
    return metric(lambda data: next(values) / 10_000)


def _changing(data: MetricInput) -> float:
    if data.context.flags.writeable:
        data.context[:] = 0
    return 0.5


def _hiding(data: MetricInput) -> float:
    try:
        return 0.5 if len(data.goals) else 0.0
    except Exception:
        return -1.0


def _explaining(evidence: object) -> Any:
    return metric(lambda data: 0.5, explain=lambda self, data: evidence if len(data.context) == 20 else None)


def scalar(**members: Any) -> Any:
    doc = {"__doc__": "A scalar metric for one test.", "name": "sample", "inverted": True}
    return type("Scalar", (), {**doc, "compute": lambda self: 0.5, **members})()


async def _two(self: object) -> float:
    return 2.0


@pytest.mark.parametrize(
    ("broken", "name", "message"),
    [
        (_bare(), "is well formed", "has no docstring"),
        (_counting(), "repeats itself", "for the same input"),
        (metric(_changing), "leaves its input alone", "changes context"),
        (
            metric(lambda data: 0.5 if len(data.context) > 5 and len(data.all_memories) else None),
            "reads only what it declares",
            "reads all memories without declaring needs",
        ),
        (
            metric(lambda data: 0.5, explain=lambda self, data: data.all_memories[:0].any() or None),
            "reads only what it declares",
            "reads all memories without declaring needs",
        ),
        (metric(_hiding), "is unknown without its sources", "-1.0 when every source failed"),
        *((_explaining(Evidence("why", "context", (at,))), "points at what exists", "of 20") for at in (1000, -1)),
        (_explaining("the third message"), "points at what exists", "not Evidence"),
        (scalar(compute=lambda self: 2.0), "returns a share or none", "2.0 is neither None nor in [0, 1]"),
        (scalar(compute=_two), "returns a share or none", "2.0 is neither None nor in [0, 1]"),
        (scalar(explain=lambda self: "the third call"), "explains with evidence", "not Evidence"),
        (
            scalar(explain=lambda self: Evidence("why", "nowhere")),  # type: ignore[arg-type]
            "explains with evidence",
            "not Evidence",
        ),
    ],
)
def test_checks_for_a_metric_that_breaks_a_promise_is_found(broken: object, name: str, message: str) -> None:
    assert_fails_only(broken, name, message)


# Embedders


class Broken(HashingEmbedder):
    """Works, but for what a test changes."""

    def __init__(self) -> None:
        super().__init__(16)


Vector = npt.NDArray[np.float32]


class Noisy(Broken):
    calls = 0

    def embed(self, text: str) -> Vector:
        self.calls += 1
        return super().embed(text) + np.float32(self.calls * 1e-6)


def embedder(**members: Any) -> object:
    made = Broken()
    for name, value in members.items():
        setattr(made, name, value)
    return made


def hostile(change: Callable[[Vector], Any]) -> object:
    """Return an embedder with a fault for ``x``, which is one of the hostile texts only."""
    plain = HashingEmbedder(16).embed
    return embedder(embed=lambda text: change(plain(text)) if text == "x" else plain(text))


@pytest.mark.parametrize(
    ("broken", "name", "message"),
    [
        (embedder(fingerprint=7), "declares its dimension", "fingerprint is 7, not a str"),
        (hostile(lambda vector: vector[:-1]), "embeds hostile texts", "shape (15,)"),
        (hostile(lambda vector: vector[None, :]), "embeds hostile texts", "shape (1, 16)"),
        (hostile(lambda vector: vector * 0), "embeds hostile texts", "a zero vector"),
        (hostile(lambda vector: vector * np.nan), "embeds hostile texts", "NaN or infinity"),
        (hostile(lambda vector: None), "embeds hostile texts", "shape ()"),
        (Noisy(), "embeds the same text alike", "two vectors for one text"),
        (
            embedder(embed_batch=lambda texts: HashingEmbedder(16).embed_batch(texts)[::-1]),
            "embeds batches in order",
            "embed_batch and embed differ",
        ),
        (
            embedder(embed_batch=lambda texts: HashingEmbedder(16).embed_batch(texts)[1:]),
            "embeds batches in order",
            "shape (2, 16) for 3 texts",
        ),
    ],
)
def test_checks_for_an_embedder_that_breaks_a_promise_is_found(broken: object, name: str, message: str) -> None:
    assert_fails_only(broken, name, message)


@pytest.mark.parametrize(
    ("dimensions", "message"), [(16.0, "not an int"), (0, "dimensions is 0"), (None, "not an int")]
)
def test_checks_for_bad_dimensions_are_found(dimensions: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        run(embedder(dimensions=dimensions), "declares its dimension")
    with pytest.raises(KeyError):
        run(TableEmbedder({"plain words": [1.0, 0.0]}), "embeds hostile texts")


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


# Readers


class Lines:
    """Files of ``{"line": text}``."""

    def matches(self, documents: Sequence[Document]) -> Any:
        return bool(documents) and isinstance(documents[0].value, dict) and "line" in documents[0].value

    def read(self, source: Source) -> Any:
        for document in source.documents:
            if not isinstance(document.value, dict) or not isinstance(document.value.get("line"), str):
                raise TranscriptError(source.path, "expected {line}", document.line)
            yield source.transcript([Step(role="user", content=document.value["line"])])


def reader(**members: Any) -> Any:
    return type("Lines", (Lines,), {"__doc__": Lines.__doc__, **members})()


def test_checks_for_a_reader_that_keeps_the_contract_passes() -> None:
    assert len(checks_for(Lines())) == 3
    for check in checks_for(Lines()):
        check()


@pytest.mark.parametrize(
    ("members", "name", "message"),
    [
        ({"__doc__": None}, "is a reader", "has no docstring"),
        ({"matches": lambda self, documents: None}, "matches without fail", "matches returns None for [None]"),
        ({"read": lambda self, source: [5]}, "reads or refuses", "reads 5, which is no Transcript"),
        (
            {"read": lambda self, source: [Transcript(id="a", steps=())]},
            "reads or refuses",
            "reads a run without steps",
        ),
        (
            {"read": lambda self, source: source.documents.clear() or []},
            "reads or refuses",
            "changes the documents",
        ),
    ],
)
def test_checks_for_what_is_wrong_with_a_reader_is_found(members: dict[str, Any], name: str, message: str) -> None:
    assert_fails_only(reader(**members), name, message)


@pytest.mark.parametrize("method", ["matches", "read"])
def test_checks_for_a_reader_that_raises_lets_its_error_through(method: str) -> None:
    def fail(self: object, given: object) -> object:
        raise KeyError("kind")

    with pytest.raises(KeyError, match="kind"):
        run(reader(**{method: fail}), "matches without fail" if method == "matches" else "reads or refuses")
