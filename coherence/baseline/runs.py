"""The run that an agent is in, and how far each metric has risen within it.

A run is a task. A session begins with one; after an outcome the next goal, user's message or call begins another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

import msgspec

from coherence.baseline.calibration import SHIPPED
from coherence.baseline.own_life import MAX_TOOL
from coherence.core.calls import runs_in_place
from coherence.core.decisions import Finding
from coherence.core.events import Outcome, is_success
from coherence.core.protocols import MetricFn, ScalarMetricFn
from coherence.core.readings import Reading
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.hijack import ALARM_5, HijackDetector, HijackScore, JudgedCall
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.store.rows import RunRow
from coherence.store.runs import CALL

CALLS = "goal_hijack"
"""The metric that shows the worst call made so far, until somebody has looked at it."""

MAX_METRICS = 64
"""Metrics whose maxima are kept, the first that were known."""

MAX_TOOLS = 32
"""Tools of a run with scores of their own, the first that were called; the others are ""."""

MAX_FINISHED = 8
"""Runs that wait to be taken at most."""


class Run(msgspec.Struct):
    """State of a run; plain data, so that it can be kept and taken up again.

    Examples
    --------
    >>> run = Run()
    >>> run.add({"goal_hijack": 0.25}, frozenset({"goal_hijack"}))
    >>> run.add({"goal_hijack": 0.125}, frozenset({"goal_hijack"}))
    >>> run.end(Outcome(success=True))
    >>> row = run.row({"goal_hijack": "1"})
    >>> row.run, row.maxima, row.success
    (1, (('goal_hijack', '1', 0.25),), True)
    """

    number: int = 1
    since: int = 0
    """Number of its first event; 0 = of an earlier session, or the first one."""
    ended: bool = False
    """True if an outcome has been reported."""
    success: bool | None = None
    """Success by the newest outcome."""
    maxima: dict[str, float] = {}
    """Metric -> highest risk so far, in [0, 1]."""
    calls: dict[str, float] = {}
    """Tool -> highest score of its calls, in [0, 1], those left out that the dataflow proves and that are warned of."""

    def begin_next(self, seq: int) -> None:
        """Begin another run with event number ``seq``."""
        self.number, self.since, self.ended, self.success = self.number + 1, seq, False, None
        self.maxima, self.calls = {}, {}

    def end(self, outcome: Outcome) -> None:
        """Take in how the task ended."""
        self.ended, self.success = True, is_success(outcome)

    def add(self, metrics: Mapping[str, float | None], inverted: frozenset[str]) -> None:
        """Take in the metrics of a reading; ``inverted`` ones are risks already."""
        maxima = self.maxima
        for name, value in metrics.items():
            if value is not None:
                risk = value if name in inverted else 1.0 - value
                if risk > maxima.get(name, -inf):  # few rise, and NaN never does
                    self.rise(name, min(max(risk, 0.0), 1.0))

    def made(self, call: JudgedCall) -> bool:
        """Tell whether a call was made in this run; one of the run before may stand out still."""
        return call.seq >= self.since

    def add_call(self, call: JudgedCall | None) -> None:
        """Take in the call that stands out, if this run made it: the outcome may come before anybody looks at it."""
        if call is not None and self.made(call):
            self.rise(CALLS, min(max(call.score.value, 0.0), 1.0))

    def add_score(self, tool: str, score: HijackScore) -> None:
        """Take in how a call was judged that is made."""
        name = tool[:MAX_TOOL]
        if not name.isprintable() or (name not in self.calls and len(self.calls) >= MAX_TOOLS):
            name = ""
        told = bool(score.unauthorised) and score.value > ALARM_5
        # a call that is told teaches no score, but its tool is known from then on
        self.calls[name] = max(self.calls.get(name, 0.0), 0.0 if told else score.value)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Take in what rules found of a metric with a shipped threshold.

        A call that was asked about may never run, and so be in no reading; and the metric need not be measured. It
        counts up to the threshold: a good run that heeded an alarm does not teach that the alarm was false. A call that
        is made counts in full.
        """
        for finding in findings:
            if finding.rule in SHIPPED:
                self.rise(finding.rule, min(max(finding.score, 0.0), finding.threshold))

    def rise(self, name: str, risk: float) -> None:
        """Take in a value of a metric, if there is room."""
        if name in self.maxima or len(self.maxima) < MAX_METRICS:
            self.maxima[name] = max(self.maxima.get(name, 0.0), risk)

    def renumber(self) -> None:
        """Let the next event be number 1: what was measured before stands in the store."""
        self.maxima, self.calls, self.since = {}, {}, 0

    def row(self, versions: Mapping[str, str]) -> RunRow:
        """Return how the run stands, for the store; metrics without a version are left out."""
        known = [(name, versions[name], self.maxima[name]) for name in sorted(self.maxima) if name in versions]
        if CALLS in versions:
            known += [(CALL + tool, versions[CALLS], self.calls[tool]) for tool in sorted(self.calls)]
        return RunRow(self.number, tuple(known), self.success)


