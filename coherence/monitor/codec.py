"""Between what the column makes and what the store keeps."""

from __future__ import annotations

from typing import Any

import msgspec

from coherence.core.decisions import Appraisal, Decision, Finding, FiringOutcome, Guidance, Mode
from coherence.core.events import Event, Feedback, Message, encode_event, kind_of
from coherence.core.readings import Reading, frozen_hook
from coherence.store.rows import DecisionRow, EventRow, FiringOutcomeRow, FiringRow, ReadingRow


class TickResult(msgspec.Struct, frozen=True):
    """What came of a tick."""

    appraisal: Appraisal
    decision: Decision
    reading: Reading | None = None
    """``None`` where a tick only asked whether a call may run."""
    kept: bool = False
    """Whether a replay takes it as recorded, because it cannot be computed again: something failed or was late, or
    another process wrote to the session at the same moment."""
    outcomes: tuple[FiringOutcome, ...] = ()
    """What became of earlier firings, as far as this tick could tell."""

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


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row of ``readings`` holds."""

    reading: Reading
    appraisal: Appraisal
    kept: bool = False
    outcomes: tuple[FiringOutcome, ...] = ()


class Brief(msgspec.Struct, frozen=True):
    """As much of a recorded reading as folding needs."""

    tick_seq: int
    coherence_index: float
    coverage: float
    metrics: dict[str, float | None]


class BriefRow(msgspec.Struct, frozen=True):
    """As much of a row of ``readings`` as folding needs."""

    reading: Brief
    kept: bool = False
    outcomes: tuple[FiringOutcome, ...] = ()


class RecordedTick(msgspec.Struct, frozen=True):
    """As much of a verdict as folding needs."""

    decision: Decision
    outcomes: tuple[FiringOutcome, ...] = ()
    reading: Brief | Reading | None = None


class _Kept(msgspec.Struct, frozen=True):
    """What a row of ``decisions`` holds where no reading can say that it is to be taken as recorded."""

    decision: Decision
    kept: bool = True


class _Mark(msgspec.Struct, frozen=True):
    kept: bool = False


class Record(msgspec.Struct, frozen=True):
    """One event as it was folded."""

    seq: int
    ts: float
    event: Event
    verdict: TickResult | None = None

    def moved(self, by: int, above: int) -> Record:
        """Return the same with every number above a limit moved up."""
        verdict = None if self.verdict is None else self.verdict.moved(by, above)
        event = self.event
        if type(event) is Feedback and event.decision is not None and event.decision > above:
            event = msgspec.structs.replace(event, decision=event.decision + by)
        return Record(self.seq + by, self.ts, event, verdict)


_ENCODER = msgspec.json.Encoder()
_MEASURED = msgspec.json.Decoder(Measured, dec_hook=frozen_hook)
_BRIEF = msgspec.json.Decoder(BriefRow)
_KEPT = msgspec.json.Decoder(_Kept)
_MARK = msgspec.json.Decoder(_Mark)
_DECISION = msgspec.json.Decoder(Decision)


def encode_verdict(verdict: TickResult) -> tuple[ReadingRow | None, DecisionRow]:
    """Return what the store keeps of a verdict."""
    reading, appraisal = verdict.reading, verdict.appraisal
    if reading is None:
        kept: Decision | _Kept = _Kept(verdict.decision) if verdict.kept else verdict.decision
        return None, DecisionRow(verdict.decision.kind, _ENCODER.encode(kept).decode())
    decision = DecisionRow(verdict.decision.kind, _ENCODER.encode(verdict.decision).decode())
    data = _ENCODER.encode(Measured(reading, appraisal, verdict.kept, verdict.outcomes)).decode()
    known = reading.coverage > 0
    row = ReadingRow(
        reading.coherence_index if known else None,
        str(reading.band) if known else None,
        appraisal.pressure,
        str(appraisal.mode),
        data,
    )
    return row, decision


def encode_record(record: Record) -> EventRow:
    """Return the row of a record."""
    event, verdict = record.event, record.verdict
    data = encode_event(event)
    if verdict is None:
        delivered = event.firing if type(event) is Message else None
        return EventRow(record.seq, record.ts, kind_of(event), data, delivered=delivered)
    reading, decision = encode_verdict(verdict)
    guidance = verdict.decision.guidance
    return EventRow(
        record.seq,
        record.ts,
        kind_of(event),
        data,
        reading,
        decision,
        firing=_firing_row(guidance) if guidance is not None else None,
        outcomes=tuple(FiringOutcomeRow(**msgspec.structs.asdict(outcome)) for outcome in verdict.outcomes),
    )


def _firing_row(guidance: Guidance) -> FiringRow:
    text = guidance.text or guidance.withheld
    return FiringRow(guidance.id, guidance.pattern, guidance.pair, guidance.arm, text)


def decode_verdict(row: EventRow) -> TickResult | None:
    """Return the verdict that a row of a tick holds, ``None`` if it holds none."""
    if row.decision is None:
        return None
    if row.reading is None:
        kept = is_kept(row)
        decision = _KEPT.decode(row.decision.data).decision if kept else _DECISION.decode(row.decision.data)
        return TickResult(Appraisal(seq=row.seq, pressure=0.0, mode=Mode.OBSERVE), decision, kept=kept)
    decision = _DECISION.decode(row.decision.data)
    measured = _MEASURED.decode(row.reading.data)
    return TickResult(measured.appraisal, decision, measured.reading, measured.kept, measured.outcomes)


def is_kept(row: EventRow) -> bool:
    """Tell whether a row's verdict is to be taken as recorded."""
    if row.reading is not None:
        return _BRIEF.decode(row.reading.data).kept
    return row.decision is not None and _MARK.decode(row.decision.data).kept


def as_told(verdict: TickResult | None) -> RecordedTick | None:
    """Return as much of a verdict as folding needs."""
    return None if verdict is None else RecordedTick(verdict.decision, verdict.outcomes, verdict.reading)


def decode_told(row: EventRow) -> RecordedTick | None:
    """Return as much of a row's verdict as folding needs, ``None`` if it holds none."""
    if row.decision is None:
        return None
    if row.reading is None:
        kept = is_kept(row)
        return RecordedTick(_KEPT.decode(row.decision.data).decision if kept else _DECISION.decode(row.decision.data))
    brief = _BRIEF.decode(row.reading.data)
    return RecordedTick(_DECISION.decode(row.decision.data), brief.outcomes, brief.reading)
