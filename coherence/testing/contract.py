"""Contract checks for plug-ins: what every metric, embedder and state provider must hold to.

In your own tests::

    @pytest.mark.parametrize("check", checks_for(MyMetric()), ids=str)
    def test_my_metric_keeps_the_contract(check):
        check()
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from coherence.core.decisions import Appraisal, Finding, Mode
from coherence.core.errors import NotRequestedError, TranscriptError, UnknownSourceError
from coherence.core.events import Event, Feedback, Goal, Message, ToolCall, ToolResult, Usage
from coherence.core.protocols import Embedder, StateProvider
from coherence.core.readings import KINDS, Evidence, MetricInput
from coherence.core.registry import check_detector, check_metric, check_reader, check_rule, is_scalar
from coherence.detect.detector import DATA_TYPES, Observed
from coherence.providers.readers.source import Document, Source
from coherence.providers.transcript import Transcript
from coherence.state.reducer import AgentState
from coherence.testing.fakes import metric_input

HOSTILE_TEXTS = (
    "plain words",
    "x",
    "0",
    "\x00\x1b[31m",
    "\ud800 a lone surrogate",
    "🙂" * 50,
    "日本語のテキスト",
    "\u202egnirts desrever",
    "</script><script>alert(1)</script>",
    "word " * 20_000,
    "a" * 100_000,
)
"""Texts an embedder must give a usable vector for."""


class Check(NamedTuple):
    """One check. Calling it raises AssertionError with what is wrong, or the plug-in's own exception passes through."""

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        self.run()

    def __str__(self) -> str:
        return self.name