class Runs(EventDetector[Run]):
    """The run that an agent is in, and those that are to be written.

    Parameters
    ----------
    hijack : HijackDetector
        Knows the call that stands out.
    vectors : sequence of MetricFn
        Metrics that compare vectors. Their values are of another scale with another embedder.
    scalars : sequence of ScalarMetricFn
        The others.
    cache : EmbeddingCache, optional
        Holds the embedder. If that has no fingerprint of its own, nobody could tell later what the values of
        ``vectors`` were, and they are left out.
    """

    name, data_type = "run", Run

    def __init__(
        self,
        hijack: HijackDetector,
        vectors: Sequence[MetricFn],
        scalars: Sequence[ScalarMetricFn],
        cache: EmbeddingCache | None = None,
    ) -> None:
        super().__init__()
        self._hijack = hijack
        self.finished: list[RunRow] = []
        """Runs at their reported end, or when another began, until somebody takes them."""
        together: list[MetricFn | ScalarMetricFn] = [*vectors, *scalars]
        self.inverted = frozenset(metric.name for metric in together if metric.inverted)
        self._windowed: dict[str, Callable[[int], float | None]] = {
            metric.name: metric.compute_since
            for metric in scalars
            if runs_in_place(metric, "compute_since") and hasattr(metric, "compute_since")
        }
        """Metrics that look back over the run before, and what they are without it."""
        self.versions = {name: shipped.version for name, shipped in SHIPPED.items()}
        """Metric -> version of its values."""
        self.versions.update((metric.name, _version(metric)) for metric in scalars)
        fingerprint = getattr(cache.embedder, "fingerprint", None) if cache is not None else None
        for metric in vectors:
            self.versions.pop(metric.name, None)
            # without one, values by two models could not be told apart
            if isinstance(fingerprint, str):
                self.versions[metric.name] = f"{_version(metric)} {fingerprint}"
        for name in [name for name, version in self.versions.items() if not (name + version).isprintable()]:
            del self.versions[name]  # the store would refuse it, and with it the events

    @property
    def run(self) -> Run:
        """The present run."""
        return self.data

    def on_goal(self, observed: Observed) -> None:
        """Begin another run if the one before has ended."""
        if self.run.ended:
            self._finish()
            self.run.begin_next(observed.seq)

    def on_tool_call(self, observed: Observed) -> None:
        """Begin another run if the one before has ended, and take in the call."""
        self.on_goal(observed)
        score = self._hijack.data.newest
        if score is not None:
            self.run.add_score(observed.event.tool_name, score)

    def on_message(self, observed: Observed) -> None:
        """Begin another run if the one before has ended and the user speaks."""
        if observed.event.role == "user":
            self.on_goal(observed)

    def on_outcome(self, observed: Observed) -> None:
        """End the run; the call that stands out counts, even if nobody looks at it any more."""
        self.run.end(observed.event)
        self.run.add_call(self._hijack.data.worst)
        self._finish()

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.run.renumber()

    def _finish(self) -> None:
        self.finished = [*self.finished, self.row()][-MAX_FINISHED:]

    def pop_finished(self) -> list[RunRow]:
        """Return the runs that are to be written, and forget them."""
        finished, self.finished = self.finished, []
        return finished

    def add(self, metrics: Mapping[str, float | None], gains: Mapping[str, float] | None = None) -> None:
        """Take in the metrics of a reading, what its signs gave, and the call that stands out."""
        run, worst = self.run, self._hijack.data.worst
        if worst is not None and not run.made(worst):
            metrics = {**metrics, CALLS: None}
        if run.since:
            own = {name: since(run.since) for name, since in self._windowed.items() if name in metrics}
            metrics = {**metrics, **own}
        run.add(metrics, self.inverted)
        for name, gain in (gains or {}).items():
            self.run.rise(name, gain)
        self.run.add_call(worst)

    def row(self) -> RunRow:
        """Return how the present run stands."""
        return self.run.row(self.versions)


def risk_of(reading: Reading) -> float | None:
    """Return the risk of a reading in [0, 1], higher = worse; ``None`` where nothing was measured.

    It is the calibrated risk; of a classic index, which has none, ``1 - coherence_index``.
    """
    if reading.risk is not None or reading.coherence_index is None or not reading.coverage > 0.0:
        return reading.risk
    return min(max(1.0 - reading.coherence_index, 0.0), 1.0)


def _version(metric: object) -> str:
    """Return what a metric says of its formula by an attribute ``version``; "1" where it says nothing."""
    version = getattr(metric, "version", "1")
    return version if isinstance(version, str) else "1"
