"""One tick: read the state, embed what is new, run the metrics, and make a reading of whatever came through."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import is_
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from coherence.core.calls import Breaker, PluginCall, failed, runs_in_place
from coherence.core.errors import UnknownSourceError
from coherence.core.plain import is_a, type_name
from coherence.core.plugin_calls import Group, Stages
from coherence.core.protocols import MetricFn, ScalarMetricFn, StateProvider
from coherence.core.readings import (
    KINDS,
    Band,
    Evidence,
    Failure,
    FrozenDict,
    Kind,
    MetricInput,
    Reading,
    Tick,
    excerpt,
    fits_line,
    freeze,
)
from coherence.core.vectors import Half
from coherence.sensor.embedding_cache import REPORT_AT_MOST, EmbeddingCache
from coherence.sensor.index import BandEdges, Missing, band_of, score
from coherence.sensor.windows import Windows

MAX_TEXTS = 2_000_000
"""Texts that one source may have."""

MAX_WHY = 240
"""Characters that a piece of evidence may say of its items."""

MAX_ITEMS = 8
"""Items that a piece of evidence may point at."""

SLACK = 1e-6
"""Distance from [0, 1] up to which a value is taken as rounding."""


def as_evidence(found: object) -> Evidence:
    """Check what ``explain`` returned, and cut it to a size that a reading may keep."""
    if not isinstance(found, Evidence):
        if inspect.iscoroutine(found):
            found.close()  # or Python warns that nobody awaited it
        raise TypeError(f"returned {type(found).__name__}, expected Evidence or None")
    if found.kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {found.kind!r}")
    why = found.why if fits_line(found.why, MAX_WHY) else excerpt(found.why, MAX_WHY)
    # A plug-in's subclass is copied into plain parts: it may hold on to anything, or change later.
    if type(found) is Evidence and why == found.why and found.items == () and found.texts == ():
        return found
    items, texts = tuple(map(int, found.items)), tuple(map(str, found.texts))
    return Evidence(why, found.kind, items[:MAX_ITEMS], tuple(map(excerpt, texts[:MAX_ITEMS])))


def as_texts(value: object, last: list[str]) -> list[str]:
    """Check what a getter returned; return ``last`` itself if nothing has changed."""
    kind = type(value)  # not isinstance(), which asks a value for its class: this may run on the host's thread
    if kind is not list and (issubclass(kind, str | bytes) or not issubclass(kind, Iterable)):
        raise TypeError(f"returned {type_name(value)}, expected a list of str")
    # list() of an endless iterator would never give the interpreter back
    texts: list[Any] = value if type(value) is list else list(islice(value, MAX_TEXTS + 1))  # type: ignore[call-overload]
    if len(texts) > MAX_TEXTS:
        raise ValueError(f"returned more than {MAX_TEXTS:,} texts")
    if len(texts) == len(last) and all(map(is_, texts, last)):
        return last
    if not set(map(type, texts)) <= {str}:
        for at, text in enumerate(texts):
            if not is_a(text, str):
                raise TypeError(f"item {at} is {type_name(text)}, expected str")
        # A subclass may hash, compare and hang as it likes; its characters are enough.
        texts = [str.__getitem__(text, slice(None)) for text in texts]
    if texts == last:
        return last
    return [text for text in texts if text and not text.isspace()]


def as_value(value: object) -> float | None:
    """Check what a metric returned."""
    if value is None or (type(value) is float and 0.0 <= value <= 1.0):
        return value
    number = float(value)  # type: ignore[arg-type]  # numbers of any library; the rest raises TypeError
    # written so that NaN is refused too
    if not -SLACK <= number <= 1.0 + SLACK:
        raise ValueError(f"returned {number}, outside [0, 1]")
    return min(max(number, 0.0), 1.0)


Given: TypeAlias = Sequence[MetricInput] | None
"""A metric's input, none if it could not be prepared; ``None`` for a metric that takes no input."""


