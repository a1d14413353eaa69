"""Replay: a session computed again from its recording alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from coherence.core.config import MonitorConfig
from coherence.core.decisions import Finding
from coherence.core.errors import CoherenceError
from coherence.core.events import Event, Ticked, decode_event
from coherence.core.readings import Reading
from coherence.monitor.codec import decode_result, encode_result, is_kept
from coherence.monitor.pipeline import AgentPipeline, Plugins
from coherence.monitor.recorder import StoreBook
from coherence.monitor.session_header import NOTHING, SessionHeader, is_without_text, read_beginning
from coherence.monitor.snapshots import unpack
from coherence.monitor.tick_result import TickResult
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.sensor.playback import RecordedEmbedder, RecordedMetric, RecordedScalar, Shown
from coherence.store.rows import EventRow, SessionRow
from coherence.store.store import Store

NOBODY_WAITS_S = 3_600.0
"""Seconds a measurement may take in a replay."""


class ReplayError(CoherenceError):
    """A session cannot be replayed: its beginning was removed, or another version recorded it."""


class ReplayStep(msgspec.Struct, frozen=True):
    """One event of a replay, and what came of it."""

    row: EventRow
    event: Event
    computed: TickResult | None = None
    equal: bool = True
    """True where what was computed is what was recorded, bit for bit."""
    kept: bool = False
    """True where the recorded result was taken, because it cannot be computed again."""

    @property
    def seq(self) -> int:
        """The event's number."""
        return self.row.seq

    @property
    def recorded(self) -> TickResult | None:
        """Recorded result."""
        return decode_result(self.row)


class ReplayDifference(msgspec.Struct, frozen=True):
    """A tick at which a replay does not give what was recorded."""

    seq: int
    what: str
    recorded: Any
    computed: Any


class Report(msgspec.Struct, kw_only=True):
    """Result of a replay."""

    agent: str
    session: str
    events: int = 0
    ticks: int = 0
    equal: int = 0
    kept: int = 0
    """Ticks taken as recorded, of those that are equal."""
    differences: list[ReplayDifference] = []
    """The first twenty."""


