"""Measuring: one reading a tick, whatever the plug-ins do."""

from coherence.sensor.index import BandEdges, classify_band, compute_coherence_index
from coherence.sensor.sensor import CoherenceSensor

__all__ = ["BandEdges", "CoherenceSensor", "classify_band", "compute_coherence_index"]