class Result(NamedTuple):
    """Result of one metric."""

    value: float | None
    evidence: Evidence | None = None
    reason: str = ""
    """Reason that the metric gives for having no value."""


SILENT = Result(None)
"""Of a metric that has no value and does not say why."""


def compute_from(metric: Any, data: Given) -> Any:
    """Return what a metric gives for its input; a value that must be awaited too."""
    if data is None:
        return metric.compute()
    if not data:
        raise UnknownSourceError("the state could not be prepared")
    return metric.compute(data[0])


def explain_from(metric: MetricFn | ScalarMetricFn, data: Given) -> Evidence | None:
    """Return what a metric whose value is known points at, ``None`` if nothing."""
    explain = getattr(metric, "explain", None)
    found = explain(*data or ()) if callable(explain) else None
    return None if found is None else as_evidence(found)


def unexplained(failure: Failure) -> Failure:
    """Return the failure of an explanation, as a reading shows it: the value stands."""
    return Failure(failure.source, failure.kind, f"explain failed: {failure.message}")


def tried(metric: MetricFn | ScalarMetricFn, data: Given, errors: list[Failure]) -> Result:
    """Ask a metric on the calling thread; a failure is reported, and costs the value or the evidence only."""
    try:
        found = metric.compute() if data is None else compute_from(metric, data)  # type: ignore[call-arg]
        value = found if found is None else as_value(found)
    except UnknownSourceError as error:
        return Result(None, reason=str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit of a plug-in must not reach the host either
        errors.append(Failure(f"metric {metric.name}", type(error).__name__, failed(error).message))
        return Result(None, reason=f"failed: {type(error).__name__}")
    if value is None:
        return SILENT
    try:
        told = value >= getattr(metric, "told_from", 0.0)
        return Result(value, explain_from(metric, data) if told else None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        errors.append(unexplained(Failure(f"metric {metric.name}", type(error).__name__, failed(error).message)))
        return Result(value)


GETTERS: Mapping[Kind, str] = {
    "goals": "get_goals",
    "context": "get_recent_context",
    "memories": "get_goal_relevant_memories",
    "all_memories": "get_all_memories",
}

LIGHT, LIGHT_ROWS = 32, 600
"""New texts, and texts in all, up to which plug-ins that may run in place do so."""

IN_PLACE_ROWS = 2_000
"""Texts in all up to which a tick whose parts may all run in place does so."""


class MeasurePlan:
    """Metrics of one sensor; fixed for its life, except the breakers."""

    def __init__(
        self,
        provider: StateProvider,
        cache: EmbeddingCache,
        metrics: Sequence[MetricFn],
        scalars: Sequence[ScalarMetricFn],
        weights: Mapping[str, float],
        thresholds: BandEdges,
        missing: Missing,
    ) -> None:
        self.provider = provider
        self.cache = cache
        self.metrics = metrics
        self.scalars = scalars
        self.weights = weights
        self.thresholds = thresholds
        self.missing: Missing = missing
        together: tuple[MetricFn | ScalarMetricFn, ...] = (*metrics, *scalars)
        self.inverted = frozenset(metric.name for metric in together if metric.inverted)
        self.names = tuple(metric.name for metric in together)
        self.state_in_place = runs_in_place(provider, *GETTERS.values())
        self.embedder_in_place = runs_in_place(cache.embedder, "embed", "embed_batch")
        self.metrics_in_place = all(runs_in_place(metric, "compute", "explain") for metric in together)
        self.in_place = self.state_in_place and self.embedder_in_place and self.metrics_in_place
        """True if everything may run on the caller's thread."""
        pure = {metric.name: _sources_of(metric) for metric in metrics if getattr(metric, "pure", False) is True}
        told = isinstance(getattr(provider, "told", None), int)
        steady = frozenset(each.name for each in together if told and getattr(each, "steady", False) is True)
        places = {name: tuple(map(KINDS.index, kinds)) for name, kinds in pure.items()} | dict.fromkeys(steady, ())
        self.asked = tuple(
            (metric, metric.name, at < len(metrics), places.get(metric.name)) for at, metric in enumerate(together)
        )
        """Each metric with its name, whether it takes an input, and what it stands still with: the sources of one that
        depends on them alone (places in ``KINDS``), nothing of one that changes with what the provider was told too,
        ``None`` of any other."""
        self.sources = frozenset(filter(None, places.values()))
        """Sources of the metrics that depend on sources alone, as places in ``KINDS``."""
        moving = tuple((metric, name, takes) for metric, name, takes, stands in self.asked if stands is None)
        self.moving: tuple[tuple[Any, str], ...] | None = None
        """Metrics that may change while the provider is told nothing; ``None`` where that says nothing of its texts."""
        if told and self.in_place and not any(takes for _, _, takes in moving):
            self.moving = tuple((metric, name) for metric, name, _ in moving)
        wanted = {need for metric in metrics for need in getattr(metric, "needs", ())}
        self.getters: dict[Kind, Callable[[], Any]] = {
            kind: partial(_fetched, provider, name)
            for kind, name in GETTERS.items()
            # All memories may be many: they are asked for only where a metric names them.
            if metrics and (kind != "all_memories" or "all_memories" in wanted)
        }
        self.reads: dict[str, tuple[Kind, ...]] = {
            metric.name: tuple(getattr(metric, "reads", None) or ()) for metric in metrics
        }
        self.reasoned = {scalar.name: scalar for scalar in scalars if runs_in_place(scalar, "why_unknown")}
        self.source_breakers = {kind: Breaker() for kind in self.getters}
        self.metric_breakers = {name: Breaker() for name in self.names}
        self.explain_breakers = {
            metric.name: Breaker() for metric in together if callable(getattr(metric, "explain", None))
        }
        self.embedder_breaker = Breaker()
        self.prepare_breaker = Breaker()

    def reading(
        self,
        seq: int,
        ts: float,
        values: Mapping[str, float | None],
        unknown: Mapping[str, str],
        evidence: Mapping[str, Evidence],
        errors: Iterable[Failure],
    ) -> Reading:
        """Put a reading together."""
        scored = score(values, self.weights, self.inverted, self.missing)
        known = scored.coverage > 0 or bool(
            scored.losses
        )  # an unknown value that counts as 0 loses something, or nothing
        return Reading(
            tick_seq=seq,
            ts=ts,
            metrics=freeze(values),
            coherence_index=scored.index if known else None,
            band=band_of(scored.index, self.thresholds) if known else Band.UNKNOWN,
            coverage=scored.coverage,
            errors=tuple(errors),
            unknown=freeze(unknown),
            losses=freeze(scored.losses),
            evidence=freeze(evidence),
        )

    def unembedded(self, windows: Windows) -> list[str]:
        """Return the texts that a measurement would have to embed now, if all that it asks may run in place."""
        if not self.metrics or not (self.state_in_place and self.embedder_in_place):
            return []
        wanted: dict[str, None] = {}
        for kind, getter in self.getters.items():
            texts = as_texts(getter(), windows[kind].raw)
            if texts is not windows[kind].raw:
                wanted |= dict.fromkeys(windows[kind].unseen(texts))
        return self.cache.find(wanted, {}) if wanted else []

    def blank(self, seq: int, ts: float, source: str, kind: str, message: str) -> Reading:
        """Return the reading of a tick at which nothing could be measured."""
        unknown = dict.fromkeys(self.names, message)
        return self.reading(seq, ts, dict.fromkeys(self.names), unknown, FrozenDict(), [Failure(source, kind, message)])


class Measurement:
    """The steps of one tick, and what they have found so far."""

    def __init__(self, plan: MeasurePlan, windows: Windows, seq: int, tick: Tick, deadline: float) -> None:
        self.plan = plan
        self.windows = windows
        self.tick = Tick(seq, tick.ts if tick.ts is not None else time.time(), tick.reason)
        self.deadline = deadline
        self.absent: dict[str, str] = {}
        """Source -> why its texts or vectors are not known at this tick."""
        self.errors: list[Failure] = []
        self.vectors: dict[str, Half | str] = {}
        """Text -> vector, or why it has none; only what is new in a window."""
        self.missing: dict[Kind, list[str]] = {}
        self.wanted: list[str] = []
        self.fingerprint = ""

    def stages(self) -> Stages[Reading]:
        """Read, embed, measure."""
        lists = yield from self._read()
        yield from self._embed(lists)
        return (yield from self._run_metrics(lists))

    def in_place(self) -> Reading | None:
        """Do the same on the calling thread, where no timeout ends it; ``None``: there is too much to do it there."""
        plan, windows = self.plan, self.windows
        if plan.moving is not None and windows.standing == self._told() and windows.fingerprint == self._made_by():
            asked = ((name, self._asked(metric, None, {})) for metric, name in plan.moving)
            moved = {name: (None, found) for name, found in asked if found != windows.results[name][1]}
            if not moved and not self.errors and windows.reading is not None:
                return replace(windows.reading, tick_seq=self.tick.seq or 0, ts=self.tick.ts or 0.0)
            windows.results = windows.results | moved
            return self._told_by(windows.results)
        lists: dict[Kind, list[str]] = {
            kind: as_texts(getter(), windows[kind].raw) for kind, getter in plan.getters.items()
        }
        if sum(map(len, lists.values())) > IN_PLACE_ROWS:
            return None
        if plan.metrics:
            self._look_up(lists)
            if self.wanted:
                plan.cache.make(self.wanted, self._until(0.9), self.errors)
        return self._finish(lists)

    def _told(self) -> tuple[object, ...]:
        """Return what the windows and all metrics but the moving ones depend on."""
        return self.plan, getattr(self.plan.provider, "told", None), self.windows.generation

    def _made_by(self) -> str:
        """Return the fingerprint of the vectors, empty where there are none."""
        return self.plan.cache.fingerprint if self.plan.metrics else ""

    def _finish(self, lists: Mapping[Kind, list[str]]) -> Reading:
        """Run metrics that are all our own, without the machinery against strangers' code."""
        plan, windows = self.plan, self.windows
        data = [self._prepare(lists)] if plan.metrics else []
        kept: Mapping[str, tuple[object, Result]] = windows.results
        results: dict[str, tuple[object, Result]] = {}
        # With why a source is absent: its version alone is the same before and after it fails.
        versions = [(windows[kind].version, self.absent.get(kind)) for kind in KINDS]
        told = (plan, getattr(plan.provider, "told", None), *versions)
        seen_of: dict[tuple[int, ...], tuple[Any, ...]] = {
            places: (plan, *map(versions.__getitem__, places)) for places in plan.sources
        }
        for metric, name, takes, places in plan.asked:
            seen = None if places is None else seen_of[places] if places else told
            known = kept.get(name) if seen is not None else None
            if known is None or known[0] != seen:
                known = seen, self._asked(metric, data if takes else None, lists)
            results[name] = known
        windows.results = results
        windows.standing = None if self.errors or self.absent else self._told()
        return self._told_by(results)

    def _asked(self, metric: Any, data: Given, lists: Mapping[Kind, list[str]]) -> Result:
        """Ask a metric, and say why it has no value where it does not."""
        found = tried(metric, data, self.errors)
        if found.value is None and not found.reason:
            return Result(None, reason=self._why_none(metric.name, lists))
        return found

    def _told_by(self, results: Mapping[str, tuple[object, Result]]) -> Reading:
        """Return the reading of what all metrics have told, in their order."""
        plan, windows = self.plan, self.windows
        values = {name: found.value for name, (_, found) in results.items()}
        evidence = {name: found.evidence for name, (_, found) in results.items() if found.evidence is not None}
        unknown = {name: found.reason for name, (_, found) in results.items() if found.value is None}
        reading = plan.reading(self.tick.seq or 0, self.tick.ts or 0.0, values, unknown, evidence, self.errors)
        windows.reading = None if self.errors else reading
        return reading

    def _until(self, share: float) -> float:
        # A share of what is left, so that a stage that overruns leaves something for those after it.
        now = time.monotonic()
        return now + (self.deadline - now) * share

    def _read(self) -> Stages[dict[Kind, list[str]]]:
        calls: dict[Kind, PluginCall] = {
            kind: PluginCall(
                f"provider.{GETTERS[kind]}",
                getter,
                self.plan.source_breakers[kind],
                partial(as_texts, last=self.windows[kind].raw),
            )
            for kind, getter in self.plan.getters.items()
        }
        yield Group(list(calls.values()), self._until(0.8), in_place=self.plan.state_in_place)
        lists: dict[Kind, list[str]] = {}
        for kind, call in calls.items():
            if call.failure is None:
                lists[kind] = call.value
            else:
                self.errors.append(call.failure)
                self.absent[kind] = f"{GETTERS[kind]} failed: {call.failure.kind}"
        return lists

    def _embed(self, lists: Mapping[Kind, list[str]]) -> Stages[None]:
        plan = self.plan
        # A call like any other: it asks a stranger's embedder for its fingerprint.
        look_up = PluginCall("embedder", lambda: self._look_up(lists), plan.embedder_breaker)
        rows = sum(map(len, lists.values()))
        yield Group([look_up], self._until(0.9), in_place=plan.embedder_in_place and rows <= LIGHT_ROWS)
        if look_up.failure is not None:
            self.errors.append(look_up.failure)
            self.absent |= dict.fromkeys(lists, f"the embedder failed: {look_up.failure.kind}")
        if not self.wanted:
            return
        # A list of its own: an abandoned call writes to it after the reading is made.
        report: list[Failure] = []
        until = self._until(0.9)
        make = PluginCall("embedder", lambda: plan.cache.make(self.wanted, until, report), plan.embedder_breaker)
        # Pacing inside make() ends in time; only a single text that hangs is cut off, a little later.
        yield Group([make], self._until(0.95))
        self.errors += report
        if make.failure is not None:
            self.errors.append(make.failure)

    def _look_up(self, lists: Mapping[Kind, list[str]]) -> None:
        """Find what is embedded already; runs on the worker."""
        cache, windows = self.plan.cache, self.windows
        self.fingerprint = cache.fingerprint
        windows.follow(self.fingerprint)
        for kind, texts in lists.items():
            if texts is not windows[kind].raw:
                self.missing[kind] = cache.find(windows[kind].unseen(texts), self.vectors, self.fingerprint)
        if any(self.missing.values()):
            cache.make_room(windows, sum(map(len, lists.values())))
            self.wanted = list(dict.fromkeys(text for texts in self.missing.values() for text in texts))

    def _prepare(self, lists: Mapping[Kind, list[str]]) -> MetricInput:
        """Bring the windows up to date and make the metrics' input of them; mostly runs on the worker."""
        left = set(self.plan.cache.find(self.wanted, self.vectors, self.fingerprint))
        for kind, texts in self.missing.items():
            late = sum(text in left for text in texts)
            if late:
                self.absent[kind] = f"{late} of {len(lists[kind])} {kind} have no vector yet"
        keep_bad = self.plan.missing == "zero"
        bad: list[Failure] = []
        for kind, texts in lists.items():
            window = self.windows[kind]
            if kind in self.absent:
                continue
            if texts is not window.raw:
                self.windows.update(kind, texts, self.vectors, keep_bad=keep_bad)
            for text, reason in window.bad.items():
                bad.append(Failure("embedder", "bad vector", f"{reason} (text “{excerpt(text, 60)}” of the {kind})"))
            if texts and not window.texts and not keep_bad:
                self.absent[kind] = f"no usable vector for any of the {kind}"
        self.errors += bad[:REPORT_AT_MOST]
        if len(bad) > REPORT_AT_MOST:
            self.errors.append(Failure("embedder", "bad vector", f"{len(bad) - REPORT_AT_MOST} more texts likewise"))
        known = {kind: self.windows[kind] for kind in lists if kind not in self.absent}
        fields: dict[str, Any] = {kind: window.matrix for kind, window in known.items()}
        fields |= {f"{kind}_texts": window.texts for kind, window in known.items()}
        return MetricInput(**fields, tick=self.tick, tables=self.windows.view(), absent=self.absent)

    def _run_metrics(self, lists: Mapping[Kind, list[str]]) -> Stages[Reading]:
        plan = self.plan
        light = plan.metrics_in_place and len(self.vectors) <= LIGHT and sum(map(len, lists.values())) <= LIGHT_ROWS
        if light and plan.state_in_place:
            return self._finish(lists)
        data: list[MetricInput] = []
        prepare = PluginCall("sensor", lambda: data.append(self._prepare(lists)), plan.prepare_breaker)
        calls: dict[str, PluginCall] = {}
        functions: list[Callable[[], Any]] = [partial(compute_from, metric, data) for metric in plan.metrics]
        functions += [partial(compute_from, scalar, None) for scalar in plan.scalars]
        for name, function in zip(plan.names, functions, strict=True):
            calls[name] = PluginCall(f"metric {name}", function, plan.metric_breakers[name], as_value)
        first = [prepare] if plan.metrics else []
        yield Group([*first, *calls.values()], self._until(0.9), in_place=light)
        if prepare.failure is not None:
            self.errors.append(prepare.failure)
        values: dict[str, float | None] = {}
        unknown: dict[str, str] = {}
        for name, call in calls.items():
            values[name] = None
            if call.failure is not None and isinstance(call.error, UnknownSourceError):
                unknown[name] = call.failure.message
            elif call.failure is not None:
                unknown[name] = f"failed: {call.failure.kind}"
                self.errors.append(call.failure)
            elif call.value is None:
                unknown[name] = self._why_none(name, lists)
            else:
                values[name] = call.value
        evidence = yield from self._explain(values, data, light=light)
        ts = self.tick.ts if self.tick.ts is not None else 0.0
        return plan.reading(self.tick.seq or 0, ts, values, unknown, evidence, self.errors)

    def _explain(
        self, values: Mapping[str, float | None], data: Sequence[MetricInput], *, light: bool
    ) -> Stages[dict[str, Evidence]]:
        """Ask the metrics with a value for its evidence: an explanation that fails or hangs costs no value."""
        plan = self.plan
        asked: list[tuple[MetricFn | ScalarMetricFn, Given]] = [(metric, data) for metric in plan.metrics]
        asked += [(scalar, None) for scalar in plan.scalars]
        calls: dict[str, PluginCall] = {}
        for metric, given in asked:
            name = metric.name
            if name in plan.explain_breakers and values[name] is not None:
                ask = partial(explain_from, metric, given)
                calls[name] = PluginCall(f"metric {name}", ask, plan.explain_breakers[name])
        if calls:
            yield Group(list(calls.values()), self._until(0.9), in_place=light)
        self.errors += [unexplained(call.failure) for call in calls.values() if call.failure is not None]
        return {name: call.value for name, call in calls.items() if call.value is not None}

    def _why_none(self, name: str, lists: Mapping[Kind, list[str]]) -> str:
        reads = self.plan.reads.get(name, ())
        empty = [kind.replace("_", " ") for kind in reads if not lists.get(kind)]
        if empty:
            return "no " + " and no ".join(empty)
        if reads == ("context",) and len(lists["context"]) == 1:
            return "only one message in the context"
        try:
            return str(self.plan.reasoned[name].why_unknown)  # type: ignore[attr-defined]  # it is optional
        except Exception:  # there is none, or it fails
            return "the metric gave no value"


def _sources_of(metric: MetricFn) -> tuple[Kind, ...]:
    return tuple(getattr(metric, "reads", None) or KINDS)


def _fetched(provider: StateProvider, getter: str) -> Any:
    return getattr(provider, getter)()
