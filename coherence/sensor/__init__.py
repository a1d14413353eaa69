"""Measuring: one reading a tick, whatever the plug-ins do."""

from coherence.sensor.index import Thresholds, classify_band, compute_coherence_index
from coherence.sensor.sensor import CoherenceSensor

__all__ = ["CoherenceSensor", "Thresholds", "classify_band", "compute_coherence_index"]