def checks_for(plugin: Any) -> list[Check]:
    """Return the checks for a metric, embedder, state provider, rule or reader (an instance), or a detector.

    Of a detector the class is passed, or a function that makes one: each agent has its own.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if callable(getattr(plugin, "observe", None)) and inspect.isclass(plugin):
        kind = "detector"
    elif callable(getattr(plugin, "compute", None)):
        kind = "scalar" if is_scalar(plugin) else "metric"
    elif callable(getattr(plugin, "embed", None)):
        kind = "embedder"
    elif callable(getattr(plugin, "get_goals", None)):
        kind = "provider"
    elif callable(getattr(plugin, "matches", None)) and not inspect.isclass(plugin):
        kind = "reader"
    elif callable(plugin) and isinstance(getattr(plugin, "name", None), str) and not inspect.isclass(plugin):
        kind = "rule"
    else:
        raise TypeError(
            f"{plugin!r} is no metric, embedder, state provider, rule or reader, and no class of a detector"
        )
    label = getattr(plugin, "name", type(plugin).__name__)
    return [
        Check(f"{label}: {run.__name__.strip('_').replace('_', ' ')}", partial(run, plugin)) for run in CHECKS[kind]
    ]


def sample_states() -> Iterator[tuple[str, AgentState]]:
    """Yield named states that a rule must cope with."""
    yield "empty", AgentState()
    calm = AgentState()
    calm.fold(1, 1.0, Goal("fix the login bug"))
    calm.fold(2, 2.0, Message("assistant", "Reading login.py."))
    yield "one message", calm
    failing = AgentState()
    for at in range(1, 60, 2):
        failing.fold(at, float(at), ToolCall("Bash", msgspec.Raw(b'{"command":"pytest"}'), f"c{at}"))
        failing.fold(at + 1, at + 0.5, ToolResult("ImportError: no module named x", error=True, call_id=f"c{at}"))
        failing.fold(at + 1, at + 0.6, Usage(10**at if at < 12 else 10**12, 0, cost_usd=float(at)))
        failing.fold(at + 1, at + 0.7, Feedback(-1.0))
    yield "failing", failing
    hostile = AgentState()
    for at, text in enumerate(HOSTILE_TEXTS, 1):
        hostile.fold(3 * at, float(at), Message("user", text))
        hostile.fold(3 * at + 1, float(at), Message("assistant", text))
        hostile.fold(3 * at + 2, float(at), ToolResult(text, error=bool(at % 2), tool_name=text[:50]))
    yield "hostile texts", hostile


def _is_a_rule(rule: Any) -> None:
    """Name and a docstring."""
    check_rule(rule)
    assert inspect.getdoc(rule) or inspect.getdoc(type(rule)), f"{rule.name}: has no docstring (what it finds, when)"


def _finds_alike_and_in_range(rule: Any) -> None:
    """Find the same in the same state, under its own name, active where the score reaches the threshold."""
    for label, state in sample_states():
        calm = Appraisal(seq=state.facts.seq, pressure=0.0, mode=Mode.OBSERVE)
        found, again = rule(state, None, calm), rule(state, None, calm)
        assert found == again, f"{rule.name}: two findings for one state ({label})"
        if found is None:
            continue
        assert isinstance(found, Finding), f"{rule.name}: returns {found!r}, not a Finding or None ({label})"
        assert found.rule == rule.name, f"{rule.name}: its finding is called {found.rule!r} ({label})"
        assert 0.0 <= found.score <= 1.0, f"{rule.name}: score {found.score!r} is outside [0, 1] ({label})"
        active = found.score >= found.threshold
        assert found.active == active, f"{rule.name}: active is not score >= threshold ({label})"
        assert not found.active or found.why, f"{rule.name}: active without a why ({label})"


def _leaves_the_state_alone(rule: Any) -> None:
    """Nothing of the state is changed."""
    for label, state in sample_states():
        before = deepcopy(state.facts)
        rule(state, None, Appraisal(seq=state.facts.seq, pressure=0.9, mode=Mode.BLOCK))
        assert state.facts == before, f"{rule.name}: changed the state ({label})"


def sample_events() -> list[Observed]:
    """Return events of a short run as a detector is shown them, some of them hostile."""
    made: list[Event] = [
        Goal("mend the failing test in tests/test_app.py"),
        Message("user", "please hurry"),
        *(Message("assistant", text) for text in HOSTILE_TEXTS),
        *(ToolCall("Bash", msgspec.Raw(b'{"command": "pytest -q"}'), f"c{number}") for number in range(4)),
        ToolCall("", msgspec.Raw(b"no JSON"), "odd"),
        *(ToolResult("1 failed", error=True, call_id=f"c{number}") for number in range(4)),
        ToolResult("", call_id="nobody's"),
        Usage(input_tokens=10**9, output_tokens=0, model="m"),
        Feedback(-1.0),
    ]
    return [Observed.of(event, seq, float(seq)) for seq, event in enumerate(made, start=1)]


def _is_a_detector(make: Any) -> None:
    check_detector(make)
    name = make().name
    assert inspect.getdoc(make), f"{name}: has no docstring (what it finds, when)"
    assert make() is not make(), f"{name}: each call must make another detector"


def _found(detector: Any) -> list[Finding]:
    state = AgentState()
    found = list(detector.findings(state, None, Appraisal(seq=0, pressure=0.0, mode=Mode.OBSERVE)))
    for finding in found:
        assert isinstance(finding, Finding), f"{detector.name}: finds {finding!r}, which is no Finding"
        first = finding.rule.partition(".")[0]
        assert first == detector.name.partition(".")[0], f"{detector.name}: its finding is called {finding.rule!r}"
        assert 0.0 <= finding.score <= 1.0, f"{detector.name}: score {finding.score!r} is outside [0, 1]"
        assert not finding.active or finding.why, f"{detector.name}: active without a why"
    return found


def _takes_in_every_event(make: Any) -> None:
    detector = make()
    assert _found(detector) == _found(detector), f"{detector.name}: two findings before anything has happened"
    for observed in sample_events():
        detector.observe(observed)
        assert _found(detector) == _found(detector), f"{detector.name}: to be asked changes what is found"


def _goes_on_from_its_snapshot(make: Any) -> None:
    lived, shown = make(), sample_events()
    for at, observed in enumerate(shown):
        resumed = make()
        # through the bytes that a store keeps, which hold plain data only
        stored = msgspec.msgpack.encode(lived.snapshot())
        resumed.restore(msgspec.msgpack.decode(stored, type=DATA_TYPES.get(lived.name, Any)))
        for each in (lived, resumed):
            each.observe(observed)
        assert _found(lived) == _found(resumed), f"{lived.name}: finds something else after a restart (event {at + 1})"


def sample_inputs(dimensions: int = 8) -> Iterator[tuple[str, MetricInput]]:
    """Yield named inputs that a metric must cope with."""
    rng = np.random.default_rng(0)

    def vectors(n: int) -> Any:
        return rng.standard_normal((n, dimensions))

    one = [1.0] + [0.0] * (dimensions - 1)
    other = [-1.0] + [0.0] * (dimensions - 1)
    zero = [0.0] * dimensions
    yield "everything empty", metric_input(all_memories=())
    yield "goals only", metric_input(goals=[one], all_memories=())
    yield "context only", metric_input(context=[one, one], all_memories=())
    yield "one of each", metric_input(goals=[one], context=[one], memories=[one], all_memories=[one])
    yield "opposites", metric_input(goals=[one], context=[one, other], memories=[one], all_memories=[one])
    yield "zero rows", metric_input(goals=[one], context=[one, zero], memories=[one], all_memories=[one])
    everything = {"goals": vectors(3), "context": vectors(20), "memories": vectors(50), "all_memories": vectors(200)}
    yield "many", metric_input(**everything)


def _copied(data: MetricInput, kinds: Iterable[str] = KINDS) -> MetricInput:
    fields: dict[str, Any] = {kind: getattr(data, kind).copy() for kind in kinds}
    texts = {f"{kind}_texts": getattr(data, f"{kind}_texts") for kind in kinds}
    return MetricInput(**fields, **texts, tick=data.tick)


def _share(value: Any) -> bool:
    if value is None:
        return True
    try:
        return -1e-6 <= float(value) <= 1 + 1e-6
    except (TypeError, ValueError):
        return False


def _is_well_formed(metric: Any) -> None:
    """Name, direction, needs and a docstring."""
    check_metric(metric)
    assert inspect.getdoc(metric), f"{metric.name}: has no docstring (formula, range, direction, source)"


def _stays_in_range(metric: Any) -> None:
    for name, data in sample_inputs():
        value = metric.compute(data)
        assert _share(value), f"{metric.name}: {value!r} for {name} is neither None nor in [0, 1]"


def _repeats_itself(metric: Any) -> None:
    for name, data in sample_inputs():
        first, second = metric.compute(data), metric.compute(data)
        assert first == second, f"{metric.name}: {first!r}, then {second!r} for the same input ({name})"


def _leaves_its_input_alone(metric: Any) -> None:
    for name, data in sample_inputs():
        given = _copied(data)
        metric.compute(given)
        for kind in KINDS:
            assert np.array_equal(getattr(given, kind), getattr(data, kind)), f"{metric.name}: changes {kind} ({name})"


def _reads_only_what_it_declares(metric: Any) -> None:
    """Leave all memories alone unless ``needs`` declares them."""
    if "all_memories" in getattr(metric, "needs", ()):
        return
    explain = getattr(metric, "explain", lambda data: None)
    for name, data in sample_inputs():
        given = _copied(data, ("goals", "context", "memories"))
        try:
            metric.compute(given)
            explain(given)
        except NotRequestedError as error:
            raise AssertionError(f"{metric.name}: reads all memories without declaring needs ({name})") from error


def _is_unknown_without_its_sources(metric: Any) -> None:
    """Nothing but UnknownSourceError may come out when every source failed."""
    absent: dict[str, str] = dict.fromkeys(KINDS, "failed")
    try:
        value = metric.compute(MetricInput(absent=absent))
    except UnknownSourceError:
        return
    assert _share(value), f"{metric.name}: {value!r} when every source failed"


def _points_at_what_exists(metric: Any) -> None:
    explain = getattr(metric, "explain", None)
    if explain is None:
        return
    for name, data in sample_inputs():
        evidence = explain(data)
        if evidence is None:
            continue
        assert isinstance(evidence, Evidence), f"{metric.name}: explain returns {evidence!r}, not Evidence ({name})"
        size = len(getattr(data, evidence.kind))
        assert all(0 <= item < size for item in evidence.items), f"{metric.name}: {evidence} of {size} ({name})"


def _returns_a_share_or_none(metric: Any) -> None:
    for _ in range(2):
        value = _resolved(metric.compute())
        assert _share(value), f"{metric.name}: {value!r} is neither None nor in [0, 1]"


def _explains_with_evidence(metric: Any) -> None:
    """Explain a value with Evidence or None, where it explains at all."""
    explain = getattr(metric, "explain", None)
    if explain is None or _resolved(metric.compute()) is None:
        return
    evidence = explain()
    fits = evidence is None or (isinstance(evidence, Evidence) and evidence.kind in KINDS)
    assert fits, f"{metric.name}: explain returns {evidence!r}, not Evidence"


def _declares_its_dimension(embedder: Embedder) -> None:
    dimensions = embedder.dimensions
    assert isinstance(dimensions, int), f"dimensions is {dimensions!r}, not an int"
    assert dimensions > 0, f"dimensions is {dimensions}"
    fingerprint = getattr(embedder, "fingerprint", None)
    assert fingerprint is None or isinstance(fingerprint, str), f"fingerprint is {fingerprint!r}, not a str"


def _embeds_hostile_texts(embedder: Embedder) -> None:
    for text in HOSTILE_TEXTS:
        vector = np.asarray(_resolved(embedder.embed(text)), np.float64)
        assert vector.shape == (embedder.dimensions,), f"shape {vector.shape} for {text[:30]!r}"
        assert np.isfinite(vector).all(), f"NaN or infinity for {text[:30]!r}"
        assert vector.any(), f"a zero vector for {text[:30]!r}"


def _embeds_the_same_text_alike(embedder: Embedder) -> None:
    first, second = (np.asarray(_resolved(embedder.embed("the same text"))) for _ in range(2))
    assert np.array_equal(first, second), "two vectors for one text"


def _embeds_batches_in_order(embedder: Embedder) -> None:
    texts = ["a cat sat on the mat", "stock prices fell", "def main(): pass"]
    batch = np.asarray(_resolved(embedder.embed_batch(texts)), np.float64)
    assert batch.shape == (3, embedder.dimensions), f"embed_batch returns shape {batch.shape} for 3 texts"
    for text, row in zip(texts, batch, strict=True):
        alone = np.asarray(_resolved(embedder.embed(text)), np.float64)
        cosine = row @ alone / np.linalg.norm(row) / np.linalg.norm(alone)
        # Many models pad a batch, which changes a vector a little.
        assert cosine > 0.98, f"embed_batch and embed differ for {text!r} (cosine {cosine:.3f})"


def _returns_lists_of_texts(provider: StateProvider) -> None:
    for name in ("get_goals", "get_recent_context", "get_goal_relevant_memories", "get_all_memories"):
        texts = _resolved(getattr(provider, name)())
        is_list = isinstance(texts, Iterable) and not isinstance(texts, str | bytes)
        assert is_list, f"{name} returns {type(texts).__name__}, not a list of str"
        for text in texts:
            assert isinstance(text, str), f"{name} returns a {type(text).__name__} in its list"


def sample_documents() -> Iterator[list[Any]]:
    """Yield the JSON values of files that a reader must cope with, most of them no transcripts."""
    deep: Any = []
    for _ in range(150):  # deeper than what can be written as JSON later
        deep = [deep]
    alone: tuple[Any, ...] = (None, True, -1, 0.5, "", "text", [], {}, [[]], [None], [{}], deep)
    yield from ([value] for value in alone)
    yield [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]
    for holder in ("messages", "steps", "samples", "conversations", "parts", "runs", "events"):
        yield from ([{holder: value}] for value in (*alone, [{"role": None}]))
    yield [1, "mixed", {"id": 1, "type": 2}, None]


def _is_a_reader(reader: Any) -> None:
    check_reader(reader)
    assert inspect.getdoc(reader), f"{_kind(reader)}: has no docstring (which files it reads)"


def _matches_without_fail(reader: Any) -> None:
    for values in sample_documents():
        documents = [Document(value, line) for line, value in enumerate(values, start=1)]
        found = reader.matches(documents)
        assert isinstance(found, bool), f"{_kind(reader)}: matches returns {found!r} for {values!r:.60}"
        assert found == reader.matches(documents), f"{_kind(reader)}: matches differs for the same documents"


def _reads_or_refuses(reader: Any) -> None:
    """Raise TranscriptError, or return runs, for any JSON, and leave it as it was."""
    for values in sample_documents():
        source = Source("sample.json", [Document(value, line) for line, value in enumerate(deepcopy(values), start=1)])
        try:
            runs = list(reader.read(source))
        except TranscriptError:
            continue
        finally:
            left = [document.value for document in source.documents]
            assert left == values, f"{_kind(reader)}: changes the documents {values!r:.60}"
        for run in runs:
            assert isinstance(run, Transcript), f"{_kind(reader)}: reads {run!r:.60}, which is no Transcript"
            assert run.steps, f"{_kind(reader)}: reads a run without steps from {values!r:.60}"
            # a record that is made in Python takes values of any type
            msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=Transcript)


def _kind(plugin: Any) -> str:
    return type(plugin).__name__


def _resolved(value: Any) -> Any:
    """Wait for an async plug-in's answer."""
    if not inspect.isawaitable(value):
        return value

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())


CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    "metric": (
        _is_well_formed,
        _stays_in_range,
        _repeats_itself,
        _leaves_its_input_alone,
        _reads_only_what_it_declares,
        _is_unknown_without_its_sources,
        _points_at_what_exists,
    ),
    "scalar": (_is_well_formed, _returns_a_share_or_none, _explains_with_evidence),
    "embedder": (_declares_its_dimension, _embeds_hostile_texts, _embeds_the_same_text_alike, _embeds_batches_in_order),
    "provider": (_returns_lists_of_texts,),
    "rule": (_is_a_rule, _finds_alike_and_in_range, _leaves_the_state_alone),
    "reader": (_is_a_reader, _matches_without_fail, _reads_or_refuses),
    "detector": (_is_a_detector, _takes_in_every_event, _goes_on_from_its_snapshot),
}
"""Checks of each kind of plug-in, in the order in which they run."""
