"""What is checked of what an agent states: settings."""

from __future__ import annotations

import msgspec

from coherence.plain import check_number
from coherence.provenance.extractors import DEFAULT


class GroundingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is checked of what the agent states, and whether an answer can fail a run."""

    extractors: tuple[str, ...] = DEFAULT
    """Names of what is looked for: this package's (:data:`~coherence.provenance.extractors.BUILT_IN`) or registered
    ones. Earlier ones take their stretch of a text from later ones."""
    gate: float | None = None
    """Least ``grounding`` of the last answer, in [0, 1], with which a run counts as a success; default: not asked."""

    def __post_init__(self) -> None:
        if self.gate is not None:
            check_number("grounding gate", self.gate, least=0.0, most=1.0)
