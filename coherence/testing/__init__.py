"""For your own tests: contract checks for plug-ins, and fakes."""

from coherence.testing.contract import Check, checks_for, sample_inputs, sample_states
from coherence.testing.fakes import CountingEmbedder, TableEmbedder, metric_input

__all__ = ["Check", "CountingEmbedder", "TableEmbedder", "checks_for", "metric_input", "sample_inputs", "sample_states"]
