"""Score a recorded run: one reading a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from coherence.metrics import ContradictionPressure, GoalDrift, MemoryRetention, SemanticDiffusion
from coherence.protocols import Embedder
from coherence.providers.transcript import Transcript, TranscriptState
from coherence.records import Band, Evidence, Reading, Tick
from coherence.registry import create_metric, is_scalar
from coherence.sensor.core import CoherenceSensor
from coherence.sensor.embedding import EmbeddingCache

STEP_TIMEOUT_S = 60.0
"""Seconds a step may take: nobody's agent waits for a recorded run."""


class ScoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run and its readings; ``readings[i]`` was measured after step ``i``."""

    transcript: Transcript
    readings: tuple[Reading, ...]
    context_steps: tuple[tuple[int, ...], ...]
    """For each step, the steps that its context is made of."""
    inverted: frozenset[str] = frozenset()
    """Names of the metrics whose high values are bad."""

    @property
    def measured(self) -> list[Reading]:
        """Readings at which anything was known."""
        return [reading for reading in self.readings if reading.coverage > 0]

    @property
    def last(self) -> Reading | None:
        """The newest reading at which anything was known."""
        return self.measured[-1] if self.measured else None

    @property
    def comparable(self) -> list[Reading]:
        """The readings with the widest coverage of the run; an index of fewer metrics is not like theirs."""
        widest = max((reading.coverage for reading in self.measured), default=0.0)
        return [reading for reading in self.measured if reading.coverage == widest]

    @property
    def lowest(self) -> Reading | None:
        """The first comparable reading with the lowest index."""
        return min(self.comparable, key=lambda reading: reading.coherence_index, default=None)

    @property
    def bands(self) -> list[Band | None]:
        """The band after each step; ``None`` where nothing was known."""
        return [reading.band if reading.coverage > 0 else None for reading in self.readings]

    def why(self, reading: Reading) -> str:
        """Say in words what lowers a reading most, and which step it points at."""
        name = reading.worst()
        if name is None:
            return "nothing lowers the index"
        value = reading.metrics[name]
        what = f"{name} {value:.2f}" if value is not None else f"{name} unknown"
        evidence = reading.evidence.get(name)
        return f"{what}: {self.place(reading, evidence)}{evidence}" if evidence is not None else what

    def place(self, reading: Reading, evidence: Evidence | None) -> str:
        """Name the steps that evidence points at, such as ``step 7 ``; empty if it points at no step."""
        steps = self.evidence_steps(reading, evidence)
        if not steps:
            return ""
        return f"step{'s'[: len(steps) > 1]} {' and '.join(map(str, steps))} "

    def evidence_steps(self, reading: Reading, evidence: Evidence | None) -> list[int]:
        """Return the steps that a piece of evidence points at."""
        if evidence is None or evidence.kind != "context":
            return []
        steps = self.context_steps[reading.tick_seq]
        return [steps[item] for item in evidence.items if item < len(steps)]


def score_transcript(
    transcript: Transcript,
    *,
    embedder: Embedder | EmbeddingCache | None = None,
    window: int = 20,
    metrics: Sequence[str] = (),
    on_step: Callable[[int], object] | None = None,
) -> ScoredRun:
    """Measure after every step of a run.

    Parameters
    ----------
    transcript : Transcript
        The run.
    embedder : Embedder or EmbeddingCache, optional
        Default: the shipped model.
    window : int
        Messages of context.
    metrics : sequence of str
        Names of registered metrics (scalar ones too) beside the four default ones.
    on_step : callable, optional
        Called with the number of steps done, after each.
    """
    state = TranscriptState(transcript, window=window)
    extra = [create_metric(name, state) for name in metrics]
    sensor = CoherenceSensor(
        state,
        embedder=embedder,
        metrics=[
            GoalDrift(),
            MemoryRetention(),
            ContradictionPressure(),
            SemanticDiffusion(),
            *(metric for metric in extra if not is_scalar(metric)),  # type: ignore[list-item]  # sorted by is_scalar
        ],
        scalar_metrics=[metric for metric in extra if is_scalar(metric)],  # type: ignore[misc]
        history_size=0,
        timeout_s=STEP_TIMEOUT_S,
    )
    readings: list[Reading] = []
    context_steps: list[tuple[int, ...]] = []
    while state.advance():
        readings.append(sensor.measure_sync(Tick(state.position, reason="step")))
        context_steps.append(tuple(state.context_steps))
        if on_step is not None:
            on_step(state.position + 1)
    return ScoredRun(
        transcript=transcript,
        readings=tuple(readings),
        context_steps=tuple(context_steps),
        inverted=sensor.inverted,
    )
