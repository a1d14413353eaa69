"""Tests of coherence.evaluation."""
