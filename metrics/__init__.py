"""The metrics this package ships; one file each. See ``docs/metrics.md`` for what they can and cannot say."""

from coherence.metrics.contradiction_pressure import ContradictionPressure, compute_contradiction_pressure
from coherence.metrics.cost import Cost
from coherence.metrics.error_rate import ErrorRate
from coherence.metrics.goal_drift import GoalDrift, compute_goal_drift
from coherence.metrics.memory_retention import MemoryRetention, compute_memory_retention
from coherence.metrics.semantic_diffusion import SemanticDiffusion, compute_semantic_diffusion
from coherence.metrics.token_usage import TokenUsage

__all__ = [
    "ContradictionPressure",
    "Cost",
    "ErrorRate",
    "GoalDrift",
    "MemoryRetention",
    "SemanticDiffusion",
    "TokenUsage",
    "compute_contradiction_pressure",
    "compute_goal_drift",
    "compute_memory_retention",
    "compute_semantic_diffusion",
]
