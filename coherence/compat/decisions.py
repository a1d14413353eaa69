"""Answers of the classic contract: one decision of one kind, with its reason; and all findings beside it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from coherence.core.decisions import Finding

Kind: TypeAlias = Literal["continue", "circuit_break", "scope_drift_warn", "procedural_warning", "low_confidence_spans"]
"""Go on; stop; the answer is off the task; users have corrected this before; the model was unsure of some words."""

BREAKERS = (
    "cost_cap_reached",
    "quality_decline_no_recovery",
    "repeated_failure_pattern",
    "repeated_tool_call_loop",
)
"""Rules that break the circuit."""

ORDER = (*BREAKERS, "scope_drift_warn", "procedural_warning", "low_confidence_spans")
"""Rules of the contract; the first active one makes the decision."""


class CircuitBreakReason(msgspec.Struct, frozen=True, kw_only=True):
    """Reason to stop. Fields that do not belong to its kind are ``None``."""

    kind: str
    """``cost_cap_reached``, ``quality_decline_no_recovery``, ``repeated_failure_pattern`` or
    ``repeated_tool_call_loop``."""
    tokens_spent: int | None = None
    """Output tokens so far."""
    tokens_cap: int | None = None
    mean_quality_last_n: float | None = None
    """Of the last three judgements."""
    turns: int | None = None
    """Judgements that tell the decline: 3, or 5 where quality is bad all the time."""
    mean_delta: float | None = None
    """The first of these judgements less the last."""
    cluster: str | None = None
    """The tool that fails, and the first line of its error."""
    failure_count: int | None = None
    """Number of such failures."""
    tool_name: str | None = None
    consecutive_count: int | None = None
    """Repeated calls among the last 30."""


class CorrectionPattern(msgspec.Struct, frozen=True, kw_only=True):
    """Something that users correct again and again."""

    user_id: str
    topic_cluster: str
    """Beginnings of the words that the requests share, joined by ``+``."""
    pattern_name: str
    learned_from_turns: int
    """Number of times it was said, 3 or more."""
    confidence: float
    """In [0, 1): 0.5 for three fresh corrections, 0.75 for six; fading over hundreds of turns."""
    example_corrections: tuple[str, ...]
    """Newest first, at most three."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Decision of the classic contract. Fields that do not apply are ``None``."""

    kind: Kind
    drift_score: float | None = None
    """In [0, 1], 1 = the answer has nothing to do with the request; given below the threshold of 0.5, too. ``None``
    while the turn has no answer, or no request."""
    drift_tokens: tuple[str, ...] | None = None
    """Drift of the answer: what the request forbids, else what was added and not asked for, else its
    weightiest words that the request does not have."""
    task_tokens: tuple[str, ...] | None = None
    """For an answer that drifted: the weightiest words of the request."""
    reason: CircuitBreakReason | None = None
    suggestion: str | None = None
    """Reason, and a remedy, in one or two sentences."""
    patterns: tuple[CorrectionPattern, ...] | None = None
    """Corrections by users of requests like this one, whatever the kind."""
    findings: tuple[Finding, ...] = ()
    """Findings of every rule of the package, active or not, the most severe first."""

    def is_continue(self) -> bool:
        """Tell whether there is nothing to say."""
        return self.kind == "continue"

    def is_scope_drift(self) -> bool:
        """Tell whether the answer is off the task."""
        return self.kind == "scope_drift_warn"

    def is_circuit_break(self) -> bool:
        """Tell whether to stop."""
        return self.kind == "circuit_break"

    def is_procedural_warning(self) -> bool:
        """Tell whether users have corrected requests like this one."""
        return self.kind == "procedural_warning"

    def is_low_confidence(self) -> bool:
        """Tell whether the model was unsure of some of its words."""
        return self.kind == "low_confidence_spans"