class Replay:
    """One session, event by event.

    Vectors, configuration, budgets, what came from other agents, the values of foreign metrics and the findings of
    foreign rules come from the recording; everything else is computed again.

    Parameters
    ----------
    store : Store
        Holds the session.
    row : SessionRow
        Which.
    config : MonitorConfig, optional
        Another configuration: what would have been.

    Raises
    ------
    ReplayError
        If the session's beginning is no longer there or cannot be read, or other settings do not fit the session.
    """

    def __init__(self, store: Store, row: SessionRow, config: MonitorConfig | None = None) -> None:
        self.row = row
        self._store = store
        if is_without_text(row):
            raise ReplayError(
                f"session {row.session} of {row.agent} has no texts (it was recorded with privacy='no-text', or "
                "purged): its readings and decisions can be read, and none can be computed again"
            )
        try:
            beginning = read_beginning(row)
        except ValueError as error:
            raise ReplayError(str(error)) from error
        self._shown = Shown()
        self._foreign = bool(beginning.settings.metrics)
        # a rule may find things under its own name with a dot and a part
        self._rules = frozenset(name.partition(".")[0] for name in beginning.settings.rules)
        # without vectors, which a purge takes away from all sessions that were there
        self._recorded_only = beginning.settings.fingerprint is None or row.started <= store.last_purge()
        try:
            self.pipeline = self._make_pipeline(beginning, config or beginning.effective)
        except (TypeError, ValueError) as error:  # a weight of a metric that the session does not have
            raise ReplayError(f"session {row.session} of {row.agent}: the settings do not fit: {error}") from error
        self._after = self._begin(beginning, other=config is not None)

    def _make_pipeline(self, beginning: SessionHeader, config: MonitorConfig) -> AgentPipeline:
        settings = beginning.settings
        cache = None
        if settings.fingerprint != NOTHING:
            cache = EmbeddingCache(RecordedEmbedder(settings.fingerprint or "none"), book=StoreBook(self._store))
        metrics = [
            (RecordedScalar if spec.scalar else RecordedMetric)(spec.name, spec.inverted, self._shown)
            for spec in settings.metrics
        ]
        return AgentPipeline(
            msgspec.structs.replace(config, timeout_s=NOBODY_WAITS_S),
            cache,
            budget=settings.budget,
            tree_budget=settings.tree_budget,
            policies=beginning.policies,
            calibration=beginning.calibration,
            plugins=Plugins(metrics),
            name=(self.row.agent, self.row.session),
        )

    def _begin(self, beginning: SessionHeader, *, other: bool) -> int:
        first = next(self._store.events(self.row.id, limit=1), None)
        if first is None or first.seq == 1:
            start = beginning.start_data()
            if start is not None:
                self.pipeline.restore(unpack(start))
            return 0
        found = self._store.snapshot(self.row.id)
        # With other settings a kept state is no beginning: events under them would have led to another one.
        if found is None or found[0] < first.seq - 1 or other:
            raise ReplayError(
                f"session {self.row.session} of {self.row.agent}: events 1 to {first.seq - 1} were removed by retention"
                + ("" if other else " and no state is kept from after them")
            )
        self.pipeline.restore(unpack(found[1]))
        return found[0]

    def steps(self, until: int | None = None) -> Iterator[ReplayStep]:
        """Yield the events with what was recorded and what is computed."""
        for row in self._store.events(self.row.id, after=self._after, until=until):
            try:
                event = decode_event(row.data)
                kept = is_kept(row)
            except ValueError as error:  # msgspec's errors too
                raise ReplayError(
                    f"event {row.seq} of {self.row.agent}/{self.row.session} cannot be read ({error}); "
                    "`coherence audit verify` tells whether it was altered"
                ) from error
            if type(event) is not Ticked:
                self._fold(row, event)
                yield ReplayStep(row, event)
                continue
            yield self._tick(row, event, kept=kept)

    def _tick(self, row: EventRow, event: Ticked, *, kept: bool) -> ReplayStep:
        reading: Reading | None = None
        found: list[Finding] | None = None
        if kept or self._recorded_only or self._foreign or self._rules:
            recorded = decode_result(row)
            if kept:
                with suppress(Exception):  # it failed when it was recorded, too, and the agent went on
                    self.pipeline.apply(row.seq, row.ts, event, recorded)
                return ReplayStep(row, event, recorded, kept=True)
            self._shown.reading = recorded.reading if recorded is not None else None
            reading = self._shown.reading if self._recorded_only else None
            if self._rules and recorded is not None:
                found = [each for each in recorded.decision.findings if each.rule.partition(".")[0] in self._rules]
        computed = self._fold(row, event, reading, found)
        made = (None, None) if computed is None else encode_result(computed)
        return ReplayStep(row, event, computed, made == (row.reading, row.decision))

    def _fold(
        self, row: EventRow, event: Event, reading: Reading | None = None, found: list[Finding] | None = None
    ) -> TickResult | None:
        try:
            return self.pipeline.fold(row.seq, row.ts, event, reading, found)
        except Exception:  # it failed when it was recorded, too, and the agent went on
            return None

    def report(self, until: int | None = None) -> Report:
        """Replay, and compare bit for bit."""
        report = Report(agent=self.row.agent, session=self.row.session)
        for step in self.steps(until):
            report.events += 1
            if type(step.event) is not Ticked:
                continue
            report.ticks += 1
            report.equal += step.equal
            report.kept += step.kept
            if not step.equal and len(report.differences) < 20:
                report.differences.append(difference(step))
        return report


def difference(step: ReplayStep) -> ReplayDifference:
    """Say where a tick's recorded and computed verdicts first differ."""
    recorded, computed = msgspec.to_builtins(step.recorded), msgspec.to_builtins(step.computed)
    path, left, right = _first_difference("", recorded, computed)
    if left == right:
        return ReplayDifference(
            step.seq, "columns of its row", "other than the recorded reading and decision", "the same"
        )
    return ReplayDifference(step.seq, path.lstrip("."), left, right)


def _first_difference(path: str, left: Any, right: Any) -> tuple[str, Any, Any]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            found = _first_difference(f"{path}.{key}", left.get(key), right.get(key))
            if found[1] != found[2]:
                return found
        return path, None, None
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            found = _first_difference(f"{path}[{at}]", one, other)
            if found[1] != found[2]:
                return found
        return path, None, None
    return path, left, right
