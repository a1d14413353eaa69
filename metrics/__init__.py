"""The metrics this package ships; one file each. See ``docs/metrics.md`` for what they can and cannot say."""

from coherence.metrics.context_exhaustion import ContextExhaustion
from coherence.metrics.contradiction_pressure import ContradictionPressure, compute_contradiction_pressure
from coherence.metrics.cost import Cost
from coherence.metrics.drift import Drift
from coherence.metrics.error_rate import ErrorRate, RecentErrorRate
from coherence.metrics.goal_coherence import GoalCoherence
from coherence.metrics.goal_drift import GoalDrift, compute_goal_drift
from coherence.metrics.goal_hijack import GoalHijack
from coherence.metrics.grounding import Grounding, compute_grounding
from coherence.metrics.memory_retention import MemoryRetention, compute_memory_retention
from coherence.metrics.outcome_risk import OutcomeRisk
from coherence.metrics.repetition import Repetition
from coherence.metrics.semantic_diffusion import SemanticDiffusion, compute_semantic_diffusion
from coherence.metrics.token_usage import TokenUsage
from coherence.metrics.uncertainty import Uncertainty
from coherence.metrics.unlimited import Unlimited
from coherence.metrics.unsupported_assumption import UnsupportedAssumption
from coherence.metrics.unused_output import UnusedOutput

__all__ = [
    "ContextExhaustion",
    "ContradictionPressure",
    "Cost",
    "Drift",
    "ErrorRate",
    "GoalCoherence",
    "GoalDrift",
    "GoalHijack",
    "Grounding",
    "MemoryRetention",
    "OutcomeRisk",
    "RecentErrorRate",
    "Repetition",
    "SemanticDiffusion",
    "TokenUsage",
    "Uncertainty",
    "Unlimited",
    "UnsupportedAssumption",
    "UnusedOutput",
    "compute_contradiction_pressure",
    "compute_goal_drift",
    "compute_grounding",
    "compute_memory_retention",
    "compute_semantic_diffusion",
]
