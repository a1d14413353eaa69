"""The sockets: everything a plug-in author implements. Any object with these members fits; nothing is inherited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from coherence.core.readings import Claim, Counters, MetricInput, Reading

if TYPE_CHECKING:
    import numpy.typing as npt

    from coherence.core.decisions import Appraisal, Finding

T = TypeVar("T")

MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""A method may be plain or ``async``."""


@runtime_checkable
class StateProvider(Protocol):
    """Source of an agent's state, read on every tick.

    Each method returns a list of texts and is plain or ``async``. Blank texts are passed over. A plain method runs on
    a worker thread, an ``async`` one on the caller's event loop.
    """

    def get_goals(self) -> MaybeAwaitable[Sequence[str]]:
        """Return what the agent was asked to do."""
        ...

    def get_recent_context(self) -> MaybeAwaitable[Sequence[str]]:
        """Return the latest messages and tool results, oldest first."""
        ...

    def get_goal_relevant_memories(self) -> MaybeAwaitable[Sequence[str]]:
        """Return the memories that matter for the goals."""
        ...

    def get_all_memories(self) -> MaybeAwaitable[Sequence[str]]:
        """Return every memory. Called only if a metric declares ``needs = {"all_memories"}``."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of a fixed dimension. Any scale and float type; the sensor normalises and checks.

    Optional attributes: ``fingerprint`` (str: which weights and settings made the vectors; vectors of different
    fingerprints never mix) and ``batch_size`` (int: above 1, ``embed_batch`` is called with up to that many texts;
    otherwise ``embed`` with one text at a time).
    """

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    def embed(self, text: str, /) -> MaybeAwaitable[npt.ArrayLike]:
        """Return the vector of one text, shape ``(dimensions,)``."""
        ...

    def embed_batch(self, texts: list[str], /) -> MaybeAwaitable[npt.ArrayLike]:
        """Return one vector a text, shape ``(len(texts), dimensions)``."""
        ...


@runtime_checkable
class MetricFn(Protocol):
    """A measurement of goals, context and memories.

    Optional: ``needs`` (a set; ``{"all_memories"}`` asks for all memories), ``reads`` (the sources it looks at, so
    that a ``None`` can be explained by an empty one) and ``explain(data) -> Evidence or None``, called with the same
    input once the value is known. If ``explain`` fails or hangs, only the explanation is lost. ``in_place = True``
    promises that the methods are quick and never block: they then run on the caller's thread, which saves a change of
    threads per tick. ``pure = True`` promises that the value depends only on the sources in ``reads``: the metric is
    then computed again only when one of them has changed.
    """

    @property
    def name(self) -> str:
        """Key in ``reading.metrics``."""
        ...

    @property
    def inverted(self) -> bool:
        """``True`` if a high value is bad."""
        ...

    def compute(self, data: MetricInput, /) -> float | None:
        """Return a value in [0, 1], or ``None`` where it is unknown. Must not change its input."""
        ...


@runtime_checkable
class ScalarMetricFn(Protocol):
    """A measurement that needs no vectors: a counter, a budget, a probe of the host.

    Optional: ``explain() -> Evidence or None``, called once the value is known; a failure loses the explanation only.
    ``in_place = True`` is as for :class:`MetricFn`. ``why_unknown`` (str) says why there is no value.
    ``told_from`` is the value below which there is nothing to explain. ``steady = True`` promises that only the agent's
    events change the value, and that usage and ticks do not: a monitor recomputes it only after other events. A
    :class:`MetricFn` may have these two attributes, too. ``compute_since(seq)`` returns the value over what happened
    from an event on, for a metric that looks back over the run before.
    """

    @property
    def name(self) -> str:
        """Key in ``reading.metrics``."""
        ...

    @property
    def inverted(self) -> bool:
        """``True`` if a high value is bad."""
        ...

    def compute(self) -> MaybeAwaitable[float | None]:
        """Return a value in [0, 1], or ``None`` where it is unknown."""
        ...


@runtime_checkable
class Rule(Protocol):
    """Judges an agent's state at a tick, and when ``check`` asks whether a call may run.

    ``state`` is the agent's :class:`~coherence.state.reducer.AgentState`: annotate it so.

    A rule must be a pure function of its arguments: what it remembers by itself is lost in a restart. Its threshold,
    hysteresis and strongest effect are settings (``config.rules``), not its concern.
    """

    @property
    def name(self) -> str:
        """The ``rule`` of its findings."""
        ...

    def __call__(self, state: Any, reading: Reading | None, appraisal: Appraisal, /) -> Finding | None:
        """Return what it sees, below its threshold too; ``None`` where it does not apply."""
        ...


