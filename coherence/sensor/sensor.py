"""The sensor: one reading a tick, kept in a ring buffer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Literal, TypeAlias, get_args

import msgspec

from coherence.core.calls import Breaker, PluginCall, failed
from coherence.core.config import disabled
from coherence.core.plugin_calls import Group, Stages, Steps, Turnstile, drive_async, drive_sync, run_stages
from coherence.core.protocols import Embedder, MetricFn, OnReading, ScalarMetricFn, StateProvider
from coherence.core.readings import Reading, Tick
from coherence.core.registry import check_metric, create_metric, is_scalar
from coherence.core.ring import Poll, Ring
from coherence.providers.minilm import default_embedder
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.index import DEFAULT_WEIGHTS, BandEdges, Missing, check_thresholds, check_weights, is_number
from coherence.sensor.light import Edges
from coherence.sensor.sensor_light import SensorLight
from coherence.sensor.tick import GETTERS, Measurement, MeasurePlan
from coherence.sensor.windows import Windows

IndexKind: TypeAlias = Literal["calibrated", "classic"]
"""Method by which the index is made."""


class CoherenceSensor:
    """Measure an agent's coherence from the goals, context and memories that its provider gives.

    Measuring never raises into the host and takes at most about ``timeout_s``, whatever provider, embedder, metrics and
    callback do. A failure is an entry in ``reading.errors``; an unknown value is ``None``, with a reason. Methods may
    be called from any thread and event loop; measurements take turns.

    Parameters
    ----------
    provider : StateProvider
        Source of the agent's state, read at every tick.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped MiniLM model, shared by all sensors of the process. A cache may be shared explicitly.
    metrics : sequence of MetricFn or str, optional
        Metrics or names of registered ones. Default: ``goal_drift``, ``memory_retention``,
        ``contradiction_pressure``, ``semantic_diffusion``.
    scalar_metrics : sequence of ScalarMetricFn or str
        Further metrics that need no vectors; a metric given by name reads the provider's counters.
    index : {"calibrated", "classic"}, optional
        ``calibrated``: the chance that the run is on course, judged by the change of the metrics since the agent's
        first readings. ``classic``: the weighted mean of the metrics. Default: ``classic`` if ``weights`` or
        ``missing="zero"`` is given, otherwise ``calibrated``.
    weights : mapping, optional
        Weight of each metric in the classic index; a metric without an entry is reported only. By default every metric
        weighs 0.25.
    thresholds : BandEdges or mapping or three numbers, optional
        Lowest index of green, yellow and orange; default 0.85, 0.6, 0.1, for the classic index 0.8, 0.6, 0.4.
    missing : {"unknown", "zero"}
        ``unknown``: an unknown metric is left out of the index and lowers ``coverage``. ``zero``: it counts as 0.
    history_size : int
        Number of readings to keep, 0 or more.
    on_reading : callable, optional
        Called (or awaited) with each reading after it is stored.
    timeout_s : float
        Longest duration of a measurement in seconds, above 0.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, which the message names.

    Examples
    --------
    >>> from coherence.providers import HashingEmbedder, StaticState
    >>> state = StaticState(goals=["fix the login bug"], context=["reading login.py", "the login test fails"])
    >>> sensor = CoherenceSensor(state, embedder=HashingEmbedder())
    >>> reading = sensor.measure_sync()
    >>> reading.tick_seq, round(reading.coverage, 2), reading.unknown["memory_retention"]
    (1, 0.77, 'no memories')
    """

    def __init__(
        self,
        provider: StateProvider,
        *,
        embedder: Embedder | EmbeddingCache | None = None,
        metrics: Sequence[MetricFn | str] | None = None,
        scalar_metrics: Sequence[ScalarMetricFn | str] = (),
        index: IndexKind | None = None,
        weights: Mapping[str, float] | None = None,
        thresholds: BandEdges | Iterable[float] | Mapping[str, float] | None = None,
        missing: Missing = "unknown",
        history_size: int = 100,
        on_reading: OnReading | None = None,
        timeout_s: float = 2.0,
    ) -> None:
        if isinstance(provider, type):
            raise TypeError(f"provider: pass an instance, {provider.__name__}(...), not the class")
        for getter in GETTERS.values():
            if not callable(getattr(provider, getter, None)):
                raise TypeError(f"provider must have {getter}, {type(provider).__name__} does not")
        if missing not in get_args(Missing):
            raise ValueError(f"missing must be 'unknown' or 'zero', not {missing!r}")
        if index is not None and index not in get_args(IndexKind):
            raise ValueError(f"index must be 'calibrated' or 'classic', not {index!r}")
        classic = weights is not None or missing == "zero"
        if index == "calibrated" and classic:
            raise ValueError("weights and missing='zero' belong to the classic index: leave out index='calibrated'")
        classic = classic or index == "classic"
        if not is_number(timeout_s):
            raise TypeError(f"timeout_s must be a number, not {timeout_s!r}")
        if not 0 < timeout_s <= 86_400:
            raise ValueError(f"timeout_s must be above 0 and at most a day, not {timeout_s}")
        if on_reading is not None and not callable(on_reading):
            raise TypeError(f"on_reading must be callable, not {on_reading!r}")
        vector_metrics = _vector_metrics(metrics)
        scalars = _scalar_metrics(scalar_metrics, provider)
        names = [metric.name for metric in vector_metrics] + [scalar.name for scalar in scalars]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two metrics are called {twice[0]!r}")
        if embedder is None:
            embedder = default_embedder()
        cache = embedder if isinstance(embedder, EmbeddingCache) else EmbeddingCache(embedder)
        self.provider = provider
        self.timeout_s = float(timeout_s)
        self._plan = MeasurePlan(
            provider,
            cache,
            vector_metrics,
            scalars,
            check_weights(weights if classic else {}, names),
            check_thresholds(thresholds if classic or thresholds is not None else Edges()),
            missing,
        )
        self._light: SensorLight | None = None
        if not classic:
            self._light = SensorLight(names, self._plan.inverted, self._plan.thresholds)
        self._ring = Ring[Reading](history_size)
        self._windows = Windows()
        self._on_reading = on_reading
        self._callback_breaker = Breaker()
        self._turnstile = Turnstile(patience=1.0)
        self._lock = RLock()  # a finalizer may measure, too
        self._last_seq = 0

    def __repr__(self) -> str:
        latest = self.latest
        return f"<CoherenceSensor {len(self._plan.names)} metrics: {'no reading yet' if latest is None else latest}>"

    def _repr_html_(self) -> str:
        """Draw the bands of the readings that are kept as one strip, for notebooks."""
        from coherence.core.strip import strip_html  # which only a notebook needs

        return strip_html(repr(self), self.history()[::-1])

    @property
    def weights(self) -> dict[str, float]:
        """Metric -> weight in the classic index; empty with the calibrated one."""
        return dict(self._plan.weights)

    @property
    def inverted(self) -> frozenset[str]:
        """Names of the metrics whose high values are bad."""
        return self._plan.inverted

    @property
    def latest(self) -> Reading | None:
        """The reading with the highest tick number, ``None`` before the first."""
        return self._ring.latest

    def history(self, n: int | None = None) -> list[Reading]:
        """Return up to ``n`` readings, newest tick first; ``None`` = all that are kept, 0 or less = none."""
        return self._ring.newest(n)

    def since(self, seq: int) -> Poll[Reading]:
        """Return all kept readings of ticks above ``seq``, oldest first.

        ``missed`` of the list is the number of further readings that had already left the buffer, up to its size.
        """
        return self._ring.since(seq)

    async def measure(self, tick: Tick | None = None, /) -> Reading:
        """Measure now; the calling event loop stays free. Without a tick, the sensor numbers the reading itself.

        Async plug-ins are awaited on the calling loop. Cancelling the caller ends the measurement without a reading.
        """
        return await drive_async(self._steps(tick))

    def measure_sync(self, tick: Tick | None = None, /, *, until: float | None = None) -> Reading:
        """Measure now, from any thread. Inside a running event loop, the loop waits.

        Async plug-ins are awaited on a loop that the package keeps on a thread of its own.

        Parameters
        ----------
        tick : Tick, optional
            Number and time of the reading.
        until : float, optional
            Time, as :func:`time.monotonic` tells it, by which to be done, if that is before ``timeout_s`` is over.
        """
        # A callback is the host's code and may block, so it never runs on the caller's thread.
        in_place = self._plan.in_place and self._on_reading is None
        return drive_sync(self._steps(tick, in_place=in_place, until=until))

    def unembedded(self) -> list[str]:
        """Return the texts that a measurement would have to embed now.

        Returns
        -------
        list of str
            Empty also if the provider or the embedder is not of this package: theirs are asked at a tick only.
        """
        return self._plan.unembedded(self._windows)

    def _steps(self, tick: Tick | None, *, in_place: bool = False, until: float | None = None) -> Steps[Reading]:
        if tick is not None and not isinstance(tick, Tick):
            raise TypeError(f"tick must be a Tick, not {tick!r}")
        tick = tick or Tick()
        now = time.monotonic()
        deadline = min(now + self.timeout_s, now + self.timeout_s if until is None else until)
        # Number and place in the queue at once, so that readings are made in the order of their numbers.
        with self._lock:
            seq = tick.seq if tick.seq is not None else self._last_seq + 1
            self._last_seq = max(self._last_seq, seq)
            turn = self._turnstile.enter(deadline)
        try:
            if not self._turnstile.is_in(turn):
                yield turn.gate, max(deadline - now, 0.0)
            if not self._turnstile.is_in(turn):
                message = f"an earlier measurement was not done after {self.timeout_s:g} s"
                return self._store(self._plan.blank(seq, _ts(tick), "sensor", "timeout", message))
            if disabled():
                return self._plan.blank(seq, _ts(tick), "sensor", "disabled", "COHERENCE_DISABLED is set")
            if in_place:
                reading = Measurement(self._plan, self._windows, seq, tick, deadline).in_place()
                if reading is not None:
                    return self._store(self._lit(reading))
            return (yield from run_stages(self._stages(seq, tick, deadline)))
        except Exception as error:  # a fault of this package must not reach the host
            return self._store(self._plan.blank(seq, _ts(tick), "sensor", type(error).__name__, failed(error).message))
        finally:
            self._turnstile.leave(turn, time.monotonic())

    def _stages(self, seq: int, tick: Tick, deadline: float) -> Stages[Reading]:
        reading = self._lit((yield from Measurement(self._plan, self._windows, seq, tick, deadline).stages()))
        # Before the callback, which may ask the sensor for its newest reading.
        self._store(reading)
        callback = self._on_reading
        if callback is None:
            return reading
        call = PluginCall("on_reading", lambda: callback(reading), self._callback_breaker)
        yield Group([call], deadline)
        if call.failure is None:
            return reading
        marked = msgspec.structs.replace(reading, errors=(*reading.errors, call.failure))
        self._ring.replace(reading, marked)
        return marked

    def _lit(self, reading: Reading) -> Reading:
        return reading if self._light is None else self._light.lit(reading, self._windows.fingerprint)

    def _store(self, reading: Reading) -> Reading:
        self._ring.add(reading.tick_seq, reading)
        return reading


def _ts(tick: Tick) -> float:
    return tick.ts if tick.ts is not None else time.time()


def _check_list(name: str, metrics: object) -> None:
    if not isinstance(metrics, list | tuple):
        raise TypeError(f"{name} must be a list of metrics or names, not {metrics!r}")


def default_metrics() -> list[MetricFn]:
    """Return the metrics that a sensor has where none are named."""
    return [create_metric(name) for name in DEFAULT_WEIGHTS]  # type: ignore[misc]  # none of them is a scalar


def _vector_metrics(metrics: Sequence[MetricFn | str] | None) -> list[MetricFn]:
    if metrics is None:
        return default_metrics()
    _check_list("metrics", metrics)
    made: list[MetricFn] = []
    for metric in metrics:
        found = create_metric(metric) if isinstance(metric, str) else metric
        check_metric(found)
        if is_scalar(found):
            raise TypeError(f"metric {found.name!r} takes no input: pass it in scalar_metrics")
        made.append(found)  # type: ignore[arg-type]  # a scalar has just been excluded
    return made


def _scalar_metrics(metrics: Sequence[ScalarMetricFn | str], provider: StateProvider) -> list[ScalarMetricFn]:
    _check_list("scalar_metrics", metrics)
    made: list[ScalarMetricFn] = []
    for metric in metrics:
        found = create_metric(metric, provider) if isinstance(metric, str) else metric
        check_metric(found)
        if not is_scalar(found):
            raise TypeError(f"metric {found.name!r} takes an input: pass it in metrics")
        made.append(found)  # type: ignore[arg-type]  # a metric with an input has just been excluded
    return made
