"""Result of a tick, and an event as it was folded."""

from __future__ import annotations

from typing import Any

import msgspec

from coherence.core.decisions import Appraisal, Decision, Finding, FiringOutcome
from coherence.core.events import Event, Feedback
from coherence.core.readings import Reading


class TickResult(msgspec.Struct, frozen=True):
    """Result of a tick."""

    appraisal: Appraisal
    decision: Decision
    reading: Reading | None = None
    """``None`` where a tick only asked whether a call may run."""
    kept: bool = False
    """``True`` if a replay takes it as recorded, because it cannot be computed again: something failed or was late, or
    another process wrote to the session at the same moment."""
    outcomes: tuple[FiringOutcome, ...] = ()
    """Outcomes of earlier firings that this tick could measure."""

    def moved(self, by: int, above: int) -> TickResult:
        """Return the same with every event number above a limit moved up: others wrote first."""

        def move(seq: int) -> int:
            return seq + by if seq > above else seq

        def move_finding(finding: Finding) -> Finding:
            return msgspec.structs.replace(finding, evidence=tuple(map(move, finding.evidence)))

        replace: Any = msgspec.structs.replace
        reading, guidance = self.reading, self.decision.guidance
        if guidance is not None:
            guidance = replace(guidance, evidence=tuple(map(move, guidance.evidence)))
        return TickResult(
            replace(self.appraisal, seq=move(self.appraisal.seq)),
            replace(
                self.decision,
                seq=move(self.decision.seq),
                findings=tuple(map(move_finding, self.decision.findings)),
                guidance=guidance,
            ),
            None if reading is None else replace(reading, tick_seq=move(reading.tick_seq)),
            kept=True,
            outcomes=self.outcomes,
        )


class Record(msgspec.Struct, frozen=True):
    """One event as it was folded."""

    seq: int
    ts: float
    event: Event
    result: TickResult | None = None

    def moved(self, by: int, above: int) -> Record:
        """Return the same with every number above a limit moved up."""
        result = None if self.result is None else self.result.moved(by, above)
        event = self.event
        if type(event) is Feedback and event.decision is not None and event.decision > above:
            event = msgspec.structs.replace(event, decision=event.decision + by)
        return Record(self.seq + by, self.ts, event, result)
