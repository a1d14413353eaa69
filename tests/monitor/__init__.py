"""Tests of coherence.monitor."""
