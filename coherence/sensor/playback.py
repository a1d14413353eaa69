"""Stand-ins for what a recording holds: vectors that were made, and values of metrics that somebody else wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coherence.core.errors import UnknownSourceError, VectorError
from coherence.core.readings import Evidence, MetricInput, Reading


class RecordedEmbedder:
    """An embedder that makes no vectors: an embedding cache finds all of them in its book.

    Parameters
    ----------
    fingerprint : str
        That of the embedder that made them.
    """

    in_place = True

    dimensions = 0

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def embed(self, text: str) -> npt.NDArray[np.float32]:
        """Refuse: the text is not in the recording."""
        raise VectorError("this text was never embedded in the recording")

    def embed_batch(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Refuse likewise."""
        raise VectorError("these texts were never embedded in the recording")


@dataclass
class Shown:
    """The recorded reading that stand-ins repeat."""

    reading: Reading | None = None


@dataclass(frozen=True)
class RecordedScalar:
    """A metric without an input, as recorded."""

    in_place = True

    name: str
    inverted: bool
    shown: Shown = field(repr=False)

    def compute(self) -> float | None:
        """Return the recorded value, or raise with the reason why it had none."""
        reading = self.shown.reading
        if reading is not None and self.name in reading.unknown:
            raise UnknownSourceError(reading.unknown[self.name])
        return None if reading is None else reading.metrics.get(self.name)

    def explain(self) -> Evidence | None:
        """Return the recorded evidence."""
        return self.shown.reading.evidence.get(self.name) if self.shown.reading is not None else None


@dataclass(frozen=True)
class RecordedMetric:
    """A metric with an input, as recorded."""

    in_place = True

    name: str
    inverted: bool
    shown: Shown = field(repr=False)

    def compute(self, data: MetricInput) -> float | None:
        """Return the recorded value, or raise with the reason why it had none."""
        return RecordedScalar(self.name, self.inverted, self.shown).compute()

    def explain(self, data: MetricInput) -> Evidence | None:
        """Return the recorded evidence."""
        return RecordedScalar(self.name, self.inverted, self.shown).explain()
