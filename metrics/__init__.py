"""The metrics this package ships."""

from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_names

if TYPE_CHECKING:
    from coherence.metrics.contradiction_pressure import ContradictionPressure, compute_contradiction_pressure
    from coherence.metrics.cost import Cost
    from coherence.metrics.course import (
        Breakdown,
        CostSurge,
        FailureStreak,
        GoalLoss,
        IdenticalCalls,
        Novelty,
        Reversal,
        Stall,
        UnknownId,
    )
    from coherence.metrics.error_rate import ErrorRate, RecentErrorRate
    from coherence.metrics.goal_drift import GoalDrift, compute_goal_drift
    from coherence.metrics.goal_hijack import GoalHijack
    from coherence.metrics.grounding import Grounding, compute_grounding
    from coherence.metrics.memory_retention import MemoryRetention, compute_memory_retention
    from coherence.metrics.outcome_risk import OutcomeRisk
    from coherence.metrics.semantic_diffusion import SemanticDiffusion, compute_semantic_diffusion
    from coherence.metrics.step_drift import StepDrift
    from coherence.metrics.token_usage import TokenUsage
    from coherence.metrics.unsupported_assumption import UnsupportedAssumption
    from coherence.metrics.unused_output import UnusedOutput
    from coherence.metrics.vitals import (
        ContextExhaustion,
        Drift,
        GoalCoherence,
        Repetition,
        Uncertainty,
        Unmeasured,
        WordedUncertainty,
    )

_HOME = {
    "Breakdown": "coherence.metrics.course",
    "ContextExhaustion": "coherence.metrics.vitals",
    "ContradictionPressure": "coherence.metrics.contradiction_pressure",
    "Cost": "coherence.metrics.cost",
    "CostSurge": "coherence.metrics.course",
    "Drift": "coherence.metrics.vitals",
    "ErrorRate": "coherence.metrics.error_rate",
    "FailureStreak": "coherence.metrics.course",
    "GoalCoherence": "coherence.metrics.vitals",
    "GoalDrift": "coherence.metrics.goal_drift",
    "GoalHijack": "coherence.metrics.goal_hijack",
    "GoalLoss": "coherence.metrics.course",
    "Grounding": "coherence.metrics.grounding",
    "IdenticalCalls": "coherence.metrics.course",
    "MemoryRetention": "coherence.metrics.memory_retention",
    "Novelty": "coherence.metrics.course",
    "OutcomeRisk": "coherence.metrics.outcome_risk",
    "RecentErrorRate": "coherence.metrics.error_rate",
    "Repetition": "coherence.metrics.vitals",
    "Reversal": "coherence.metrics.course",
    "SemanticDiffusion": "coherence.metrics.semantic_diffusion",
    "Stall": "coherence.metrics.course",
    "StepDrift": "coherence.metrics.step_drift",
    "TokenUsage": "coherence.metrics.token_usage",
    "Uncertainty": "coherence.metrics.vitals",
    "UnknownId": "coherence.metrics.course",
    "Unmeasured": "coherence.metrics.vitals",
    "UnsupportedAssumption": "coherence.metrics.unsupported_assumption",
    "UnusedOutput": "coherence.metrics.unused_output",
    "WordedUncertainty": "coherence.metrics.vitals",
    "compute_contradiction_pressure": "coherence.metrics.contradiction_pressure",
    "compute_goal_drift": "coherence.metrics.goal_drift",
    "compute_grounding": "coherence.metrics.grounding",
    "compute_memory_retention": "coherence.metrics.memory_retention",
    "compute_semantic_diffusion": "coherence.metrics.semantic_diffusion",
}

__all__ = [
    "Breakdown",
    "ContextExhaustion",
    "ContradictionPressure",
    "Cost",
    "CostSurge",
    "Drift",
    "ErrorRate",
    "FailureStreak",
    "GoalCoherence",
    "GoalDrift",
    "GoalHijack",
    "GoalLoss",
    "Grounding",
    "IdenticalCalls",
    "MemoryRetention",
    "Novelty",
    "OutcomeRisk",
    "RecentErrorRate",
    "Repetition",
    "Reversal",
    "SemanticDiffusion",
    "Stall",
    "StepDrift",
    "TokenUsage",
    "Uncertainty",
    "UnknownId",
    "Unmeasured",
    "UnsupportedAssumption",
    "UnusedOutput",
    "WordedUncertainty",
    "compute_contradiction_pressure",
    "compute_goal_drift",
    "compute_grounding",
    "compute_memory_retention",
    "compute_semantic_diffusion",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
