"""The light of a sensor of one's own: its metrics against the agent's own first readings, through a fitted scale.

How far texts lie from a goal differs from agent to agent, and from language to language; how far they have moved since
the agent began tells more. So the scale has curves for changes only. With an embedder that no scale was fitted for, a
change is first brought to the size that it would have with the scale's own embedder, by how much the agent's first
readings scatter; until those are there, the index is unknown: ``calibrating``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from coherence.core.readings import CHANGE, OWN_SCATTER, Band, FrozenDict, Reading
from coherence.core.scale import Scale
from coherence.sensor.index import DEFAULT_WEIGHTS
from coherence.sensor.light import combine, lit, scale_for, sensor_scale_for, signs_of, with_own
from coherence.sensor.own_start import OwnStart

MEASURED = tuple(DEFAULT_WEIGHTS)
"""Metrics whose change since the agent's first readings is a sign."""

FIRST = 8
"""Readings by which the scatter of an embedder without a scale is known."""

LEAST_SCATTER = 0.01
"""Scatter below which changes are not enlarged any further."""

CALIBRATING = "calibrating"


class SensorLight:
    """Make the calibrated index of one sensor's readings, in the order of their ticks.

    Parameters
    ----------
    metrics : collection of str
        Names of the sensor's metrics. Those without a curve in the scale have the stated default curve.
    inverted : collection of str
        Names of the metrics whose high values are bad.
    edges : sequence of three numbers
        Lowest index of green, yellow and orange.
    """

    def __init__(
        self,
        metrics: Collection[str],
        inverted: Collection[str],
        edges: Sequence[float],
    ) -> None:
        self.inverted = inverted
        self.edges = edges
        self._metrics = metrics
        self._changing = tuple(name for name in MEASURED if name in metrics)
        self.follow("")

    def follow(self, fingerprint: str) -> None:
        """Begin anew, with the scale of an embedder."""
        scale = sensor_scale_for(fingerprint)
        self.fingerprint = fingerprint
        self.fitted = scale.embedder == fingerprint
        """True if the scale was fitted for this embedder."""
        others = scale_for(None).curves
        # Metrics that a monitor has too take its curves, in which no embedder had a part.
        known = {name: curve for name, curve in others.items() if name in self._metrics and name not in scale.curves}
        scale = msgspec.structs.replace(scale, curves=FrozenDict({**scale.curves, **known}))
        if self._changing and not self.fitted:
            scale = msgspec.structs.replace(scale, name=f"{scale.name}+{OWN_SCATTER}")
        self.scale: Scale = with_own(scale, (name for name in self._metrics if name not in MEASURED))
        self._start = OwnStart()
        self._first: dict[str, list[float]] = {name: [] for name in self._changing}

    def signs(self, metrics: Mapping[str, float | None]) -> dict[str, float | None]:
        """Return what the scale may have a curve for, higher = worse, and learn from it."""
        found = signs_of(metrics, self.inverted)
        changes = self._start.changes(found, self._changing)
        self._start.learn(found, self._changing)
        for name in self._changing:
            value = found.get(name)
            if value is not None and len(self._first[name]) < FIRST:
                self._first[name].append(value)
            # with nothing to compare with yet, nothing has changed
            found[name + CHANGE] = None if value is None else changes.get(name + CHANGE, 0.0) * self._size(name)
        return found

    def calibrating(self) -> str:
        """Return how far the first readings are, in words; empty once the index can be told."""
        if self.fitted or not self._changing:
            return ""
        # The furthest counts: a metric that is mostly unknown must not hold up the others.
        most = max(map(len, self._first.values()))
        if most >= FIRST:
            return ""
        return f"{CALIBRATING}: {most} of {FIRST} first readings; no scale was fitted for this embedder"

    def lit(self, reading: Reading, fingerprint: str) -> Reading:
        """Return a reading with risk, index, band and cause; the vectors are of the embedder with this fingerprint."""
        if fingerprint != self.fingerprint:
            self.follow(fingerprint)
        light = combine(self.signs(reading.metrics), self.scale, edges=self.edges)
        waits = self.calibrating()
        if waits and light.risk is not None:
            unknown: FrozenDict[str, str] = FrozenDict({**reading.unknown, "coherence_index": waits})
            return msgspec.structs.replace(
                reading,
                coherence_index=None,
                band=Band.UNKNOWN,
                coverage=light.coverage,
                unknown=unknown,
                losses=FrozenDict(),
                cause=CALIBRATING,
                scale=self.scale.name,
            )
        return lit(reading, light, self.scale)

    def _size(self, name: str) -> float:
        """Return by how much a change is to be multiplied to be of the scale's size."""
        usual = self.scale.scatter.get(name)
        if self.fitted or usual is None:
            return 1.0
        first = self._first[name]
        mean = sum(first) / len(first)
        return usual / max(sum(abs(value - mean) for value in first) / len(first), LEAST_SCATTER)
