"""Errors of labelled runs, of scores, and of their comparison."""

from __future__ import annotations

from coherence.core.errors import CoherenceError


class EvaluationError(CoherenceError, ValueError):
    """Runs without labels, scores that do not fit the runs, or figures that must not be compared."""
