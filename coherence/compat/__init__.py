"""The contract of the classic event-driven regulator, on this package's rules: change one import and go on.

``from coherence.compat import Decision, LLMEvent, Regulator``; ``docs/how-to/classic-regulator.md`` lists what
differs.
"""

from coherence.compat.decisions import CircuitBreakReason, CorrectionPattern, Decision
from coherence.compat.events import LLMEvent
from coherence.compat.regulator import Regulator

__version__ = "0.1.0"
"""Of the contract that is kept."""

__all__ = ["CircuitBreakReason", "CorrectionPattern", "Decision", "LLMEvent", "Regulator", "__version__"]