@runtime_checkable
class Detector(Protocol):
    """Follows one agent's run: takes in every event once, in order, and says at each tick what stands out.

    ``observed`` is an :class:`~coherence.detect.detector.Observed`, ``state`` the agent's
    :class:`~coherence.state.reducer.AgentState`. A class may have a method for each kind of event instead of a switch
    in ``observe``: see :class:`~coherence.detect.detector.EventDetector`. What it remembers must come from the events
    alone, and survive ``snapshot`` and ``restore``: with these a session is resumed.
    """

    @property
    def name(self) -> str:
        """Under which its data is stored; the first part of the ``rule`` of its findings, up to a dot."""
        ...

    def observe(self, observed: Any, /) -> None:
        """Take in the next event."""
        ...

    def findings(self, state: Any, reading: Reading | None, appraisal: Appraisal, /) -> Iterable[Finding]:
        """Return what stands out at a tick, below its threshold too."""
        ...

    def snapshot(self) -> Any:
        """Return what it remembers as plain data that msgspec can encode."""
        ...

    def restore(self, data: Any, /) -> None:
        """Go on with what :meth:`snapshot` returned."""
        ...


@runtime_checkable
class Judge(Protocol):
    """A second opinion on a call that the detectors are not sure of: a language model, a classifier, a person.

    Nothing asks one unless it was given to a monitor, ``Monitor(judge=...)``, and then of acting calls in the grey zone
    of ``goal_hijack`` alone, within the time and the money of ``config.judge``. What it says is recorded with the tick,
    so that a replay does not ask again. The texts it is shown may hold orders: they are data, never instructions to it.

    Optional attributes: ``name`` (str, shown with its answers) and ``cost_usd`` (float: what one question costs).
    """

    def judge(self, question: str, evidence: Sequence[str], /) -> MaybeAwaitable[float]:
        """Return the probability, in [0, 1], that what the question claims is so, by the evidence. May raise."""
        ...


@runtime_checkable
class CounterSource(Protocol):
    """A provider that counts calls, errors, tokens and cost, for the scalar metrics."""

    def get_counters(self) -> Counters:
        """Return the running totals."""
        ...


@runtime_checkable
class Sink(Protocol):
    """Receiver of everything that is recorded of an agent, such as an exporter: ``Monitor(sinks=[...])``.

    Optional: ``ended(agent, session)``, called when a monitor is closed.
    """

    def emit(self, record: Any, /) -> object:
        """Take an event, with the reading and the decision if it was a tick, and the agent's and the session's name.

        ``record`` is an :class:`~coherence.monitor.sinks.AgentRecord`, secrets already replaced. It is called where
        events are read, at times on the host's thread: it must return at once, and never ask the monitor.
        """
        ...


@runtime_checkable
class TranscriptReader(Protocol):
    """Reads the runs of one format of files; its name in the group ``coherence.readers`` is the name of the format.

    A file is parsed before: ``documents`` are its JSON values, a sequence of
    :class:`~coherence.providers.readers.source.Document` (``value`` and ``line``), and ``source`` is the
    :class:`~coherence.providers.readers.source.Source` that holds them with the path: annotate them so. What is wrong
    with a file is told by raising :class:`~coherence.core.errors.TranscriptError`; any other exception is reported as a
    fault of the reader, by name.

    Optional: ``growing = True`` says that a file may be one that is being written. Its last line may then be
    incomplete; it is ``source.torn``.
    """

    def matches(self, documents: Sequence[Any], /) -> bool:
        """Tell whether a file is of this format, from its first documents. Must return quickly for any JSON."""
        ...

    def read(self, source: Any, /) -> Iterable[Any]:
        """Return or yield each run, a :class:`~coherence.providers.transcript.Transcript` with one step or more."""
        ...


class OnReading(Protocol):
    """Called with every reading after it is stored."""

    def __call__(self, reading: Reading, /) -> MaybeAwaitable[object]:
        """Use the reading; what is returned is ignored."""
        ...


Extractor: TypeAlias = Callable[[str], Sequence[Claim]]
"""A function of a folded text that returns its claims in their order. Pure and quick, whatever the text.

It runs over what comes in (goals, results, memories) and over what the agent states: a claim is grounded where one of
its ``forms`` came in before, as one of ``forms`` or ``also``.
"""
