"""Between what the pipeline makes and what the store keeps."""

from __future__ import annotations

import msgspec

from coherence.core.decisions import Appraisal, Decision, FiringOutcome, Guidance, Mode
from coherence.core.events import Message, encode_event, kind_of
from coherence.core.readings import Band, Reading, frozen_hook
from coherence.monitor.tick_result import Record, TickResult
from coherence.store.rows import DecisionRow, EventRow, FiringOutcomeRow, FiringRow, ReadingRow


class ReadingData(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of a row of ``readings``."""

    reading: Reading
    appraisal: Appraisal
    kept: bool = False
    outcomes: tuple[FiringOutcome, ...] = ()


class _KeptDecision(msgspec.Struct, frozen=True):
    """Content of a row of ``decisions`` where no reading can say that it is to be taken as recorded."""

    decision: Decision
    kept: bool = True


class _KeptMark(msgspec.Struct, frozen=True):
    kept: bool = False


_ENCODER = msgspec.json.Encoder()
_READING = msgspec.json.Decoder(ReadingData, dec_hook=frozen_hook)
_KEPT = msgspec.json.Decoder(_KeptDecision)
_MARK = msgspec.json.Decoder(_KeptMark)
_DECISION = msgspec.json.Decoder(Decision)


def encode_result(result: TickResult) -> tuple[ReadingRow | None, DecisionRow]:
    """Return what the store keeps of a result."""
    reading, appraisal = result.reading, result.appraisal
    if reading is None:
        kept: Decision | _KeptDecision = _KeptDecision(result.decision) if result.kept else result.decision
        return None, DecisionRow(result.decision.kind, _ENCODER.encode(kept).decode())
    decision = DecisionRow(result.decision.kind, _ENCODER.encode(result.decision).decode())
    data = _ENCODER.encode(ReadingData(reading, appraisal, result.kept, result.outcomes)).decode()
    row = ReadingRow(
        reading.coherence_index,
        None if reading.band is Band.UNKNOWN else str(reading.band),
        appraisal.pressure,
        str(appraisal.mode),
        data,
    )
    return row, decision


def encode_record(record: Record) -> EventRow:
    """Return the row of a record."""
    event, result = record.event, record.result
    data = encode_event(event)
    if result is None:
        delivered = event.firing if type(event) is Message else None
        return EventRow(record.seq, record.ts, kind_of(event), data, delivered=delivered)
    reading, decision = encode_result(result)
    guidance = result.decision.guidance
    return EventRow(
        record.seq,
        record.ts,
        kind_of(event),
        data,
        reading,
        decision,
        firing=_firing_row(guidance) if guidance is not None else None,
        outcomes=tuple(FiringOutcomeRow(**msgspec.structs.asdict(outcome)) for outcome in result.outcomes),
    )


def _firing_row(guidance: Guidance) -> FiringRow:
    # a control records the words that it would have been given
    text = guidance.text or guidance.withheld
    return FiringRow(guidance.id, guidance.pattern, guidance.pair, guidance.arm, text)


def decode_result(row: EventRow) -> TickResult | None:
    """Return the result that a row of a tick holds, ``None`` if it holds none."""
    if row.decision is None:
        return None
    if row.reading is None:
        kept, decision = is_kept(row), decode_decision(row.decision.data)
        # A check keeps its decision only; going on needs no more of it.
        return TickResult(Appraisal(seq=row.seq, pressure=0.0, mode=Mode.OBSERVE), decision, kept=kept)
    decision = _DECISION.decode(row.decision.data)
    measured = _READING.decode(row.reading.data)
    return TickResult(measured.appraisal, decision, measured.reading, measured.kept, measured.outcomes)


def decode_decision(data: str) -> Decision:
    """Return the decision that the content of a row of ``decisions`` holds."""
    return _KEPT.decode(data).decision if _MARK.decode(data).kept else _DECISION.decode(data)


def is_kept(row: EventRow) -> bool:
    """Tell whether a row's result is to be taken as recorded."""
    data = row.reading or row.decision
    return data is not None and _MARK.decode(data.data).kept
